"""ServerConfig's ranges."""

import pytest

from puma.config.errors import ConfigError
from puma.config.server import ServerConfig


def test_defaults():
    config = ServerConfig()
    assert (config.host, config.port, config.grace_seconds, config.send_timeout_seconds) == ("127.0.0.1", 8000, 30, 30)


def test_edges():
    ServerConfig(port=0, grace_seconds=0)
    ServerConfig(port=65535, log_level="error")


def test_all_problems_together():
    with pytest.raises(ConfigError) as caught:
        ServerConfig(port=65536, host="", grace_seconds=-1, log_level="loud", max_body_bytes=1.5)
    assert [problem.key for problem in caught.value.problems] == [
        "host",
        "port",
        "grace_seconds",
        "max_body_bytes",
        "log_level",
    ]

"""ServerConfig's and LogConfig's ranges."""

import pytest

from puma.config.errors import ConfigError
from puma.config.log import LogConfig
from puma.config.server import ServerConfig


def test_defaults():
    config = ServerConfig()
    assert (config.host, config.port, config.grace_seconds, config.send_timeout_seconds) == ("127.0.0.1", 8000, 30, 30)


def test_edges():
    ServerConfig(port=0, grace_seconds=0)
    ServerConfig(port=65535)
    LogConfig(level="error")


def test_all_problems_together():
    with pytest.raises(ConfigError) as caught:
        ServerConfig(port=65536, host="", grace_seconds=-1, max_body_bytes=1.5, control_socket="a\0b")
    assert [problem.key for problem in caught.value.problems] == [
        "host",
        "port",
        "grace_seconds",
        "max_body_bytes",
        "control_socket",
    ]


def test_levels():
    with pytest.raises(ConfigError, match="level = 'loud': must be debug, error, info or warning"):
        LogConfig(level="loud")


def test_a_secret_is_not_repeated():
    with pytest.raises(ConfigError) as caught:
        ServerConfig(api_key="hush\0")
    assert "hush" not in str(caught.value)

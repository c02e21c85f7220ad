"""What the documents promise of fields, limits and exit statuses, held against the program."""

import re
from pathlib import Path

import pytest

from puma.config.engine import EngineConfig
from puma.config.memory import KVGeometry, plan_memory
from puma.config.server import ServerConfig
from puma.daemon.connection import Limits
from puma.daemon.control import pumactl
from puma.daemon.errors import HTTP_CODES, TABLE
from puma.daemon.exits import Exit
from puma.daemon.wire.fields import NEUTRAL, WITHOUT_EFFECT
from puma.daemon.wire.openai import ChatRequest, CompletionRequest

DOCS = Path(__file__).parents[2] / "docs"
API = (DOCS / "api.md").read_text()
CONFIGURATION = (DOCS / "configuration.md").read_text()
OPERATIONS = (DOCS / "operations.md").read_text()


@pytest.mark.parametrize(
    "names", [ChatRequest.__struct_fields__, CompletionRequest.__struct_fields__, NEUTRAL, WITHOUT_EFFECT]
)
def test_every_field_is_described(names):
    for name in names:
        assert f"`{name}" in API, name


def test_every_error_is_described():
    for _, status, kind, code in TABLE:
        assert any(str(status) in line and kind in line and (code or "–") in line for line in API.splitlines())
    for status, code in HTTP_CODES.items():
        assert any(str(status) in line and f"`{code}`" in line for line in API.splitlines())


def test_exit_statuses():
    puma, _, control = OPERATIONS.partition("`pumactl`:")
    for status in set(Exit) - {Exit.INTERRUPTED}:
        assert f"\n| {status.value} |" in puma
    for status in (0, pumactl.REFUSED, 2, pumactl.NOT_RUNNING, pumactl.NOT_READY, pumactl.CANNOT_TALK):
        assert f"\n| {status} |" in control


def test_limits():
    config, limits = ServerConfig(), Limits(send=1)
    assert f"`--body-timeout-seconds` {config.body_timeout_seconds}," in OPERATIONS
    assert f"`--send-timeout-seconds` {config.send_timeout_seconds} " in OPERATIONS
    assert f"| {limits.head:g} s, 16 KiB |" in OPERATIONS
    assert f"| idle connection | {limits.idle:g} s |" in OPERATIONS


def test_every_message_of_the_configuration_is_one_that_the_program_has():
    root = DOCS.parent
    program = "".join(path.read_text() for path in (*root.glob("config/*.py"), *root.glob("daemon/commands/*.py")))
    messages = re.findall(r"^\| (`.+?`) \|", CONFIGURATION.partition("## Messages")[2], re.MULTILINE)
    assert len(messages) > 25
    for message in messages:
        for words in re.split(r"…|`, `|`|\[|\]", message):
            # Names of options, and what stands between two values, are put together from parts.
            if len(words.split()) > 2:
                assert words.strip(" ,:").removeprefix("expected ") in program, words


def test_the_arithmetic_of_the_documents():
    for layers, kv_heads, head_dim, context in ((30, 3, 64, 8192), (32, 8, 128, 8192), (32, 8, 128, 131072)):
        plan = plan_memory(KVGeometry(layers, kv_heads, head_dim), EngineConfig())
        for number in (plan.token_bytes, plan.block_bytes, plan.blocks, plan.tokens, context * plan.token_bytes):
            assert f" {number:,}" in CONFIGURATION, number

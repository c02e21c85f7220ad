"""One value as it is written in a text, and in a document."""

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from puma.config.machine import usable_bytes
from puma.config.sections import OPTIONS
from puma.config.setting import COMMAND_LINE, Setting, read

BY_PATH = {option.path: option for option in OPTIONS}
FILE = "/etc/puma/puma.toml"


def value(path, written, source=COMMAND_LINE):
    found, problem = read(Setting(BY_PATH[path], written, "--x", source))
    assert problem is None, str(problem)
    return found


def complaint(path, written, source=COMMAND_LINE):
    found, problem = read(Setting(BY_PATH[path], written, "--x", source))
    assert found is None
    return str(problem)


@pytest.mark.parametrize("source", [COMMAND_LINE, FILE])
@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("2GiB", 2 * 2**30),
        ("2GB", 2 * 10**9),
        ("2 GiB", 2 * 2**30),
        ("1.5GiB", 3 * 2**29),
        ("2048MiB", 2 * 2**30),
    ],
)
def test_sizes_with_a_unit(source, text, size):
    assert value("engine.memory_pool_bytes", text, source) == size


@pytest.mark.parametrize("source", [COMMAND_LINE, FILE])
@pytest.mark.parametrize("text", ["2g", "2G", "1K", "2gib", "2 GiB ?", "-1GiB", "1e9", "∞", "nan", "", "0x10", "1,5GB"])
def test_any_other_size_is_refused(source, text):
    assert "expected a size such as" in complaint("engine.memory_pool_bytes", text, source)


@pytest.mark.parametrize("source", [COMMAND_LINE, FILE])
def test_shares_are_of_the_memory_this_process_may_use(source):
    assert value("engine.memory_pool_bytes", "25%", source) == usable_bytes() // 4
    assert value("engine.memory_pool_bytes", "12.5 %", source) == usable_bytes() // 8
    for text in ("0%", "101%", "100.1%", "-5%", "%"):
        assert "--x" in complaint("engine.memory_pool_bytes", text, source)
    assert "expected a size" in complaint("server.max_body_bytes", "25%", source)


def test_numbers_of_a_document():
    assert value("engine.threads", 2, FILE) == 2
    assert value("engine.memory_pool_bytes", 2**30, FILE) == 2**30
    assert value("engine.prefix_caching", False, FILE) is False if "engine.prefix_caching" in BY_PATH else True
    for wrong in (True, 1.5, 2.0, math.nan, math.inf, [2], {"a": 2}, datetime.date(2026, 1, 1)):
        assert "expected a whole number" in complaint("engine.threads", wrong, FILE)
        assert "expected a size" in complaint("engine.memory_pool_bytes", wrong, FILE)
    assert "without quotes" in complaint("engine.threads", "2", FILE)
    assert "expected a whole number" in complaint("engine.threads", "two", FILE)


def test_words():
    for source in (COMMAND_LINE, FILE):
        assert value("engine.threads", "auto", source) is None
        assert value("engine.default_max_tokens", "context", source) == "context"
        assert "expected a whole number" in complaint("engine.default_max_tokens", "auto", source)
        assert value("server.api_key", "auto", source) == "auto"


def test_text():
    for source in (COMMAND_LINE, FILE):
        assert value("server.host", "::1", source) == "::1"
        for wrong in ("", "a\0", "\udcff"):
            assert "must be text in UTF-8" in complaint("server.host", wrong, source)
    assert "expected 1 to 4096 characters" in complaint("server.host", 5, FILE)
    assert "1 to 4096 characters" in complaint("server.host", "x" * 5000)


def test_a_secret_is_not_repeated():
    assert "hush" not in complaint("server.api_key", "hush\0")


def test_a_size_out_of_range_says_how_many_bytes_were_meant():
    assert "(these are 1,000 bytes)" in complaint("server.max_body_bytes", "1kB")


@given(st.sampled_from(OPTIONS), st.one_of(st.text(), st.text("0123456789kKMGiB.% -"), st.integers().map(str)))
def test_any_text_is_a_value_or_a_complaint(option, text):
    found, problem = read(Setting(option, text, option.flag, COMMAND_LINE))
    assert problem is None or (found is None and str(problem).startswith(option.flag))

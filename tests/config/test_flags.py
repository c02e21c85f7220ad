"""Flags come from the definition, and what is wrong with them is told all together."""

import argparse

import pytest

from puma.config.configuration import configure
from puma.config.errors import ConfigError
from puma.config.flags import Formatter, add_flags, settings_from_flags, unknown_arguments
from puma.config.sections import OPTIONS

ALL = ("engine", "server", "log")


def parsed(*arguments):
    parser = argparse.ArgumentParser(allow_abbrev=False, formatter_class=Formatter)
    add_flags(parser, ALL)
    return parser, parser.parse_args(arguments)


def configured(*arguments):
    settings, problems = settings_from_flags(parsed(*arguments)[1])
    return configure(settings, environment={"PUMA_HOME": "/nowhere"}, problems=problems)


def problems(*arguments):
    with pytest.raises(ConfigError) as caught:
        configured(*arguments)
    return [str(problem) for problem in caught.value.problems]


@pytest.fixture(autouse=True)
def _no_file(monkeypatch, tmp_path):
    monkeypatch.setenv("PUMA_HOME", str(tmp_path))


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.path)
def test_every_option_is_a_flag_with_its_default_in_the_help(option):
    text = " ".join(parsed()[0].format_help().split())
    assert f"{option.flag} " in text
    assert option.description in text
    if option.default is not None:
        assert f"default {option.show(option.default)})" in text


def test_values_do_not_look_optional():
    assert "--port NUMBER" in parsed()[0].format_usage()


def test_values():
    config = configured(
        "--memory-pool-bytes=200MiB",
        "--threads=2",
        "--host=::1",
        "--port=0",
        "--log-level=debug",
        "--default-max-tokens=context",
        "--context-length=auto",
    )
    assert (config.engine.memory_pool_bytes, config.engine.threads) == (200 * 2**20, 2)
    assert (config.engine.default_max_tokens, config.engine.context_length) == ("context", None)
    assert (config.server.host, config.server.port, config.log.level) == ("::1", 0, "debug")


@pytest.mark.parametrize(("text", "value"), [("on", True), ("true", True), ("off", False), ("false", False)])
def test_switches(text, value):
    assert configured(f"--prefix-caching={text}").engine.prefix_caching is value


@pytest.mark.parametrize("text", ["", "On", "yes", "1"])
def test_anything_else_is_no_switch(text):
    (problem,) = problems(f"--prefix-caching={text}")
    assert problem == f"--prefix-caching = {text!r} (command line): expected on or off"


def test_all_problems_at_once_with_what_was_written_and_where():
    assert problems("--memory-pool-bytes=2g", "--threads=0", "--context-length=many", "--port") == [
        "--port (command line): needs a value: expected a whole number, 0 to 65535",
        "--memory-pool-bytes = '2g' (command line): expected a size such as 104857600, \"200MiB\" or "
        '"1.5GB" (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB), or a share of the memory such as "25%"',
        "--context-length = 'many' (command line): expected a whole number, or \"auto\", 1 to 16777216 tokens",
        "--threads = '0' (command line): must be 1 to 1024 threads, or \"auto\"",
    ]


@pytest.mark.parametrize("text", ["1.0", "1e3", "", " ", "0x10", "1_0", "٣", "--1", "9" * 30, "nan", "true"])
def test_whole_numbers_only(text):
    assert problems(f"--max-batch-size={text}") == [
        f"--max-batch-size = {text!r} (command line): expected a whole number, 1 to 1024 sequences"
    ]


def test_a_contradiction_names_both():
    (problem,) = problems("--max-batch-size=100", "--max-step-tokens=50")
    assert problem == (
        "--max-step-tokens = '50' (command line): "
        "must be at least max_batch_size, 100: every running sequence takes one"
    )
    (problem,) = problems("--max-batch-size=1000")
    assert "max_step_tokens = 512 (default)" in problem
    assert "(--max-batch-size = '1000', command line)" in problem


def test_a_contradiction_with_a_wrong_value_is_not_told():
    (problem,) = problems("--max-batch-size=1000", "--max-step-tokens=x")
    assert "--max-step-tokens" in problem


def test_the_last_of_several_counts_but_all_must_be_right():
    assert configured("--port=1", "--port=2").server.port == 2
    assert len(problems("--port=x", "--port=2")) == 1


def test_unknown_arguments_get_a_suggestion():
    unread = ["--prot=1", "--zzz", "word", "stray", "--ctx-size", "5"]
    assert [str(problem) for problem in unknown_arguments(unread, ALL)] == [
        "argument = '--prot=1' (command line): not understood; did you mean --port?",
        "argument = '--zzz' (command line): not understood",
        "argument = 'stray' (command line): not understood",
        "argument = '--ctx-size' (command line): not understood; did you mean --context-length?",
    ]

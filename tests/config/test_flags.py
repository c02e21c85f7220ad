"""Flags come from the structs, and what is wrong is told all together."""

import argparse

import pytest

from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError
from puma.config.flags import Setting, add_flags, build, options_of, settings_from_flags, unknown_flags
from puma.config.server import ServerConfig


def parsed(*arguments):
    parser = argparse.ArgumentParser(allow_abbrev=False)
    add_flags(parser, EngineConfig, "engine")
    add_flags(parser, ServerConfig, "server")
    return parser, parser.parse_args(arguments)


def problems(struct, *arguments):
    with pytest.raises(ConfigError) as caught:
        build(struct, settings_from_flags(parsed(*arguments)[1], struct))
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("struct", [EngineConfig, ServerConfig])
def test_every_field_is_a_flag_with_its_default_in_the_help(struct):
    text = " ".join(parsed()[0].format_help().split())
    options = options_of(struct)
    assert [option.key for option in options] == list(struct.__struct_fields__)
    for option in options:
        assert f"{option.flag} " in text
        assert option.description in text
        if option.default is not None:
            assert f"default {option.show(option.default)})" in text


def test_no_flags_are_the_defaults():
    arguments = parsed()[1]
    assert build(EngineConfig, settings_from_flags(arguments, EngineConfig)) == EngineConfig()
    assert build(ServerConfig, settings_from_flags(arguments, ServerConfig)) == ServerConfig()


def test_values():
    arguments = parsed("--memory-pool-bytes=200MiB", "--threads=2", "--host=::1", "--port=0", "--log-level=debug")[1]
    engine = build(EngineConfig, settings_from_flags(arguments, EngineConfig))
    server = build(ServerConfig, settings_from_flags(arguments, ServerConfig))
    assert (engine.memory_pool_bytes, engine.threads) == (200 * 2**20, 2)
    assert (server.host, server.port, server.log_level) == ("::1", 0, "debug")


def test_all_problems_at_once_with_what_was_written_and_where():
    assert problems(EngineConfig, "--memory-pool-bytes=2g", "--threads=0", "--context-length=many") == [
        "memory_pool_bytes = '2g' (flag --memory-pool-bytes): expected a size such as 104857600, \"200MiB\" or "
        '"1.5GB" (units: B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)',
        "context_length = 'many' (flag --context-length): expected a whole number",
        "threads = '0' (flag --threads): must be 1 to 1024 threads",
    ]


@pytest.mark.parametrize("text", ["1.0", "1e3", "", " ", "0x10", "1_0", "٣", "--1", "9" * 30])
def test_whole_numbers_only(text):
    assert problems(EngineConfig, f"--max-batch-size={text}") == [
        f"max_batch_size = {text!r} (flag --max-batch-size): expected a whole number"
    ]


def test_size_out_of_range_is_told_in_units():
    (problem,) = problems(EngineConfig, "--memory-pool-bytes=0")
    assert problem == "memory_pool_bytes = '0' (flag --memory-pool-bytes): must be 1 B to 1024 TiB"


def test_a_rule_between_two_fields_keeps_its_words():
    (problem,) = problems(EngineConfig, "--tokens-per-block=17")
    assert problem == "tokens_per_block = '17' (flag --tokens-per-block): a multiple of 16"
    (problem,) = problems(EngineConfig, "--max-batch-size=100", "--max-step-tokens=50")
    assert "at least max_batch_size" in problem


def test_problems_of_other_sources_name_them():
    with pytest.raises(ConfigError, match=r"port = 'x' \(environment PUMA_PORT\): expected a whole number"):
        build(ServerConfig, [Setting("port", "x", "environment PUMA_PORT")])


def test_unknown_arguments_get_a_suggestion():
    found = [str(problem) for problem in unknown_flags(["--prot=1", "--zzz", "word"], ["--port", "--host"])]
    assert found == [
        "argument = '--prot=1': not understood; did you mean --port?",
        "argument = '--zzz': not understood",
        "argument = 'word': not understood",
    ]

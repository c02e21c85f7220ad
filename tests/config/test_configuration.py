"""All sources together: which one counts, and that all that is wrong is told at once."""

import contextlib
import io
import string

import msgspec
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from puma.config.configuration import Configuration, configure, locating, resolve
from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError, Problem
from puma.config.flags import settings_from_flags, unknown_arguments
from puma.config.sections import OPTIONS, SECTIONS
from puma.config.setting import COMMAND_LINE, ENVIRONMENT, Setting
from puma.daemon.main import parser

BY_PATH = {option.path: option for option in OPTIONS}


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("PUMA_HOME", str(tmp_path))
    return tmp_path / "puma.toml"


def flag(path, text):
    return Setting(BY_PATH[path], text, BY_PATH[path].flag, COMMAND_LINE)


@pytest.mark.parametrize(
    ("path", "texts"),
    [("server.port", ("1", "2", "3", "8000")), ("server.api_key", ("of file", "of environment", "of flag", None))],
)
def test_the_order_of_the_sources(file, path, texts):
    option = BY_PATH[path]
    of_file, of_environment, of_flag, default = texts
    file.write_text(f"[{option.section}]\n{option.key} = {of_file if of_file.isdigit() else repr(of_file)}\n")
    variables = {option.variable: of_environment}

    def effective(config):
        found = getattr(getattr(config, option.section), option.key)
        origin = config.origins.get(path)
        return found if found is None else str(found), origin and (origin.written, origin.source)

    assert effective(configure([flag(path, of_flag)], environment=variables)) == (of_flag, (option.flag, COMMAND_LINE))
    assert effective(configure(environment=variables)) == (of_environment, (option.variable, ENVIRONMENT))
    assert effective(configure(environment={})) == (of_file, (f"[{option.section}] {option.key}", str(file)))
    file.unlink()
    assert effective(configure(environment={})) == (default, None)


def test_all_mistakes_of_all_sources_in_one_report(file):
    file.write_text("[engine]\nthreads = 0\nmax_batch_size = true\nthraeds = 2\n")
    with pytest.raises(ConfigError) as caught:
        configure([flag("server.port", "70000")], environment={"PUMA_MEMORY_POOL_BYTES": "2g"})
    assert [str(problem).split(":")[0] for problem in caught.value.problems] == [
        f"[engine] thraeds = 2 ({file})",
        f"[engine] threads = 0 ({file})",
        f"[engine] max_batch_size = true ({file})",
        "PUMA_MEMORY_POOL_BYTES = '2g' (environment)",
        "--port = '70000' (command line)",
    ]


def test_a_mistake_that_another_source_covers_is_told_too(file):
    file.write_text("[server]\nport = 70000\n")
    with pytest.raises(ConfigError, match=r"\[server\] port = 70000"):
        configure([flag("server.port", "1")], environment={})


def test_a_contradiction_between_two_sources(file):
    file.write_text("[engine]\nmax_step_tokens = 16\n")
    with pytest.raises(ConfigError) as caught:
        configure(environment={"PUMA_MAX_BATCH_SIZE": "64"})
    assert str(caught.value) == (
        f"[engine] max_step_tokens = 16 ({file}): must be at least max_batch_size, 64: every running sequence takes one"
    )


def test_what_model_and_machine_do_not_allow_is_told_in_the_units_that_were_written():
    config = resolve([flag("engine.memory_pool_bytes", "1kB")])
    with pytest.raises(ConfigError) as caught, locating(config):
        raise ConfigError((Problem(key="memory_pool_bytes", value=1000, low=368_641, high=10**7, allowed="so"),))
    assert str(caught.value) == "--memory-pool-bytes = '1kB' (command line): must be 368.641kB to 10000kB: so"
    expected = r"memory_pool_bytes = '100MiB' \(default\): must be at least 0.352MiB: so"
    with pytest.raises(ConfigError, match=expected), locating(resolve([])):
        raise ConfigError((Problem(key="memory_pool_bytes", value=100 * 2**20, low=368_640, allowed="so"),))


# Names and values that are near to right ones are the interesting ones.
NAMES = st.one_of(
    st.sampled_from([*SECTIONS, *(option.key for option in OPTIONS), "thread", "max-batch-size", "log_level", ""]),
    st.text(string.ascii_letters + '_-. "é', max_size=12),
)
SCALARS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 5000),
    st.floats(),
    st.booleans(),
    st.dates(),
    st.text(max_size=8),
    st.sampled_from(["auto", "context", "2GiB", "2g", "25%", "f16", "debug", "on"]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3))
)
DOCUMENTS = st.one_of(
    st.binary(max_size=60),
    st.text("[]engiserv=\"'#\n 0123456789.truefals", max_size=60).map(str.encode),
    st.dictionaries(
        st.one_of(st.sampled_from(list(SECTIONS)), NAMES),
        st.one_of(st.dictionaries(NAMES, VALUES, max_size=4), VALUES),
        max_size=4,
    ).map(lambda document: tomli_w.dumps(document).encode()),
)
TEXTS = SCALARS.map(str).map(lambda text: text.replace("\0", ""))
ENVIRONMENTS = st.dictionaries(
    st.one_of(st.sampled_from([option.variable for option in OPTIONS]), NAMES.map(lambda name: "PUMA_" + name.upper())),
    TEXTS,
    max_size=4,
)
ARGUMENTS = st.lists(
    st.one_of(st.sampled_from([option.flag for option in OPTIONS]), NAMES.map(lambda name: "--" + name), TEXTS),
    max_size=6,
)


@given(DOCUMENTS, ENVIRONMENTS, ARGUMENTS)
def test_anything_is_a_configuration_or_a_report(tmp_path_factory, document, variables, arguments):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(document)
    variables = {name: text for name, text in variables.items() if name not in ("PUMA_CONFIG", "PUMA_HOME")}
    outcome = outcome_of(path, variables, arguments)
    if isinstance(outcome, Configuration):
        assert msgspec.structs.replace(outcome.engine) == outcome.engine
    else:
        assert outcome
        assert all(outcome)


def outcome_of(path, variables, arguments):
    """The configuration, or what was reported."""
    try:
        return from_everything(path, variables, arguments)
    except ConfigError as error:
        return [str(problem) for problem in error.problems]
    except SystemExit as end:
        # argparse: help was asked for, or what is no flag at all stands in the wrong place.
        return {0: ["help"], 2: ["usage"]}[end.code]


def from_everything(path, variables, arguments):
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        parsed, unread = parser().parse_known_args(["serve", *arguments])
    settings, problems = settings_from_flags(parsed)
    problems += unknown_arguments(unread, SECTIONS)
    return configure(settings, file=str(path), environment=variables, problems=problems)


def test_the_library_needs_no_sources():
    assert resolve([]).engine == EngineConfig()

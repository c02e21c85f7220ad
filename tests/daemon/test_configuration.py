"""What is wrong with a configuration, as a user meets it: a report, exit status 2, and nothing was loaded or bound."""

import re

import pytest

from puma.config.sections import OPTIONS
from puma.daemon.main import main
from tests.daemon.daemons import MODEL, pumactl

WRONG = {
    "count": ["", "0.5", "1.5", "-1", "nan", "true", "x", "9999999999", "9" * 40],
    "size": ["", "0", "-1", "1.5", "nan", "2g", "10 potatoes", "9999TiB", "0%", "101%"],
    "choice": ["", "x", "1"],
    "switch": ["", "x", "1", "yes"],
    "text": ["\udcff", "x" * 5000],
}
"""Texts that no option of a kind takes."""

WRONG_VALUES = {
    "count": ["1.5", "-1", "nan", "inf", "true", '"1"', "[1]", "{}", "9999999999", "2026-01-01"],
    "size": ["0", "-1", "1.5", "nan", "true", '"2g"', '""', "[1]", "{}"],
    "choice": ["1", '""', '"x"', "true", "[]"],
    "switch": ["1", '"on"', "[]"],
    "text": ["1", '""', "true", "[]", '"\\u0000"'],
}
"""Values of a document that no option of a kind takes."""


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("PUMA_HOME", str(tmp_path))
    monkeypatch.delenv("PUMA_CONFIG")
    return tmp_path


def report(capsys, *arguments):
    """The lines that `puma` writes when it is started so."""
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    return [line.removeprefix("puma: ") for line in shown.err.splitlines()]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.path)
def test_every_wrong_value_of_every_flag_and_variable(option, capsys, monkeypatch):
    for text in WRONG[option.kind]:
        (line,) = report(capsys, "serve", f"{option.flag}={text}")
        assert re.match(rf"{option.flag}( = .+)? \(command line\): (expected|must be|a share) ", line), line
        if not text:
            continue
        with monkeypatch.context() as patch:
            patch.setenv(option.variable, text)
            (line,) = report(capsys, "serve")
            assert re.match(rf"{option.variable}( = .+)? \(environment\): (expected|must be|a share) ", line), line
    (line,) = report(capsys, "serve", option.flag)
    assert line.startswith(f"{option.flag} (command line): needs a value: expected")


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.path)
def test_every_wrong_value_of_every_key(option, capsys, home):
    file = home / "puma.toml"
    for value in WRONG_VALUES[option.kind]:
        file.write_text(f"[{option.section}]\n{option.key} = {value}\n")
        (line,) = report(capsys, "serve")
        place = rf"\[{option.section}\] {option.key}( = .+)? \({re.escape(str(file))}\)"
        assert re.match(rf"{place}: (expected|must be) ", line), line


@pytest.mark.parametrize("key", ["tokens_per_block", "context_length", "max_batch_size", "threads"])
def test_zero_is_refused_in_a_file_too(key, capsys, home):
    (home / "puma.toml").write_text(f"[engine]\n{key} = 0\n")
    (line,) = report(capsys, "serve")
    assert line.startswith(f"[engine] {key} = 0 ({home / 'puma.toml'}): must be 1")


def test_five_mistakes_in_three_sources_are_one_report(capsys, home, monkeypatch):
    (home / "puma.toml").write_text("[engine]\nthreads = 0\nmax-batch-size = 4\n[sever]\nport = 1\n")
    monkeypatch.setenv("PUMA_PORT", "http")
    assert len(report(capsys, "serve", "--tokens-per-block", "17")) == 5


def test_files_that_cannot_be_used(capsys, home):
    cases = {
        "missing.toml": None,
        "latin1.toml": b"# Gr\xf6\xdfe\n[engine]\nthreads = 1\n",
        "syntax.toml": b"[engine\n",
    }
    for name, content in cases.items():
        if content is not None:
            (home / name).write_bytes(content)
    (home / "link.toml").symlink_to("nowhere")
    words = {
        "missing.toml": "no such configuration file",
        "latin1.toml": "not UTF-8: byte 0xf6 at line 1, column 5; save it as UTF-8",
        "syntax.toml": "not valid TOML: Expected ']' at the end of a table declaration (at line 1, column 8)",
        "link.toml": "a link that leads nowhere",
        ".": "expected a configuration file, this is a folder",
    }
    for name, expected in words.items():
        (line,) = report(capsys, "serve", "--config", str(home / name))
        assert line == f"{home / name}: {expected}"
    for arguments in (["--config"], ["--config="]):
        assert "needs a value" in report(capsys, "serve", *arguments)[0]


def test_what_is_wrong_with_run_itself_is_in_the_same_report(capsys):
    lines = report(capsys, "run", MODEL, "hi", "--temperature", "hot", "--seed", "1.5", "--threads", "0", "--port", "1")
    assert [line.split(" (")[0] for line in lines] == [
        "--temperature = 'hot'",
        "--seed = '1.5'",
        "argument = '--port'",
        "--threads = '0'",
    ]


def test_the_configuration_in_force(capsys, home, monkeypatch):
    (home / "puma.toml").write_text('[engine]\nmemory_pool_bytes = "1GiB"\n[server]\napi_key = "hush"\n')
    monkeypatch.setenv("PUMA_THREADS", "2")
    assert main(["config", "show", "--port", "1"]) == 0
    lines = [re.split(r" {2,}", line) for line in capsys.readouterr().out.splitlines()]
    assert ["engine.memory_pool_bytes", "1GiB", f"[engine] memory_pool_bytes, {home / 'puma.toml'}"] in lines
    assert ["engine.threads", "2", "PUMA_THREADS, environment"] in lines
    assert ["server.port", "1", "--port, command line"] in lines
    assert ["server.api_key", "********", f"[server] api_key, {home / 'puma.toml'}"] in lines
    assert ["log.level", "info", "default"] in lines
    assert main(["config", "show", "--toml"]) == 0
    saved = capsys.readouterr().out
    assert 'memory_pool_bytes = "1GiB"' in saved
    assert "hush" not in saved
    assert main(["config", "schema"]) == 0
    assert '"additionalProperties": false' in capsys.readouterr().out


def test_pumactl_looks_where_the_configuration_says(tmp_path):
    (tmp_path / "puma.toml").write_text(f'[server]\ncontrol_socket = "{tmp_path / "a.sock"}"\n[engine]\nthreads = 0\n')
    shown = pumactl("status")
    assert (shown.returncode, f"nothing at {tmp_path / 'a.sock'}" in shown.stderr) == (3, True), shown.stderr
    (tmp_path / "puma.toml").write_text("[server\n")
    shown = pumactl("status")
    assert "not valid TOML" in shown.stderr
    assert f"nothing at {tmp_path / 'puma.sock'}" in shown.stderr

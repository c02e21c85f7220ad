"""The file: which one, its names, and all the ways in which it can be no configuration."""

import contextlib
import os

import pytest

from puma.config.file import chosen_file, settings_from_file, usual_files

NOBODY = 65534


def written(folder, text):
    path = folder / "puma.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problems(folder, text):
    path = written(folder, text)
    return [str(problem).replace(str(path), "FILE") for problem in settings_from_file(path)[1]]


def test_settings(tmp_path):
    path = written(tmp_path, '[engine]\nthreads = 2\nmemory_pool_bytes = "1GiB"\n[server]\n[log]\nlevel = "debug"\n')
    settings, wrong = settings_from_file(path)
    assert [(setting.written, setting.value, setting.source) for setting in settings] == [
        ("[engine] threads", 2, str(path)),
        ("[engine] memory_pool_bytes", "1GiB", str(path)),
        ("[log] level", "debug", str(path)),
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "[engine]\nthread = 1",
            "[engine] thread = 1 (FILE): no such key in [engine]; did you mean threads in [engine]?",
        ),
        ("[engine]\nmax-batch-size = 1", "no such key in [engine]; did you mean max_batch_size in [engine]?"),
        ("[engine]\nport = 1", "[engine] port = 1 (FILE): no such key in [engine]; did you mean port in [server]?"),
        ('[server]\nlog_level = "info"', "no such key in [server]; did you mean level in [log]?"),
        ("[engine]\nn_ctx = 5", "no such key in [engine]; did you mean context_length in [engine]?"),
        ("[engine]\nxyzzy = 5", "[engine] xyzzy = 5 (FILE): no such key in [engine]"),
        ("[engin]\nthreads = 1", "[engin] (FILE): no such section; there are [engine], [server], [log]; did you mean"),
        ("[xyzzy.a]\nb = 1", "[xyzzy] (FILE): no such section; there are [engine], [server], [log]"),
        ("[[engine]]\nthreads = 1", "engine = [{'threads': 1}] (FILE): expected a section"),
        ("threads = 1", "threads = 1 (FILE): no such key outside of a section; did you mean threads in [engine]?"),
        ("server = 1", "server = 1 (FILE): expected a section"),
        ("xyzzy = 1", "xyzzy = 1 (FILE): no such key outside of a section; keys stand in [engine], [server], [log]"),
    ],
)
def test_names_that_nothing_knows(tmp_path, text, expected):
    (problem,) = problems(tmp_path, text)
    assert expected in problem


def test_what_a_terminal_takes_for_commands_is_spelled_out(tmp_path):
    (problem,) = problems(tmp_path, '[engine]\n"a\\u001b[31m\\nb" = "\\u001b[0m"')
    assert problem.startswith(r"[engine] a\x1b[31m\nb = '\x1b[0m' (FILE): no such key")


def test_a_misspelt_secret_is_not_repeated(tmp_path):
    (problem,) = problems(tmp_path, '[server]\napi_keyy = "hush"')
    assert "hush" not in problem
    assert "did you mean api_key" in problem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"# Gr\xf6sse\n", "FILE: not UTF-8: byte 0xf6 at line 1, column 5; save it as UTF-8"),
        (b"[engine]\nthreads = 1 # \xe9", "FILE: not UTF-8: byte 0xe9 at line 2, column 15; save it as UTF-8"),
        (
            b"[engine]\nthreads 1",
            "FILE: not valid TOML: Expected '=' after a key in a key/value pair (at line 2, column 9)",
        ),
        (b"[engine]\nthreads = 1\nthreads = 2", "FILE: not valid TOML: Cannot overwrite a value"),
        (b"\xff\xfe[\0e\0", "FILE: not UTF-8: byte 0xff at line 1, column 1"),
        (b"a = " + b"[" * 5000, "FILE: not"),
        (b"a = " + b"9" * 5000, "FILE: not valid TOML"),
        (b"#" * 2_000_000, "FILE: too large for a configuration file: 2,000,000 bytes, at most 1,048,576"),
    ],
)
def test_files_that_are_no_configuration(tmp_path, text, expected):
    (problem,) = problems(tmp_path, text)
    assert problem.startswith(expected)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    assert problems(tmp_path, b"\xef\xbb\xbf[engine]\nthreads = 1") == []


def test_files_that_are_not_there_or_none(tmp_path):
    (tmp_path / "link").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe")
    for name, words in (
        ("missing", "no such configuration file"),
        ("link", "a link that leads nowhere"),
        ("pipe", "expected a configuration file, this is none"),
        (".", "expected a configuration file, this is a folder"),
        ("a\0b", "the configuration file cannot be read"),
        ("x" * 300, "the configuration file cannot be read"),
    ):
        settings, (problem,) = settings_from_file(tmp_path / name)
        assert not settings
        assert words in str(problem)


@contextlib.contextmanager
def anybody():
    """Without the rights of root, to whom every file is readable."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_file_that_may_not_be_read(tmp_path):
    path = written(tmp_path, "")
    tmp_path.chmod(0o755)
    path.chmod(0)
    with anybody():
        settings, (problem,) = settings_from_file(path)
    assert not settings
    assert str(problem) == f"{path}: this user may not read the configuration file"


def test_which_file(tmp_path, monkeypatch):
    monkeypatch.setenv("PUMA_HOME", str(tmp_path))
    own = tmp_path / "puma.toml"
    assert usual_files()[0] == own
    assert chosen_file(None, {}) not in (own, tmp_path / "x")
    own.write_text("")
    assert chosen_file(None, {}) == own
    assert chosen_file(None, {"PUMA_CONFIG": str(tmp_path / "y")}) == tmp_path / "y"
    assert chosen_file(str(tmp_path / "x"), {"PUMA_CONFIG": str(tmp_path / "y")}) == tmp_path / "x"


def test_a_broken_link_in_the_usual_place_is_not_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("PUMA_HOME", str(tmp_path))
    (tmp_path / "puma.toml").symlink_to("nothing")
    assert chosen_file(None, {}) == tmp_path / "puma.toml"

"""What the cache does not hold is compiled by other processes; whatever happens to them, the program has its code."""

import os
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from puma.kernels import cache
from puma.kernels.compile import shares
from tests.kernels.compiling import TinyProgram, finish, is_alive

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

HERE, ELSEWHERE = [0, 0], [1, 1]
"""How often each entry's machine code came from the cache."""


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_another_process_compiles_and_the_next_start_needs_none(tmp_path, processes):
    program = TinyProgram(tmp_path, processes=processes)
    report, errors = program.run()
    assert (report["hits"], errors) == (ELSEWHERE, "")
    assert len(program.children()) == min(processes, 2)
    first, *counted, last = report["parts"]
    assert len(counted) == 2
    assert 0 == first < counted[0] < counted[1] < last == 1
    report, errors = program.run()
    assert (report, errors) == ({"hits": ELSEWHERE, "parts": []}, "")
    assert len(program.children()) == min(processes, 2)


def test_only_what_is_missing_is_compiled(tmp_path):
    program = TinyProgram(tmp_path, processes=2)
    program.run()
    (index,) = program.home.rglob("tiny_entries.two_more-*.nbi")
    index.unlink()
    report, errors = program.run()
    assert (report["hits"], errors) == (ELSEWHERE, "")
    assert (len(report["parts"]), len(program.children())) == (3, 3)


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        ({"in_child": "os.kill(os.getpid(), 9)"}, "was ended by SIGKILL"),
        ({"in_child": "os._exit(3)"}, "ended with status 3"),
        ({"in_child": "raise MemoryError('none left')"}, "ended with status 1: MemoryError: none left"),
        ({"before": "sys.executable = '/nowhere/python'"}, "could not be started: [Errno 2]"),
        ({"before": "sys.executable = ''"}, "could not be started: no Python interpreter is at hand"),
        ({"before": "sys.executable = '/bin/false'"}, "ended with status 1"),
    ],
)
def test_what_others_fail_to_compile_is_compiled_here(tmp_path, trouble, told):
    report, errors = TinyProgram(tmp_path, **trouble).run()
    assert report["hits"] == HERE
    names = "tiny_entries:one_more, tiny_entries:two_more"
    assert errors.startswith(f"a process that was to compile {names} {told}"), errors
    assert errors.rstrip().endswith("compiling here instead, which takes more memory")


def test_one_of_two_fails(tmp_path):
    program = TinyProgram(tmp_path, processes=2, in_child="if 'two_more' in sys.argv[1]: os._exit(1)")
    module = tmp_path / "tiny_entries.py"
    module.write_text(module.read_text().replace("import os", "import os, sys"))
    report, errors = program.run()
    assert report["hits"] == [1, 0]
    assert len(errors.splitlines()) == 1


def test_a_full_disk(tmp_path):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (600, 600))"
    program = TinyProgram(tmp_path, before=limit)
    for _ in range(2):
        report, errors = program.run()
        assert report["hits"] == HERE
        assert errors.count("cannot be kept for the next start") == 2
        assert "File too large" in errors.splitlines()[0]


@pytest.mark.parametrize("left", [0, 100])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_damaged_files_are_made_anew(tmp_path, kind, left):
    program = TinyProgram(tmp_path)
    program.run()
    (damaged,) = program.home.rglob(f"tiny_entries.one_more-*.{kind}")
    os.truncate(damaged, left)
    report, errors = program.run()
    assert report["hits"] == ELSEWHERE
    assert errors.startswith("tiny_entries:one_more: its machine code in the cache is damaged")
    assert program.run()[1] == ""


def test_a_temporary_folder_is_shared_too(tmp_path):
    (tmp_path / "file").write_text("in the way")
    in_the_way = {name: str(tmp_path / "file") for name in ("PUMA_HOME", "XDG_CACHE_HOME", "HOME")}
    (tmp_path / "temporary").mkdir()
    report, errors = TinyProgram(tmp_path).run(**in_the_way, TMPDIR=str(tmp_path / "temporary"))
    assert (report["hits"], errors) == (ELSEWHERE, "")


def test_two_first_starts_at_once(tmp_path):
    program = TinyProgram(tmp_path, in_child="import time; time.sleep(0.5)")
    both = [program.start(), program.start()]
    for process in both:
        report, errors = finish(process)
        assert (report["hits"], errors) == (ELSEWHERE, "")
    assert len(program.children()) == 2


def test_entries_of_the_program_itself_are_compiled_by_it(tmp_path):
    program = TinyProgram(tmp_path)
    (tmp_path / "program.py").write_text((tmp_path / "tiny_entries.py").read_text() + PROGRAM_ITSELF)
    process = program.start()
    out, errors = process.communicate(timeout=120)
    assert (out, errors) == ("[0, 0] 3\n", "")
    assert program.children() == []


PROGRAM_ITSELF = """
from puma.kernels.compile import compile_entries
compile_entries(lambda part: None)
print([sum(each.stats.cache_hits.values()) for each in (one_more, two_more)], two_more(1))
"""


def test_the_current_folder_is_not_searched(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "numba.py").write_text("raise SystemExit('not this one')")
    report, errors = TinyProgram(tmp_path, before=f"import os; os.chdir({str(elsewhere)!r})").run()
    assert (report["hits"], errors) == (ELSEWHERE, "")


def test_nothing_is_kept_under_the_digest_of_other_sources(tmp_path):
    folder = tmp_path / "0123456789abcdef"
    folder.mkdir()
    line = [sys.executable, "-m", "puma.kernels.child", "puma.kernels.packing:pack_tiles"]
    environment = os.environ | {cache.FOLDER_NAME: str(folder)}
    with subprocess.Popen(
        line, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr.read() == "the sources of the kernels have changed since the other process began\n"
        assert process.wait(60) == 1
    assert not list(folder.rglob("*.nb?"))


@LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_whoever_compiles_does_not_outlive_the_program(tmp_path, number):
    program = TinyProgram(tmp_path, processes=2, in_child="import time; time.sleep(600)")
    process = program.start()
    end = time.monotonic() + 60
    while len(program.children()) < 2:
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == -number
    assert "a process that was to compile" not in errors
    while any(is_alive(pid) for pid in program.children()):
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("trouble", [{}, {"in_child": "os._exit(1)"}])
def test_parts_are_bound_before_their_caller_is_loaded(tmp_path, trouble):
    program = TinyProgram(tmp_path, processes=2, **trouble)
    module = tmp_path / "tiny_entries.py"
    first, last = module.read_text().replace("return x + 2", "return added(x, 2, x > 100)").rsplit("@entry", 1)
    module.write_text(f"{first}{PART}@entry{last}")
    expected = HERE if trouble else ELSEWHERE
    assert program.run()[0]["hits"] == expected
    assert program.run()[0]["hits"] == ELSEWHERE
    # Now the caller is there and the part is not; were the caller loaded, it would call nothing.
    for file in program.home.rglob("tiny_entries.added-*"):
        file.unlink()
    assert program.run()[0]["hits"] == ELSEWHERE
    assert program.run()[0] == {"hits": ELSEWHERE, "parts": []}


PART = """
from puma.kernels.parts import WORD, part
from numba import types

@part(WORD(WORD, WORD, types.boolean), cost=3)
def added(x, y, negative):
    return x - y if negative else x + y

"""


def test_work_is_shared_by_cost():
    entries = [SimpleNamespace(name=str(cost), cost=cost) for cost in (2, 7, 3, 5, 11, 6)]
    assert shares(entries, 2) == [["11", "5", "2"], ["7", "6", "3"]]
    assert shares(entries, 1) == [["11", "7", "6", "5", "3", "2"]]
    assert shares(entries, 9) == [["11"], ["7"], ["6"], ["5"], ["3"], ["2"]]
    assert shares([], 2) == []

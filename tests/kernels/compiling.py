"""A program of its own that compiles two tiny entries, in a cache of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

ENTRIES = """
import os
from puma.kernels.compile import entry

if os.environ.get("PUMA_COMPILE_FOLDER"):
    with open({folder!r} + "/children", "a") as file:
        print(os.getpid(), file=file)
    {in_child}

@entry("int64(int64)")
def one_more(x):
    return x + 1

@entry("int64(int64)")
def two_more(x):
    return x + 2
"""

PROGRAM = """
import json, sys
from puma.kernels.compile import compile_entries
from tiny_entries import one_more, two_more
{before}
parts = []
compile_entries(parts.append, {processes})
assert (one_more(1), two_more(1)) == (2, 3)
hits = [sum(each.stats.cache_hits.values()) for each in (one_more, two_more)]
print(json.dumps({{"parts": parts, "hits": hits}}))
"""


class TinyProgram:
    """Not a module with a guard around its main part: it must not be run by the processes it starts."""

    def __init__(self, folder: Path, *, in_child: str = "pass", before: str = "", processes: int = 1) -> None:
        self.folder, self.home = folder, folder / "home"
        (folder / "tiny_entries.py").write_text(ENTRIES.format(folder=str(folder), in_child=in_child))
        (folder / "program.py").write_text(PROGRAM.format(before=before, processes=processes))

    def start(self, **environment: str) -> subprocess.Popen:
        everything = os.environ | {"PUMA_HOME": str(self.home)} | environment
        line = [sys.executable, str(self.folder / "program.py")]
        return subprocess.Popen(line, env=everything, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, **environment: str):
        """Its report and what it wrote to stderr, once it has succeeded."""
        return finish(self.start(**environment))

    def children(self) -> list[int]:
        """The processes that compiled for it, so far."""
        file = self.folder / "children"
        return [int(line) for line in file.read_text().split()] if file.exists() else []


def finish(process: subprocess.Popen):
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return json.loads(out), errors


def children_of(pid: int) -> list[int]:
    """The living children of a process that compile."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            words = (folder / "cmdline").read_bytes()
        except (OSError, IndexError):
            continue
        if parent == pid and b"puma.kernels.child" in words:
            found.append(int(folder.name))
    return found


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended and is not yet buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False

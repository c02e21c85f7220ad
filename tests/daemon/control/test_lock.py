"""The lock says whether a daemon lives, whatever files lie about."""

import os
import subprocess
import sys
import threading

import pytest

from puma.daemon.control.lock import AlreadyRunning, Lock, is_held, open_lock, wait_released
from puma.daemon.control.paths import UnusablePath, private_folder, socket_path

HOLD = """
import sys, pathlib
from puma.daemon.control.lock import Lock
lock = Lock(pathlib.Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "s")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()


def test_second_holder_is_refused_and_told_of_the_first(tmp_path, holder):
    with pytest.raises(AlreadyRunning, match=f"process {holder.pid}"):
        Lock(tmp_path / "s")


def test_lock_of_the_dead_is_free(tmp_path, holder):
    descriptor = open_lock(tmp_path / "s")
    assert is_held(descriptor)
    holder.kill()
    holder.wait()
    assert not is_held(descriptor)
    os.close(descriptor)
    Lock(tmp_path / "s").remove()
    assert list(tmp_path.iterdir()) == []


def test_waiting_for_the_end(tmp_path, holder):
    descriptor = open_lock(tmp_path / "s")
    waiter = threading.Thread(target=wait_released, args=(descriptor,))
    waiter.start()
    assert waiter.is_alive()
    holder.kill()
    waiter.join(10)
    assert not waiter.is_alive()
    os.close(descriptor)


def test_no_lock(tmp_path):
    assert open_lock(tmp_path / "s") is None


def test_path_in_the_home(monkeypatch, tmp_path):
    monkeypatch.setenv("PUMA_HOME", str(tmp_path))
    assert socket_path(None) == tmp_path / "puma.sock"
    assert socket_path(str(tmp_path / "other")) == tmp_path / "other"


def test_path_in_the_runtime_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("PUMA_HOME", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert socket_path(None) == tmp_path / "puma" / "puma.sock"


def test_path_too_long(tmp_path):
    with pytest.raises(UnusablePath, match="at most 107"):
        socket_path("/" + "x" * 107)
    assert socket_path("/" + "x" * 106)


def test_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UnusablePath):
        private_folder(tmp_path / "file")
    with pytest.raises(UnusablePath):
        private_folder(tmp_path / "file" / "below")

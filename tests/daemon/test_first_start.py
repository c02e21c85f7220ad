"""A first start, which compiles: stopped while it does, it leaves no process and no traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.daemon.daemons import command
from tests.kernels.compiling import children_of, is_alive
from tests.tiny import Tiny

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def compiling(*arguments, home):
    """`puma` in a process group of its own, as a terminal starts it, and the processes that compile for it."""
    process = subprocess.Popen(
        command(*arguments),
        env=os.environ | {"PUMA_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    end = time.monotonic() + 60
    while not (children := children_of(process.pid)):
        assert time.monotonic() < end
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process, children


def check_end(process, children, status):
    out, errors = process.communicate(timeout=30)
    assert (process.returncode, out) == (status, "")
    assert "Traceback" not in errors
    assert "compiling here" not in errors
    end = time.monotonic() + 30
    while any(is_alive(pid) for pid in children):
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("moment", [0, 3])
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_daemon_that_is_stopped_while_it_compiles(tmp_path, number, status, moment):
    tiny = Tiny(tmp_path / "tiny.gguf")
    socket = str(tmp_path / "puma.sock")
    process, children = compiling("serve", str(tiny.path), "--port", "0", "--control-socket", socket, home=tmp_path)
    # At the beginning of the children's work, and in the middle of it.
    time.sleep(moment)
    os.killpg(process.pid, number)
    check_end(process, children, status)
    assert not os.path.exists(socket)


def test_ctrl_c_while_run_compiles(tmp_path):
    tiny = Tiny(tmp_path / "tiny.gguf")
    process, children = compiling("run", str(tiny.path), "Hello", home=tmp_path)
    os.killpg(process.pid, signal.SIGINT)
    check_end(process, children, 130)


def test_a_daemon_that_is_killed_while_it_compiles(tmp_path):
    tiny = Tiny(tmp_path / "tiny.gguf")
    socket = str(tmp_path / "puma.sock")
    process, children = compiling("serve", str(tiny.path), "--port", "0", "--control-socket", socket, home=tmp_path)
    process.kill()
    check_end(process, children, -signal.SIGKILL)

"""The control socket of a living daemon."""

import contextlib
import json
import socket
import stat
import threading

import msgspec
import pytest

from puma.daemon.control.client import CannotTalk, ask
from puma.daemon.control.messages import PROTOCOL, GetStatus, Greeting, frame
from tests.daemon.daemons import RunningDaemon, pumactl, received


def connect(daemon):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(daemon.control))
    return connection


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_only_the_owner_may_open_it(umask):
    with RunningDaemon(umask=umask) as daemon:
        assert stat.S_IMODE(daemon.control.stat().st_mode) == 0o600
        assert stat.S_IMODE(daemon.control.with_name("puma.sock.lock").stat().st_mode) == 0o600
        assert daemon.end() == 0


def test_folder_is_made_for_the_owner_only(tmp_path):
    with RunningDaemon(folder=tmp_path, umask=0) as daemon:
        pass
    nested = tmp_path / "run" / "deep"
    with RunningDaemon("--control-socket", str(nested / "s"), umask=0) as daemon:
        assert stat.S_IMODE(nested.stat().st_mode) == 0o700
        assert daemon.end() == 0


def test_status_for_people(daemon):
    shown = pumactl("status", control=daemon.control)
    assert shown.returncode == 0
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("Puma ")
    assert daemon.url in lines[0]
    assert f"process   {daemon.process.pid}," in shown.stdout
    assert "sequences 0" in shown.stdout


def test_status_for_programs(daemon, client):
    before = daemon.status()
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 5, "temperature": 0}
    usage = client.post("/v1/chat/completions", json=body).json()["usage"]
    after = json.loads(pumactl("status", "--json", control=daemon.control).stdout)
    assert after["model"] == "smollm2:135m"
    assert after["address"] == daemon.url
    assert after["blocks_total"] == daemon.blocks
    assert after["generated_tokens"] == before.generated_tokens + usage["completion_tokens"]
    assert after["prompt_tokens"] == before.prompt_tokens + usage["prompt_tokens"]


def test_status_shows_each_sequence(daemon, client):
    body = {"messages": [{"role": "user", "content": "Write a long story."}], "max_tokens": 400, "stream": True}
    with client.stream("POST", "/v1/chat/completions", json=body) as response:
        reader = response.iter_raw()
        next(reader)
        status = daemon.wait_status(lambda status: status.sequences and status.sequences[0].generated > 3)
        (line,) = status.sequences
        assert line.request_id == "chatcmpl-" + response.headers["x-request-id"]
        assert line.blocks == status.blocks_used > 0
        assert line.prompt_tokens > 0
        shown = pumactl("status", control=daemon.control).stdout
        assert line.request_id in shown
    daemon.assert_idle(seconds=1)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0",
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        b"\0\0\0\x05",
        b"\0\0\0\x01\xc1",
        b"\0\x01\0\0" + b"x" * 70000,
        b"GET / HTTP/1.1\r\n\r\n",
        frame(Greeting(1, "x", 1)),
        (lambda payload: len(payload).to_bytes(4, "big") + payload)(msgspec.msgpack.encode({"type": "explode"})),
    ],
)
def test_garbage_hurts_nobody(daemon, data):
    with connect(daemon) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received(connection)
    assert daemon.status().state == "serving"
    assert "Traceback" not in daemon.log()


def test_clients_that_leave_or_wait(daemon):
    with contextlib.ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(connect(daemon))
        connect(daemon).close()
        assert daemon.status().state == "serving"


def test_not_running(tmp_path):
    for command in ("status", "stop"):
        shown = pumactl(command, control=tmp_path / "none.sock")
        assert shown.returncode == 3
        assert "no daemon is running" in shown.stderr


def test_socket_left_behind(tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    shown = pumactl("status", control=path)
    assert shown.returncode == 3
    assert "left" in shown.stderr


def test_other_versions_are_told_apart(tmp_path):
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def speak():
            connection, _ = listening.accept()
            with connection:
                connection.sendall(frame(Greeting(PROTOCOL + 1, "9.9", 42)))
                connection.recv(1)

        speaker = threading.Thread(target=speak)
        speaker.start()
        with pytest.raises(CannotTalk, match=r"Puma 9\.9.*version 2"):
            ask(path, GetStatus())
        speaker.join()


def test_too_long_a_path(tmp_path):
    shown = pumactl("status", control=tmp_path / ("x" * 200))
    assert shown.returncode == 5
    assert "107" in shown.stderr

"""How the daemon ends, and what it leaves."""

import json
import signal
import subprocess
import threading
import time

import httpx
import pytest

from tests.daemon.daemons import MODEL, RunningDaemon, answer, command, post_bytes, puma, pumactl, received
from tests.daemon.streams import chunks_of

LONG = {
    "messages": [{"role": "user", "content": "Write a very long story about the sea."}],
    "max_tokens": 250,
    "temperature": 0,
}


class Stream(threading.Thread):
    """A streaming client in a thread of its own; `begun` is set with the first chunk."""

    def __init__(self, daemon, **fields):
        super().__init__()
        self.daemon_url = daemon.url
        self.body = LONG | {"stream": True} | fields
        self.begun = threading.Event()
        self.text = ""
        self.failure = None
        self.start()

    def run(self):
        try:
            with (
                httpx.Client(timeout=120) as client,
                client.stream("POST", self.daemon_url + "/v1/chat/completions", json=self.body) as response,
            ):
                for piece in response.iter_text():
                    self.text += piece
                    self.begun.set()
        except httpx.HTTPError as error:
            self.failure = error

    @property
    def last(self):
        """The last event."""
        return self.text.strip().rpartition("data: ")[2]


def test_running_requests_finish_and_new_ones_are_refused():
    with RunningDaemon() as daemon, daemon.client() as living:
        assert living.get("/health").status_code == 200
        streams = [Stream(daemon), Stream(daemon)]
        for stream in streams:
            assert stream.begun.wait(60)
        daemon.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 5
        while living.get("/health").status_code == 200 and time.monotonic() < end:
            time.sleep(0.01)
        response = living.get("/health")
        assert (response.status_code, response.json()) == (503, {"status": "draining"})
        refused = living.post("/v1/chat/completions", json=LONG)
        assert refused.status_code == 503
        assert refused.json()["error"]["code"] == "shutting_down"
        # A new connection, too, is told and not just refused.
        with daemon.client() as fresh:
            assert fresh.post("/v1/chat/completions", json=LONG).status_code == 503
        assert pumactl("status", control=daemon.control).stdout.splitlines()[0].endswith("draining")
        for stream in streams:
            stream.join()
            assert stream.failure is None
            assert stream.last == "[DONE]"
            assert '"finish_reason":"length"' in stream.text or '"finish_reason":"stop"' in stream.text
        assert daemon.end(None) == 0
        assert list(daemon.folder.iterdir()) == [daemon.folder / "log"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_requests_that_outlast_the_grace_get_a_clean_error(number):
    with RunningDaemon("--grace-seconds", "0") as daemon:
        stream = Stream(daemon, max_tokens=2000)
        assert stream.begun.wait(60)
        with daemon.connect() as waiting:
            waiting.sendall(post_bytes("/v1/chat/completions", json.dumps(LONG | {"max_tokens": 2000}).encode()))
            daemon.wait_status(lambda status: len(status.sequences) == 2)
            assert daemon.end(number) == 0
            whole = received(waiting)
        stream.join()
        assert stream.failure is None
        assert json.loads(stream.last)["error"]["code"] == "shutting_down"
        assert "[DONE]" not in stream.text
        assert whole.startswith(b"HTTP/1.1 503")
        assert b'"code":"shutting_down"' in whole
        assert not daemon.control.exists()


def test_second_signal_ends_at_once():
    with RunningDaemon() as daemon:
        stream = Stream(daemon, max_tokens=2000)
        assert stream.begun.wait(60)
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_status(lambda status: status.state == "draining")
        begun = time.monotonic()
        assert daemon.end(signal.SIGTERM) == 128 + signal.SIGTERM
        assert time.monotonic() - begun < 3
        stream.join()
        assert list(daemon.folder.iterdir()) == [daemon.folder / "log"]


def test_idle_connections_do_not_delay_the_end():
    with RunningDaemon() as daemon:
        idle = [daemon.connect() for _ in range(5)]
        for connection in idle[:3]:
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert answer(connection).startswith(b"HTTP/1.1 200")
        begun = time.monotonic()
        assert daemon.end() == 0
        assert time.monotonic() - begun < 4
        for connection in idle:
            assert received(connection) == b""
            connection.close()


def test_stop_and_stop_now():
    with RunningDaemon() as daemon:
        stream = Stream(daemon)
        assert stream.begun.wait(60)
        stopped = pumactl("stop", control=daemon.control)
        assert (stopped.returncode, stopped.stdout) == (0, "stopped\n")
        assert "1 running request" in stopped.stderr
        assert daemon.process.wait(5) == 0
        stream.join()
        assert stream.last == "[DONE]"
    with RunningDaemon() as daemon:
        stream = Stream(daemon, max_tokens=2000)
        assert stream.begun.wait(60)
        begun = time.monotonic()
        assert pumactl("stop", "--now", control=daemon.control).returncode == 0
        assert time.monotonic() - begun < 10
        assert daemon.process.wait(5) == 0
        stream.join()
        assert json.loads(stream.last)["error"]["code"] == "shutting_down"


def test_killed_daemon_is_replaced(tmp_path):
    with RunningDaemon(folder=tmp_path) as daemon:
        daemon.process.kill()
        daemon.process.wait()
        assert daemon.control.is_socket()
        gone = pumactl("status", control=daemon.control)
        assert gone.returncode == 3
        assert "left" in gone.stderr
    with RunningDaemon(folder=tmp_path, port=daemon.address[1]) as successor:
        assert successor.status().state == "serving"
        assert successor.end() == 0


def test_port_in_use(daemon, tmp_path):
    port = str(daemon.address[1])
    second = puma("serve", MODEL, "--port", port, "--control-socket", str(tmp_path / "s"))
    assert second.returncode == 3
    assert f"127.0.0.1:{port} is in use" in second.stderr
    assert "weights" not in second.stderr
    assert second.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_control_socket_in_use(daemon):
    second = puma("serve", MODEL, "--port", "0", "--control-socket", str(daemon.control))
    assert second.returncode == 3
    assert str(daemon.control) in second.stderr
    assert "weights" not in second.stderr
    assert daemon.status().pid == daemon.process.pid


def test_second_daemon_while_the_first_loads(tmp_path):
    """Also a port that is only bound yet is taken."""
    with RunningDaemon(folder=tmp_path, wait=False) as first:
        end = time.monotonic() + 60
        while not first.log() and first.process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        ended = pumactl("status", control=first.control)
        second = puma("serve", MODEL, "--port", "0", "--control-socket", str(first.control))
        assert second.returncode == 3
        first.wait_ready()
        # Had the model been there already, the status would have told.
        assert ended.returncode in (0, 4)
        assert first.end() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_while_loading(tmp_path, number):
    with RunningDaemon(folder=tmp_path, wait=False) as daemon:
        end = time.monotonic() + 60
        while not daemon.log() and daemon.process.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        begun = time.monotonic()
        assert daemon.end(number) == 128 + number
        assert time.monotonic() - begun < 5
        assert "Traceback" not in daemon.log()
        assert list(tmp_path.iterdir()) == [tmp_path / "log"]


def test_ctrl_c_from_the_first_moment(tmp_path):
    """Whatever is being imported or loaded: no traceback, and the status of an interrupted program."""
    for delay in (0.3, 0.6, 1.0):
        line = command("serve", MODEL, "--port", "0", "--control-socket", str(tmp_path / "puma.sock"))
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        if out:
            assert process.returncode == 0
        else:
            assert process.returncode == 130, err
        assert "Traceback" not in err


def test_stream_chunks_of_a_finished_request(daemon, client):
    """What `Stream` reads by hand, read the usual way."""
    response = client.post("/v1/chat/completions", json=LONG | {"stream": True, "max_tokens": 3})
    assert chunks_of(response)[-1] == "[DONE]"

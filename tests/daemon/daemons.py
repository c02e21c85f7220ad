"""Real daemons for tests: `puma serve` in a process of its own, on a free port, with a control socket of its own."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from puma.daemon.control.client import ask
from puma.daemon.control.messages import GetStatus, Status

MODEL = os.environ.get("PUMA_TEST_MODEL", "smollm2:135m")
"""The model under test: a name that was pulled, or a file."""

NAME = "smollm2:135m"
START_SECONDS = 240
"""A first start compiles every kernel."""

READY = re.compile(r"Puma \S+ serves (.+) on (http://\S+) · KV cache ([0-9,]+) blocks × (\d+) tokens = .+\n")


def command(*arguments):
    """The command line of `puma`."""
    return [sys.executable, "-m", "puma.daemon.main", *arguments]


def puma(*arguments, **options):
    """Run `puma` to its end."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=START_SECONDS, **options)


def pumactl(*arguments, control=None):
    """Run `pumactl` to its end."""
    line = [sys.executable, "-m", "puma.daemon.control.pumactl"]
    line += ["--control-socket", control] if control else []
    return subprocess.run([*line, *arguments], capture_output=True, text=True, timeout=60)


class RunningDaemon:
    """Started and ready, unless `wait` is false. Use as a context manager."""

    def __init__(self, *flags, folder=None, port=0, wait=True, umask=None):
        self.folder = Path(folder or tempfile.mkdtemp(prefix="puma-test-"))
        self.control = self.folder / "puma.sock"
        self._log = (self.folder / "log").open("ab+")
        line = command("serve", MODEL, "--port", str(port), "--served-model-name", NAME)
        line += ["--control-socket", str(self.control), *flags]
        self.process = subprocess.Popen(
            line, stdout=subprocess.PIPE, stderr=self._log, text=True, umask=-1 if umask is None else umask
        )
        if wait:
            self.wait_ready()

    def wait_ready(self):
        """Read the one line that says where it listens."""
        self.line = self.process.stdout.readline()
        match = READY.fullmatch(self.line)
        assert match, f"{self.line!r}\n{self.log()}"
        self.url = match[2]
        self.address = ("127.0.0.1", int(self.url.rpartition(":")[2]))
        self.blocks = int(match[3].replace(",", ""))
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self._log.close()

    def log(self):
        """What it has written to stderr so far."""
        return (self.folder / "log").read_text()

    def status(self) -> Status:
        return ask(self.control, GetStatus())

    def wait_status(self, wanted, seconds=10):
        """Ask until the status is as wanted; returns the last one, which fails the test's own check otherwise."""
        end = time.monotonic() + seconds
        while not wanted(status := self.status()) and time.monotonic() < end:
            time.sleep(0.02)
        return status

    def assert_idle(self, seconds=10):
        """Every sequence has left and every block is back."""
        status = self.wait_status(lambda status: not status.sequences and not status.blocks_used, seconds)
        assert (status.sequences, status.blocks_used, status.requests) == ((), 0, 0)

    def client(self, **options):
        return httpx.Client(base_url=self.url, timeout=120, **options)

    def connect(self, timeout=30):
        """A plain socket."""
        return socket.create_connection(self.address, timeout)

    def end(self, number=signal.SIGTERM, seconds=60):
        """Send a signal, if any, and wait for the end; returns the exit status."""
        if number is not None:
            self.process.send_signal(number)
        return self.process.wait(seconds)


def received(connection, seconds=10):
    """Everything until the other side closes, or falls silent."""
    connection.settimeout(seconds)
    data = b""
    with contextlib.suppress(TimeoutError, ConnectionResetError):
        while more := connection.recv(65536):
            data += more
    return data


def answer(connection):
    """One response with a JSON body, on a connection that stays open."""
    data = b""
    while not data.endswith(b"}"):
        more = connection.recv(65536)
        assert more, data
        data += more
    return data


def post_bytes(path, body, *headers):
    """A POST request as bytes."""
    lines = [f"POST {path} HTTP/1.1", "Host: puma", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body

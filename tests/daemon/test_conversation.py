"""`puma run` on a terminal: a conversation, with Ctrl-C in the middle of an answer."""

import os
import pty
import re
import signal
import subprocess
import time

import pytest

from tests.daemon.daemons import MODEL, START_SECONDS, command


class Terminal:
    """`puma run` on a pseudo-terminal."""

    def __init__(self, *flags):
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            command("run", MODEL, "--temperature", "0", *flags),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        os.set_blocking(self.master, False)
        self.shown = ""

    def wait_for(self, words, seconds=START_SECONDS):
        """Read until the words appear in what was not yet waited for; returns what came up to them."""
        end = time.monotonic() + seconds
        while (match := re.search(words, self.shown)) is None:
            assert time.monotonic() < end, self.shown
            try:
                self.shown += os.read(self.master, 65536).decode(errors="replace")
            except BlockingIOError:
                time.sleep(0.01)
            except OSError:
                raise AssertionError(f"it ended: {self.shown}") from None
        before, self.shown = self.shown[: match.end()], self.shown[match.end() :]
        return before

    def type(self, text):
        os.write(self.master, text.encode())

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)


@pytest.fixture
def terminal():
    opened = Terminal("--default-max-tokens", "300")
    opened.wait_for(">>> ")
    yield opened
    opened.close()


def test_questions_with_history(terminal):
    terminal.type("My name is Zebulon.\r")
    terminal.wait_for(">>> ")
    terminal.type("Name the capital of France.\r")
    assert "Paris" in terminal.wait_for(">>> ")
    terminal.type("/clear\r")
    terminal.wait_for(">>> ")
    terminal.type("/what\r")
    assert "/bye" in terminal.wait_for(">>> ")
    terminal.type("/bye\r")
    assert terminal.process.wait(20) == 0


def test_ctrl_c_stops_the_answer_and_not_the_program(terminal):
    terminal.type("Write a very long story about the sea.\r")
    terminal.wait_for(r"story.*\n.{20}")
    terminal.interrupt()
    assert "[stopped]" in terminal.wait_for(">>> ", 20)
    terminal.interrupt()
    assert "/bye" in terminal.wait_for(">>> ", 20)
    terminal.type("Name the capital of France.\r")
    terminal.wait_for(">>> ")
    terminal.type("\x04")
    assert terminal.process.wait(20) == 0


def test_ctrl_c_while_loading():
    opened = Terminal()
    time.sleep(0.8)
    opened.interrupt()
    try:
        status = opened.process.wait(30)
    finally:
        opened.close()
    assert status == 130

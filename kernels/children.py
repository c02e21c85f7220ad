"""Processes that compile: started, listened to, and never left behind.

Each runs child.py on its share of the entries. They work in the folder of compiled code that this process uses, and
in a process group of their own, so that a terminal's Ctrl-C reaches this process only.
"""

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager

from numba.core import config as numba_config

from puma.kernels.cache import FOLDER_NAME

CHILD = "puma.kernels.child"

READ_BYTES = 4096


def compile_apart(shares: Sequence[Sequence[str]], finished: Callable[[], None]) -> list[str]:
    """Compile entries ("module:function") into the cache, each share in a process; `finished` is called per function.

    Returns a description of each process that did not do its work.
    """
    failures: list[str] = []
    said: list[tuple[subprocess.Popen[bytes], Sequence[str], bytearray]] = []
    with selectors.DefaultSelector() as pipes, ExitStack() as living:
        for share in shares:
            try:
                process = living.enter_context(child(share))
            except OSError as error:
                failures.append(f"{', '.join(share)} could not be started: {error}")
                continue
            words = bytearray()
            said.append((process, share, words))
            pipes.register(process.stdout, selectors.EVENT_READ, lambda data: [finished() for _ in data])
            pipes.register(process.stderr, selectors.EVENT_READ, words.extend)
        while pipes.get_map():
            for key, _ in pipes.select():
                if data := os.read(key.fd, READ_BYTES):
                    key.data(data)
                else:
                    pipes.unregister(key.fileobj)
        failures += [f"{', '.join(share)} {fate(process, words)}" for process, share, words in said if process.wait()]
    return failures


@contextmanager
def child(names: Sequence[str]) -> Generator[subprocess.Popen[bytes]]:
    """A process that compiles these entries, killed if it has not ended by itself. Raises OSError."""
    if not sys.executable or getattr(sys, "frozen", False):
        raise FileNotFoundError("no Python interpreter is at hand")
    # What is found here has to be found there; -P, since the current folder is none of our business.
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    environment = os.environ | {"PYTHONPATH": path, FOLDER_NAME: numba_config.CACHE_DIR}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", CHILD, *names],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def fate(process: subprocess.Popen[bytes], words: bytes) -> str:
    """How a process ended that has failed, and the last line it wrote to stderr."""
    status = process.returncode
    how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    lines = words.decode(errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return f"{how}: {last}" if last else how

"""The helper threads beside the one that runs a step: created with the model, parked in Python when idle."""

import threading

import numpy as np
from numpy.typing import NDArray

from puma.kernels.forward import run
from puma.kernels.team import LINE, PARKED, QUIT, WORD


class Team:
    """Runs steps of one machine table on `threads` threads, the caller's included.

    `machine` is int64 [MACHINE_FIELDS], `shared` int64 words (see team.py); both belong to the team while it lives.
    """

    def __init__(self, machine: NDArray[np.int64], shared: NDArray[np.int64], threads: int) -> None:
        self._machine, self._shared, self.threads = machine, shared, threads
        self._wake = [threading.Event() for _ in range(threads)]
        self._helpers = [
            threading.Thread(target=self._help, args=(thread,), name=f"puma-kernel-{thread}", daemon=True)
            for thread in range(1, threads)
        ]
        for helper in self._helpers:
            helper.start()

    def run(self) -> None:
        """Run the step that the machine's step table describes. Only one thread may call this."""
        self._wake_parked()
        run(0, self.threads, 0, self._machine.ctypes.data)

    def close(self) -> None:
        """End the helpers; no step may be running."""
        self._shared[QUIT // WORD] = 1
        self._wake_parked()
        for helper in self._helpers:
            helper.join()

    def _wake_parked(self) -> None:
        for thread in range(1, self.threads):
            if self._shared[(PARKED + LINE * thread) // WORD]:
                self._wake[thread].set()

    def _help(self, thread: int) -> None:
        parked = (PARKED + LINE * thread) // WORD
        seen = 0
        while (seen := run(thread, self.threads, seen, self._machine.ctypes.data)) >= 0:
            self._wake[thread].wait()
            self._wake[thread].clear()
            self._shared[parked] = 0

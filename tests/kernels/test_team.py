"""The team: helpers park when idle, wake for work, and end."""

import os
import resource
import threading
import time

from tests.models.batches import Batches, bits
from tests.models.test_model import load
from tests.tiny import Tiny


def kernel_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("puma-kernel")]


def test_steps_after_idling_are_the_same_as_in_a_row(tmp_path):
    model = load(Tiny(tmp_path / "tiny.gguf"), threads=3)
    batches = Batches(model)
    first = bits(batches.step((0, 0, [5, 6, 7])))
    for _ in range(200):
        assert bits(batches.step((0, 0, [5, 6, 7]))) == first
    for _ in range(5):
        time.sleep(0.05)
        assert bits(batches.step((0, 0, [5, 6, 7]))) == first
    model.close()


def test_idle_helpers_use_no_time(tmp_path):
    model = load(Tiny(tmp_path / "tiny.gguf"), threads=4)
    Batches(model).step((0, 0, [5]))
    time.sleep(0.3)
    before = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(0.5)
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 0.05
    model.close()


def test_closing_ends_the_helpers(tmp_path):
    before = len(kernel_threads())
    model = load(Tiny(tmp_path / "tiny.gguf"), threads=4)
    assert len(kernel_threads()) == before + 3
    model.close()
    assert len(kernel_threads()) == before


def test_more_threads_than_cores_still_end(tmp_path):
    model = load(Tiny(tmp_path / "tiny.gguf"), threads=2 * (os.cpu_count() or 1) + 1)
    batches = Batches(model)
    assert bits(batches.step((0, 0, [5, 6]))) == bits(batches.step((0, 0, [5, 6])))
    model.close()

import fcntl
import threading

import pytest

from puma.models.store.lock import exclusive


def test_the_file_goes_with_its_holder(tmp_path):
    path = tmp_path / "lock"
    with exclusive(path):
        assert path.exists()
    assert not path.exists()
    with pytest.raises(ZeroDivisionError), exclusive(path):
        raise ZeroDivisionError
    assert not path.exists()


def test_a_file_left_by_a_crash_is_no_obstacle(tmp_path):
    path = tmp_path / "lock"
    path.write_text("")
    with exclusive(path):
        pass


def test_only_one_is_inside(tmp_path):
    path, inside, most, guard = tmp_path / "lock", 0, 0, threading.Lock()

    def visit():
        nonlocal inside, most
        for _ in range(50):
            with exclusive(path):
                with guard:
                    inside += 1
                    most = max(most, inside)
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=visit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_the_lock_of_a_file_that_is_gone_counts_for_nothing(tmp_path):
    path, entered = tmp_path / "lock", threading.Event()

    def wait_for_it():
        with exclusive(path):
            entered.set()

    waiting = threading.Thread(target=wait_for_it)
    old = path.open("w")
    fcntl.flock(old, fcntl.LOCK_EX)
    waiting.start()
    assert not entered.wait(0.2)
    path.unlink()
    with exclusive(path):
        old.close()
        assert not entered.wait(0.2)
    assert entered.wait(10)
    waiting.join()

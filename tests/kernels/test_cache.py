"""The folder of compiled code: a name of its own for every source and instruction set, and always writable."""

import os
import subprocess
import sys

from puma.kernels import cache


def test_the_digest_depends_on_the_sources(monkeypatch, tmp_path):
    before = cache.digest()
    assert before == cache.digest()
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "vectors.py").write_text("changed")
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "kernels" / "cache.py"))
    changed = cache.digest()
    assert changed != before
    (tmp_path / "kernels" / "vectors.py").write_text("changed again")
    assert cache.digest() not in (before, changed)


def test_the_digest_depends_on_the_instructions(monkeypatch):
    before = cache.digest()
    monkeypatch.setattr(cache.cpu, "LOWERING", "another")
    assert cache.digest() != before


def test_what_nobody_has_used_for_a_month_is_removed(monkeypatch, tmp_path):
    monkeypatch.setenv("PUMA_HOME", str(tmp_path))
    old, recent = (tmp_path / "cache" / "kernels" / name for name in ("old", "recent"))
    for folder in (old, recent):
        folder.mkdir(parents=True)
        (folder / "kernel").touch()
    os.utime(old, (1, 1))
    current = cache.cache_folder()
    assert sorted(folder.name for folder in current.parent.iterdir()) == sorted([current.name, "recent"])


def test_puma_home_comes_first(monkeypatch, tmp_path):
    monkeypatch.setenv("PUMA_HOME", str(tmp_path))
    assert cache.cache_folder().is_relative_to(tmp_path / "cache")


def test_a_home_that_cannot_be_made_is_no_obstacle(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("PUMA_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(cache.platformdirs, "user_cache_path", lambda name: tmp_path / "file" / name)
    assert os.access(cache.cache_folder(), os.W_OK)


def test_kernels_are_found_again_by_the_next_process(tmp_path):
    script = (
        "import puma.kernels.packing\n"
        "from puma.kernels.compile import ENTRIES, compile_entries\n"
        "(entry,) = ENTRIES\n"
        "print(int(entry.load()))\n"
        "compile_entries(lambda part: None)\n"
        "assert entry.compiled"
    )
    environment = os.environ | {"PUMA_HOME": str(tmp_path)}
    hits = [
        subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert [int(line) for line in hits] == [0, 1]

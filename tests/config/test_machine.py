"""Memory: the machine's, and the limits of control groups in both versions."""

import psutil
import pytest

from puma.config import machine


def test_of_this_machine():
    assert 0 < machine.available_bytes() <= machine.usable_bytes() <= psutil.virtual_memory().total
    assert 2**20 < machine.resident_bytes() < machine.usable_bytes()


@pytest.fixture
def groups(monkeypatch, tmp_path):
    """Folders in the shape of /sys/fs/cgroup, which only a privileged user could make there."""
    monkeypatch.setattr(machine, "CGROUPS", tmp_path)
    monkeypatch.setattr(machine, "OWN_GROUP", tmp_path / "own")
    return tmp_path


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_the_narrowest_limit_of_all_groups_counts(groups):
    write(groups, own="0::/system/puma\n", memory__max="max")
    write(
        groups / "system", memory__max="100000000", memory__current="60000000", memory__stat="inactive_file 20000000\n"
    )
    write(groups / "system/puma", memory__max="max\n", memory__current="5")
    assert machine.usable_bytes() == 100_000_000
    assert machine.available_bytes() == 60_000_000


def test_version_one(groups):
    write(groups, own="4:cpu,cpuacct:/\n9:memory:/puma\n")
    write(
        groups / "memory/puma",
        memory__limit_in_bytes="50000000",
        memory__usage_in_bytes="20000000",
        memory__stat="cache 1\ntotal_inactive_file 10000000\n",
    )
    write(groups / "memory", memory__limit_in_bytes=str(2**63 - 4096))
    assert machine.usable_bytes() == 50_000_000
    assert machine.available_bytes() == 40_000_000


@pytest.mark.parametrize("own", ["", "0::/../outside\n", "0::/gone\n", "9:cpu:/x\n"])
def test_without_a_limit(groups, own):
    write(groups, own=own, memory__max="nonsense")
    assert machine.usable_bytes() <= psutil.virtual_memory().total
    assert machine.usable_bytes() > 2**24

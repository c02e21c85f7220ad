"""PUMA_HOME means the same folder to everyone who keeps something in it."""

from pathlib import Path

from puma.config.home import chosen_home
from puma.daemon.control.paths import socket_path
from puma.kernels.cache import cache_folder
from puma.models.store.home import models_folder


def test_one_folder_for_all(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PUMA_HOME", "~/puma")
    home = tmp_path / "puma"
    assert chosen_home() == home
    assert models_folder() == home / "models"
    assert socket_path(None) == home / "puma.sock"
    assert cache_folder().is_relative_to(home / "cache")


def test_a_relative_folder_is_made_absolute(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PUMA_HOME", "here")
    assert chosen_home() == Path(tmp_path) / "here"


def test_empty_means_unset(monkeypatch):
    monkeypatch.setenv("PUMA_HOME", "")
    assert chosen_home() is None

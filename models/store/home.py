"""Where Puma keeps what it fetches: the data folder of the platform, or PUMA_HOME."""

from pathlib import Path

from platformdirs import user_data_path

from puma.config.home import chosen_home


def puma_home() -> Path:
    """The data folder, absolute; it may not exist yet. PUMA_HOME, if set and not empty, names another."""
    return chosen_home() or user_data_path("puma", appauthor=False)


def models_folder() -> Path:
    """The folder of models in it."""
    return puma_home() / "models"

"""Where Puma keeps what it fetches: the data folder of the platform, or PUMA_HOME."""

import os
from pathlib import Path

from platformdirs import user_data_path


def puma_home() -> Path:
    """The data folder, absolute; it may not exist yet. PUMA_HOME, if set and not empty, names another."""
    chosen = os.environ.get("PUMA_HOME")
    return Path(chosen).expanduser().absolute() if chosen else user_data_path("puma", appauthor=False)


def models_folder() -> Path:
    """The folder of models in it."""
    return puma_home() / "models"

"""PUMA_HOME: one folder for models, compiled kernels and the control socket, instead of the platform's own places."""

import os
from pathlib import Path

ENVIRONMENT_NAME = "PUMA_HOME"


def chosen_home() -> Path | None:
    """The folder that PUMA_HOME names, absolute; it may not exist yet. None when it is unset or empty."""
    chosen = os.environ.get(ENVIRONMENT_NAME)
    return Path(chosen).expanduser().absolute() if chosen else None

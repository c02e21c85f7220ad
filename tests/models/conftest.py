"""The real model, for all tests of models."""

import os
from pathlib import Path

import pytest

from puma.models.store.pull import pull


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct as a GGUF file: the one in PUMA_TEST_MODEL, or pulled into the data folder."""
    given = os.environ.get("PUMA_TEST_MODEL")
    return Path(given) if given else pull("smollm2:135m")

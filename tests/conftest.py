"""The real model, fetched once and kept in Puma's home."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct Q4_1; PUMA_TEST_MODEL names a copy that is there already."""
    if given := os.environ.get("PUMA_TEST_MODEL"):
        return Path(given)
    from puma.models.store.pull import pull

    return pull("smollm2:135m")

"""The real model, fetched once and kept in Puma's home; and Ctrl-C as a terminal's programs have it."""

import os
import signal
from pathlib import Path

import pytest

# Who runs the tests in the background has Ctrl-C ignored, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct Q4_1; PUMA_TEST_MODEL names a copy that is there already."""
    if given := os.environ.get("PUMA_TEST_MODEL"):
        return Path(given)
    from puma.models.store.pull import pull

    return pull("smollm2:135m")

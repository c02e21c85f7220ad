"""What all tests share: the real model, the same examples every time, and Ctrl-C as a terminal's programs have it."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run: a change is to blame for what fails with it.
settings.register_profile("deterministic", derandomize=True)
settings.load_profile("deterministic")

# Who runs the tests in the background has Ctrl-C ignored, and so would all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Not the configuration of whoever runs the tests.
os.environ["PUMA_CONFIG"] = str(Path(__file__).parent / "data" / "empty.toml")


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """SmolLM2-135M-Instruct Q4_1; PUMA_TEST_MODEL names a copy that is there already."""
    if given := os.environ.get("PUMA_TEST_MODEL"):
        return Path(given)
    from puma.models.store.pull import pull

    return pull("smollm2:135m")

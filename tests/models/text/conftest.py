import json
from pathlib import Path

import pytest

from puma.models.formats.gguf import read_gguf
from puma.models.text.model_text import ModelText


@pytest.fixture(scope="session")
def smollm2(smollm2_path) -> ModelText:
    with read_gguf(smollm2_path) as file:
        return ModelText.from_gguf(file.metadata)


@pytest.fixture(scope="session")
def reference() -> dict:
    """What llama.cpp answers for the same file: ids of 50 strings, prompts of four conversations."""
    return json.loads((Path(__file__).parent / "smollm2_reference.json").read_text())

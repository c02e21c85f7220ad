"""Every instruction set this machine has gives the same bits; one that it has not is refused by name."""

import os
import subprocess
import sys

import pytest

from puma.kernels.cpu import ENVIRONMENT_NAME, LOWERINGS, available_lowerings

SCRIPT = """
import hashlib, sys
from pathlib import Path
from tests.models.batches import Batches, bits
from tests.models.test_model import PROMPT, load
from tests.tiny import Tiny
from puma.kernels.cpu import LOWERING
digest = hashlib.sha256()
for code, kv_dtype in ((2, "f16"), (3, "f16"), (8, "f16"), (8, "f32")):
    model = load(Tiny(Path(sys.argv[1]) / "tiny.gguf", code), kv_dtype=kv_dtype)
    batches = Batches(model)
    digest.update(repr(bits(batches.step((0, 0, PROMPT[:40])))).encode())
    digest.update(repr(bits(batches.step((0, 40, PROMPT[40:41])))).encode())
    model.close()
print(LOWERING, digest.hexdigest())
"""


def run(lowering, folder):
    environment = os.environ | {ENVIRONMENT_NAME: lowering, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder)], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def best(tmp_path_factory):
    result = run("auto", tmp_path_factory.mktemp("best"))
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.mark.parametrize("lowering", available_lowerings())
def test_the_same_bits_with_every_instruction_set(lowering, best, tmp_path):
    result = run(lowering, tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [lowering, best[1]]


def test_the_best_is_chosen(best):
    assert best[0] == available_lowerings()[0]


@pytest.mark.parametrize("lowering", ["sse9", *(set(LOWERINGS) - set(available_lowerings()))])
def test_an_instruction_set_that_is_not_there(lowering, tmp_path):
    result = run(lowering, tmp_path)
    assert result.returncode != 0
    assert f"{ENVIRONMENT_NAME} = {lowering!r}" in result.stderr
    assert available_lowerings()[0] in result.stderr

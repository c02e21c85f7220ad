"""SmolLM2 against the reference implementation in float32, step by step along the reference's own path."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from puma.config.engine import EngineConfig
from puma.models.model import load_model
from tests.models.batches import Batches
from tests.tiny import KV_DTYPES

REFERENCE = json.loads((Path(__file__).parent.parent / "data" / "smollm2-135m-q4_1.float32.json").read_text())

LLAMA_CPP_DIFFERENCE = 0.086
"""Mean absolute difference of llama.cpp's top-five log-probabilities from float32, on the same file."""

ALLOWED_DIFFERENCE = 0.02
"""Outliers keep sixteen bits here (kernels/activations.py), which brings it to 0.015."""


@pytest.fixture(scope="module")
def batches(smollm2_path):
    """By kv_dtype."""
    models = {
        kv_dtype: load_model(smollm2_path, EngineConfig(threads=2, context_length=2048, kv_dtype=kv_dtype))
        for kv_dtype in KV_DTYPES
    }
    yield {kv_dtype: Batches(model) for kv_dtype, model in models.items()}
    for model in models.values():
        model.close()


def differences(batches):
    """Absolute differences of the reference's top five, at each step along its paths."""
    for answer in REFERENCE["greedy"]:
        position = len(answer["prompt_ids"])
        output = batches.step((0, 0, answer["prompt_ids"]))
        for step in answer["steps"]:
            found = dict(zip(output.likely_tokens[0].tolist(), output.likely_logprobs[0].tolist(), strict=True))
            yield from (abs(found[token] - logprob) for token, logprob in step["top"][:5])
            output = batches.step((0, position, [step["id"]]))
            position += 1


def test_log_probabilities_along_the_reference_paths(batches):
    found = {kv_dtype: list(differences(each)) for kv_dtype, each in batches.items()}
    assert {len(each) for each in found.values()} == {8 * 24 * 5}
    assert np.mean(found["f16"]) <= ALLOWED_DIFFERENCE < LLAMA_CPP_DIFFERENCE
    assert np.mean(found["f32"]) <= np.mean(found["f16"])


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_likelihood_of_a_passage(batches, kv_dtype):
    ids = REFERENCE["token_ids"]
    nll = [
        -batches[kv_dtype].step((1, position, [token]), forced=following).logprobs[0]
        for position, (token, following) in enumerate(pairwise(ids))
    ]
    assert len(nll) == 511
    assert abs(np.mean(nll) / REFERENCE["mean_nll_first_511"] - 1) < 0.01

"""SmolLM2 against the reference implementation in float32, step by step along the reference's own path."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from puma.config.engine import EngineConfig
from puma.models.model import load_model
from tests.models.batches import Batches

REFERENCE = json.loads((Path(__file__).parent.parent / "data" / "smollm2-135m-q4_1.float32.json").read_text())

LLAMA_CPP_DIFFERENCE = 0.086
"""Mean absolute difference of llama.cpp's top-five log-probabilities from float32, on the same file."""

ALLOWED_DIFFERENCE = 0.02
"""Outliers keep sixteen bits here (kernels/activations.py), which brings it to 0.015."""


@pytest.fixture(scope="module")
def batches(smollm2_path):
    model = load_model(smollm2_path, EngineConfig(threads=2, context_length=2048))
    yield Batches(model)
    model.close()


def test_log_probabilities_along_the_reference_paths(batches):
    differences = []
    for answer in REFERENCE["greedy"]:
        position = len(answer["prompt_ids"])
        output = batches.step((0, 0, answer["prompt_ids"]))
        for step in answer["steps"]:
            found = dict(zip(output.likely_tokens[0].tolist(), output.likely_logprobs[0].tolist(), strict=True))
            differences += [abs(found[token] - logprob) for token, logprob in step["top"][:5]]
            output = batches.step((0, position, [step["id"]]))
            position += 1
    assert len(differences) == 8 * 24 * 5
    assert np.mean(differences) <= ALLOWED_DIFFERENCE < LLAMA_CPP_DIFFERENCE


def test_likelihood_of_a_passage(batches):
    ids = REFERENCE["token_ids"]
    nll = [
        -batches.step((1, position, [token]), forced=following).logprobs[0]
        for position, (token, following) in enumerate(pairwise(ids))
    ]
    assert len(nll) == 511
    assert abs(np.mean(nll) / REFERENCE["mean_nll_first_511"] - 1) < 0.01

"""Sampling against NumPy, and its promises: counter-based, exact limits, edge values harmless."""

import numpy as np
import pytest

from puma.kernels.compile import kernel
from puma.kernels.sample import CHOSEN_FIELDS, choose, uniform
from puma.models.step import choice, read_chosen

VOCABULARY = 1000


@kernel
def choose_from(logits, vocabulary, record, chosen, weights):
    choose(logits.ctypes.data, vocabulary, logits.size, record.ctypes.data, chosen.ctypes.data, weights.ctypes.data)


@kernel
def draw_uniform(seed, index):
    return uniform(seed, index)


def choose_one(logits, **options):
    options = {
        "temperature": 1.0,
        "top_k": 0,
        "top_p": 1.0,
        "min_p": 0.0,
        "seed": 0,
        "index": 0,
        "logprobs": -1,
    } | options
    padded = np.full(-(-logits.size // 32) * 32, 1e9, np.float32)
    padded[: logits.size] = logits
    chosen = np.zeros((1, CHOSEN_FIELDS), np.int32)
    choose_from(padded, logits.size, choice(**options), chosen, np.zeros_like(padded))
    return read_chosen(chosen)


def token(logits, **options):
    return int(choose_one(logits, **options).tokens[0])


def kept(logits, **options):
    """The set of tokens that can be drawn, by drawing often."""
    return {token(logits, index=index, **options) for index in range(400)}


@pytest.fixture
def logits():
    return (np.random.default_rng(0).standard_normal(VOCABULARY) * 3).astype(np.float32)


def test_greedy_takes_the_first_of_equals(logits):
    logits[[700, 20, 300]] = 50
    assert token(logits, temperature=0) == 20


@pytest.mark.parametrize("temperature", [0, 1e-4, 1e-5, 1e-300, 5e-324])
def test_tiny_temperatures_are_greedy(logits, temperature):
    assert kept(logits, temperature=temperature) == {int(logits.argmax())}


@pytest.mark.parametrize("size", [1, 2, 33, VOCABULARY])
def test_padding_is_never_chosen(size):
    assert max(kept(np.zeros(size, np.float32))) < size


@pytest.mark.parametrize("top_k", [1, 2, 7, 50])
def test_top_k_keeps_exactly_so_many(logits, top_k):
    best = set(np.argsort(-logits)[:top_k].tolist())
    seen = kept(logits * 0.01, top_k=top_k)
    assert seen <= best
    assert len(seen) > 0.8 * top_k


def test_top_k_among_equals_keeps_the_first(logits):
    assert kept(np.zeros(VOCABULARY, np.float32), top_k=3) == {0, 1, 2}


@pytest.mark.parametrize("top_k", [0, -1, VOCABULARY, VOCABULARY + 1, 2**31, 2**63 - 1])
def test_top_k_off(logits, top_k):
    for index in range(20):
        assert token(logits, top_k=top_k, index=index) == token(logits, index=index)


@pytest.mark.parametrize("top_p", [0.1, 0.5, 0.9])
def test_top_p_keeps_the_smallest_set_that_reaches_it(logits, top_p):
    probabilities = np.exp(logits.astype(np.float64))
    probabilities /= probabilities.sum()
    order = np.argsort(-probabilities, kind="stable")
    count = int(np.searchsorted(np.cumsum(probabilities[order]), top_p)) + 1
    assert kept(logits, top_p=top_p) <= set(order[:count].tolist())
    # The last one kept can still be drawn.
    flat = np.full(10, -20, np.float32)
    flat[:4] = 1.0
    assert kept(flat, top_p=0.51) == {0, 1, 2}


def test_top_p_of_zero_is_the_most_likely(logits):
    assert kept(logits, top_p=0.0) == {int(logits.argmax())}


def test_min_p_is_relative_to_the_most_likely():
    logits = np.log(np.array([0.5, 0.26, 0.24], np.float32))
    assert kept(logits, min_p=0.5) == {0, 1}
    assert kept(logits, min_p=1.0) == {0}


def test_frequencies_follow_the_distribution():
    probabilities = np.array([0.5, 0.3, 0.15, 0.05])
    drawn = [token(np.log(probabilities).astype(np.float32), index=index, seed=9) for index in range(4000)]
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 4000, probabilities, atol=0.025)


def test_temperature_flattens():
    logits = np.log(np.array([0.9, 0.1], np.float32))
    share = np.mean([token(logits, temperature=2.0, index=index) for index in range(4000)])
    assert abs(share - 0.25) < 0.025


def test_a_choice_depends_on_seed_and_index_alone(logits):
    draws = {(seed, index): token(logits, seed=seed, index=index) for seed in (0, 1, 2**63) for index in range(50)}
    again = {key: token(logits, seed=key[0], index=key[1]) for key in reversed(draws)}
    assert draws == again
    assert len({tuple(draws[seed, index] for index in range(50)) for seed in (0, 1, 2**63)}) == 3


def test_uniform_numbers_are_uniform():
    numbers = np.array([draw_uniform(seed, index) for seed in range(-20, 20) for index in range(500)])
    assert numbers.min() >= 0
    assert numbers.max() < 1
    np.testing.assert_allclose(np.histogram(numbers, 10, (0, 1))[0] / numbers.size, 0.1, atol=0.01)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_logits_that_are_not_numbers_choose_nothing(logits, temperature, bad):
    logits[123] = bad
    assert token(logits, temperature=temperature) == -1


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("count", [0, 1, 5, 20])
def test_logprobs_are_the_models_own(logits, temperature, count):
    output = choose_one(logits, temperature=temperature, logprobs=count)
    expected = logits - np.log(np.exp(logits.astype(np.float64)).sum())
    np.testing.assert_allclose(output.logprobs[0], expected[output.tokens[0]], rtol=1e-5)
    order = np.argsort(-logits, kind="stable")[:count]
    np.testing.assert_array_equal(output.likely_tokens[0, :count], order)
    np.testing.assert_allclose(output.likely_logprobs[0, :count], expected[order], rtol=1e-5)


def test_more_logprobs_than_vocabulary():
    output = choose_one(np.array([1.0, 3.0, 2.0], np.float32), temperature=0, logprobs=20)
    assert output.likely_tokens[0, :3].tolist() == [1, 2, 0]


def test_a_forced_token_is_scored(logits):
    expected = logits - np.log(np.exp(logits.astype(np.float64)).sum())
    for forced in (0, 500, VOCABULARY - 1):
        output = choose_one(logits, logprobs=0, forced=forced)
        assert output.tokens[0] == forced
        np.testing.assert_allclose(output.logprobs[0], expected[forced], rtol=1e-5)

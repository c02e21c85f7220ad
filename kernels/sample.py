"""From logits to a token: greedy, or drawn among the candidates that top-k, top-p and min-p leave.

Random numbers are counter-based: the seed and the index of the generated token decide, nothing else. Log-probabilities
are of the model's own distribution, before temperature.

Record of a choice, CHOICE_FIELDS x 8 bytes: TEMPERATURE, TOP_P, MIN_P as float64, TOP_K (0: off), SEED, INDEX, TOP
(number of most likely tokens to report; -1: no log-probabilities) and FORCED (-1, or the token that is taken whatever
its probability: scoring) as int64.
Record of what was chosen, CHOSEN_FIELDS x 4 bytes: TOKEN int32 (-1: the logits are not numbers), LOGPROB float32, then
MOST_LIKELY pairs (int32 token, float32 log-probability), best first.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types

from puma.kernels.arithmetic import add, exponential, maximum, multiply, multiply_add, subtract, sum_lanes
from puma.kernels.compile import kernel
from puma.kernels.vectors import (
    LANES,
    address,
    broadcast,
    floats,
    instruction,
    load_float,
    load_floats,
    load_from,
    load_int32,
    load_int64,
    store_float,
    store_floats,
    store_int32,
)

TEMPERATURE, TOP_P, MIN_P, TOP_K, SEED, INDEX, TOP, FORCED = range(8)
CHOICE_FIELDS = 8

MOST_LIKELY = 20
TOKEN, LOGPROB, LIKELY = 0, 1, 2
CHOSEN_FIELDS = LIKELY + 2 * MOST_LIKELY

MASKED = np.float32(-1e30)
"""The logit of lanes beyond the vocabulary."""

BINS = 1 << 14
BIN_SHIFT = 16
TOP_BIN = 0x3F80
"""Weights are float32 in [0, 1]; the upper half of their bits, at most that of 1.0, orders them into bins."""


@instruction(types.float64, address)
def load_double(builder, where):
    return load_from(builder, where, ir.DoubleType())


@kernel
def mixed(value):
    """Scramble 64 bits (the finaliser of SplitMix64; Steele, Lea and Flood, 2014)."""
    value = np.uint64(value)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@kernel
def uniform(seed, index):
    """A number in [0, 1) with 53 random bits, a function of seed and index alone."""
    golden = np.uint64(0x9E3779B97F4A7C15)
    key = mixed(np.uint64(seed) + golden)
    return float(mixed(key + (np.uint64(index) + np.uint64(1)) * golden) >> np.uint64(11)) / 9007199254740992.0


@kernel
def mask_padding(logits, vocabulary, padded):
    for token in range(vocabulary, padded):
        store_float(logits + 4 * token, MASKED)


@kernel
def largest_logit(logits, padded):
    """(largest, whether all are finite) of `padded` float32, a multiple of 16."""
    largest = broadcast(MASKED)
    # x * 0 is NaN for NaN and infinity, and once NaN is in a sum it stays.
    poison = broadcast(0.0)
    for token in range(0, padded, LANES):
        x = load_floats(logits + 4 * token)
        largest = maximum(x, largest)
        poison = multiply_add(x, broadcast(0.0), poison)
    highest = MASKED
    for lane in range(LANES):
        highest = max(highest, lane_of(largest, lane))
    return highest, sum_lanes(poison) == 0


@instruction(types.float32, floats, types.int64)
def lane_of(builder, vector, lane):
    return builder.extract_element(vector, lane)


@kernel
def first_token_with(logits, value, vocabulary):
    for token in range(vocabulary):
        if load_float(logits + 4 * token) == value:
            return token
    return -1


@kernel
def log_total(logits, highest, padded):
    """log(sum(exp(logit))), summed in one fixed order."""
    total = broadcast(0.0)
    for token in range(0, padded, LANES):
        total = add(total, exponential(subtract(load_floats(logits + 4 * token), broadcast(highest))))
    return highest + np.float32(math.log(sum_lanes(total)))


@kernel
def report_most_likely(logits, vocabulary, total, count, likely):
    """Write the `count` most likely tokens, ties in order of their ids."""
    held = 0
    for token in range(vocabulary if count > 0 else 0):
        logit = load_float(logits + 4 * token)
        if held == count and not logit > load_float(likely + 8 * (held - 1) + 4):
            continue
        at = held if held < count else held - 1
        while at > 0 and logit > load_float(likely + 8 * (at - 1) + 4):
            store_int32(likely + 8 * at, load_int32(likely + 8 * (at - 1)))
            store_float(likely + 8 * at + 4, load_float(likely + 8 * (at - 1) + 4))
            at -= 1
        store_int32(likely + 8 * at, token)
        store_float(likely + 8 * at + 4, logit)
        held = min(held + 1, count)
    for at in range(held):
        store_float(likely + 8 * at + 4, load_float(likely + 8 * at + 4) - total)


@kernel
def to_weights(logits, highest, temperature, min_p, padded, weights):
    """Write probabilities relative to the largest, which has 1; those below min_p become 0."""
    # Bounded, so that the largest one's distance of 0 stays 0 however small the temperature.
    inverse = broadcast(np.float32(min(1.0 / temperature, 1e30)))
    for token in range(0, padded, LANES):
        distance = subtract(load_floats(logits + 4 * token), broadcast(highest))
        store_floats(weights + 4 * token, exponential(multiply(distance, inverse)))
    for token in range(padded):
        if load_float(weights + 4 * token) < min_p:
            store_float(weights + 4 * token, 0.0)


@kernel
def cut(weights, vocabulary, top_k, top_p):
    """The last candidate (its weight, its token) that top-k and top-p keep, in order of weight, then of id.

    Weights are counted in bins first; only the bin in which the limit falls is sorted.
    """
    counts, masses = np.zeros(BINS, np.int64), np.zeros(BINS, np.float64)
    total = 0.0
    for token in range(vocabulary):
        weight = load_float(weights + 4 * token)
        bin_number = load_int32(weights + 4 * token) >> BIN_SHIFT
        counts[bin_number] += 1
        masses[bin_number] += weight
        total += weight
    count_limit = top_k if 0 < top_k < vocabulary else vocabulary
    mass_limit = top_p * total if top_p < 1 else np.inf
    at, kept, mass = TOP_BIN, 0, 0.0
    while at > 0 and kept + counts[at] < count_limit and mass + masses[at] < mass_limit:
        kept += counts[at]
        mass += masses[at]
        at -= 1
    members = np.empty(counts[at], np.int64)
    found = 0
    for token in range(vocabulary):
        if load_int32(weights + 4 * token) >> BIN_SHIFT == at:
            # Ascending order of this number is descending order of weight, then ascending order of id.
            members[found] = ((0x7FFFFFFF - np.int64(load_int32(weights + 4 * token))) << 32) | token
            found += 1
    members.sort()
    last = vocabulary - 1
    for member in members:
        last = member & 0xFFFFFFFF
        kept += 1
        mass += load_float(weights + 4 * last)
        if kept >= count_limit or mass >= mass_limit:
            break
    return load_float(weights + 4 * last), last


@kernel
def draw(weights, vocabulary, smallest, last, fraction):
    """The token at `fraction` of the kept candidates' mass, counted in order of ids."""
    total = 0.0
    for token in range(vocabulary):
        weight = load_float(weights + 4 * token)
        if weight > smallest or (weight == smallest and token <= last):
            total += weight
    target, gathered, chosen = fraction * total, 0.0, last
    for token in range(vocabulary):
        weight = load_float(weights + 4 * token)
        if weight > smallest or (weight == smallest and token <= last):
            gathered += weight
            if gathered > target:
                return token
    return chosen


@kernel
def choose(logits, vocabulary, padded, choice, chosen, weights):
    """Choose one token from float32 logits [padded] and write what was chosen; `weights` is scratch of that size."""
    mask_padding(logits, vocabulary, padded)
    highest, finite = largest_logit(logits, padded)
    if not finite:
        store_int32(chosen + 4 * TOKEN, -1)
        return
    temperature, top = load_double(choice + 8 * TEMPERATURE), load_int64(choice + 8 * TOP)
    token = load_int64(choice + 8 * FORCED)
    if token >= 0:
        pass
    elif temperature > 0:
        top_k, top_p = load_int64(choice + 8 * TOP_K), load_double(choice + 8 * TOP_P)
        to_weights(logits, highest, temperature, load_double(choice + 8 * MIN_P), padded, weights)
        smallest, last = np.float32(0.0), np.int64(vocabulary)
        if top_p < 1 or 0 < top_k < vocabulary:
            smallest, last = cut(weights, vocabulary, top_k, top_p)
        fraction = uniform(load_int64(choice + 8 * SEED), load_int64(choice + 8 * INDEX))
        token = draw(weights, vocabulary, smallest, last, fraction)
    else:
        token = first_token_with(logits, highest, vocabulary)
    store_int32(chosen + 4 * TOKEN, token)
    if top >= 0:
        total = log_total(logits, highest, padded)
        store_float(chosen + 4 * LOGPROB, load_float(logits + 4 * token) - total)
        report_most_likely(logits, vocabulary, total, min(top, MOST_LIKELY), chosen + 4 * LIKELY)

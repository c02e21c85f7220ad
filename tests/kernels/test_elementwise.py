"""Exponential, norm, rotation and gating against NumPy."""

import numpy as np
import pytest

from puma.kernels.arithmetic import exponential, largest_magnitude, sum_lanes
from puma.kernels.compile import kernel
from puma.kernels.elementwise import rms_norm, rotate, silu_times
from puma.kernels.vectors import load_floats, store_floats
from tests.kernels import reference


@kernel
def exp_all(x):
    for at in range(0, x.size, 16):
        where = x[at:].ctypes.data
        store_floats(where, exponential(load_floats(where)))


@kernel
def magnitude(x):
    return largest_magnitude(load_floats(x.ctypes.data), load_floats(x[16:].ctypes.data))


@kernel
def lane_sum(x):
    return sum_lanes(load_floats(x.ctypes.data))


@kernel
def norm(x, weights, size, out):
    rms_norm(x.ctypes.data, weights.ctypes.data, size, x.size, np.float32(1e-5), out.ctypes.data)


@kernel
def gate(x, up):
    silu_times(x.ctypes.data, up.ctypes.data, x.size)


@kernel
def turn(head, cosines, sines, scale):
    rotate(head.ctypes.data, cosines.ctypes.data, sines.ctypes.data, cosines.size, scale)


def normal(size, seed=0):
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


def test_exponential_is_close_over_its_whole_range():
    x = np.linspace(-87, 88, 160_000, dtype=np.float32)
    expected = np.exp(x.astype(np.float64))
    exp_all(x)
    assert np.abs(x / expected - 1).max() < 2.5e-7


def test_exponential_at_its_edges():
    x = np.zeros(16, np.float32)
    x[:6] = [0, -np.inf, -1e30, -88, np.inf, np.nan]
    exp_all(x)
    assert x[0] == 1
    assert (x[1:4] < 2e-38).all()
    assert x[4] > 1e38
    assert np.isnan(x[5])


@pytest.mark.parametrize(("value", "at"), [(-9.0, 3), (9.0, 31), (np.inf, 0), (-np.nan, 17)])
def test_largest_magnitude(value, at):
    x = normal(32)
    x[at] = value
    np.testing.assert_equal(magnitude(x), np.abs(np.float32(value)))


def test_lanes_are_added_in_halves():
    x = normal(16)
    expected = x.copy()
    while expected.size > 1:
        expected = expected[: expected.size // 2] + expected[expected.size // 2 :]
    assert lane_sum(x) == expected[0]


@pytest.mark.parametrize("size", [1, 31, 32, 33, 576])
def test_norm_counts_only_what_counts(size):
    padded = -(-size // 32) * 32
    x, weights, out = (np.zeros(padded, np.float32) for _ in range(3))
    x[:size], weights[:size] = normal(size), normal(size, 1)
    norm(x, weights, size, out)
    expected = reference.rms_norm(x[:size], weights[:size], 1e-5)
    np.testing.assert_allclose(out[:size], expected, rtol=2e-6, atol=1e-6)
    assert not out[size:].any()


def test_gating():
    x, up = normal(64) * 20, normal(64, 1)
    expected = reference.silu(x.astype(np.float64)) * up
    gate(x, up)
    np.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)


def test_gating_saturates_without_overflow():
    x, up = np.full(16, -1e4, np.float32), np.ones(16, np.float32)
    x[8:] = 1e4
    gate(x, up)
    np.testing.assert_allclose(x, [0] * 8 + [1e4] * 8, atol=1e-20)


@pytest.mark.parametrize("dim", [32, 64, 96, 128])
def test_rotation(dim):
    head, angles = normal(dim), normal(dim // 2, 1)
    cosines, sines = np.cos(angles), np.sin(angles)
    expected = reference.rotate(head[None, None], cosines[None], sines[None])[0, 0] * 0.125
    turn(head, cosines, sines, np.float32(0.125))
    np.testing.assert_allclose(head, expected, rtol=1e-5, atol=1e-6)

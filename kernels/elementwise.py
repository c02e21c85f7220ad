"""Norm, rotary positions and gating: work on one row, sixteen values at a time.

Rows are padded with zeros to a multiple of 32 values, so no loop has a tail.
"""

import math

import numpy as np

from puma.kernels.arithmetic import add, divide, exponential, multiply, multiply_add, subtract, sum_lanes
from puma.kernels.compile import kernel
from puma.kernels.static import bytes_of
from puma.kernels.tiles import store_narrowed
from puma.kernels.vectors import LANES, broadcast, load_float, load_floats, store_floats


@kernel
def rms_norm(source, weights, size, padded, epsilon, target):
    """target = source / sqrt(mean(source**2) + epsilon) * weights; the mean is over `size` values."""
    even, odd = broadcast(0.0), broadcast(0.0)
    for k in range(0, padded, 2 * LANES):
        low, high = load_floats(source + 4 * k), load_floats(source + 4 * (k + LANES))
        even, odd = multiply_add(low, low, even), multiply_add(high, high, odd)
    mean = sum_lanes(add(even, odd)) / np.float32(size)
    scale = broadcast(np.float32(1.0) / np.float32(math.sqrt(mean + epsilon)))
    for k in range(0, padded, LANES):
        store_floats(
            target + 4 * k,
            multiply(multiply(load_floats(source + 4 * k), scale), load_floats(weights + 4 * k)),
        )


@kernel
def silu_times(gate, up, count):
    """gate = gate * sigmoid(gate) * up, `count` float32, a multiple of 16."""
    zero, one = broadcast(0.0), broadcast(1.0)
    for k in range(0, 4 * count, 4 * LANES):
        g = load_floats(gate + k)
        sigmoid = divide(one, add(one, exponential(subtract(zero, g))))
        store_floats(gate + k, multiply(multiply(g, sigmoid), load_floats(up + k)))


@kernel
def rotate(head, cosines, sines, half, scale):
    """Rotate the pairs (head[i], head[i + half]) of one head in place, and scale: RoPE in its half-split form.

    `half` is a multiple of 16; cosines and sines are float32 [half] of the row's position.
    """
    factor = broadcast(scale)
    for k in range(0, 4 * half, 4 * LANES):
        low, high = load_floats(head + k), load_floats(head + 4 * half + k)
        cosine, sine = multiply(load_floats(cosines + k), factor), multiply(load_floats(sines + k), factor)
        store_floats(head + k, subtract(multiply(low, cosine), multiply(high, sine)))
        store_floats(head + 4 * half + k, add(multiply(high, cosine), multiply(low, sine)))


@kernel
def store_key(element, head, target, head_dim):
    """Write one head's float32 key into its lane of a key tile: `head_dim` elements, sixteen of them apart."""
    for d in range(head_dim):
        store_narrowed(element, target + bytes_of(element) * LANES * d, load_float(head + 4 * d))


@kernel
def store_value(element, head, target, head_dim):
    """Write one head's float32 value as `head_dim` consecutive elements."""
    for d in range(0, head_dim, LANES):
        store_narrowed(element, target + bytes_of(element) * d, load_floats(head + 4 * d))


@kernel
def copy_row(source, target, padded):
    for k in range(0, 4 * padded, 4 * LANES):
        store_floats(target + k, load_floats(source + k))

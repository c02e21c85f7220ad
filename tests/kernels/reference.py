"""The slow twins: what each kernel computes, in plain NumPy."""

import numpy as np


def q4_0(file: np.ndarray) -> np.ndarray:
    """float64 [outputs, inner] of Q4_0 bytes, uint8 [outputs, blocks * 18]."""
    blocks = file.reshape(file.shape[0], -1, 18)
    scale = blocks[..., :2].copy().view(np.float16).astype(np.float64)
    nibbles = np.concatenate([blocks[..., 2:] & 15, blocks[..., 2:] >> 4], -1).astype(np.float64)
    return (scale * (nibbles - 8)).reshape(file.shape[0], -1)


def q4_1(file: np.ndarray) -> np.ndarray:
    """float64 [outputs, inner] of Q4_1 bytes, uint8 [outputs, blocks * 20]."""
    blocks = file.reshape(file.shape[0], -1, 20)
    scale, minimum = (blocks[..., at : at + 2].copy().view(np.float16).astype(np.float64) for at in (0, 2))
    nibbles = np.concatenate([blocks[..., 4:] & 15, blocks[..., 4:] >> 4], -1).astype(np.float64)
    return (scale * nibbles + minimum).reshape(file.shape[0], -1)


def q8_0(file: np.ndarray) -> np.ndarray:
    """float64 [outputs, inner] of Q8_0 bytes, uint8 [outputs, blocks * 34]."""
    blocks = file.reshape(file.shape[0], -1, 34)
    scale = blocks[..., :2].copy().view(np.float16).astype(np.float64)
    return (scale * blocks[..., 2:].view(np.int8)).reshape(file.shape[0], -1)


def f32(file: np.ndarray) -> np.ndarray:
    return file.view(np.float32).astype(np.float64)


def f16(file: np.ndarray) -> np.ndarray:
    return file.view(np.float16).astype(np.float64)


def bf16(file: np.ndarray) -> np.ndarray:
    return (file.view(np.uint16).astype(np.uint32) << 16).view(np.float32).astype(np.float64)


DEQUANTISE = {0: f32, 1: f16, 2: q4_0, 3: q4_1, 8: q8_0, 30: bf16}
"""By GGML's number of the format."""

ROW_BYTES = {
    0: lambda inner: 4 * inner,
    1: lambda inner: 2 * inner,
    2: lambda inner: inner // 32 * 18,
    3: lambda inner: inner // 32 * 20,
    8: lambda inner: inner // 32 * 34,
    30: lambda inner: 2 * inner,
}

SCALES_AT = {2: (18, (0,)), 3: (20, (0, 2)), 8: (34, (0,))}
"""Block size, and where its float16 numbers are."""


def random_weights(code: int, outputs: int, inner: int, rng: np.random.Generator) -> np.ndarray:
    """Random bytes of a format whose numbers are finite and of ordinary size: uint8 [outputs, bytes of a row]."""
    if code in (0, 1, 30):
        values = (rng.standard_normal((outputs, inner)) / np.sqrt(inner)).astype(np.float32)
        if code == 0:
            return values.view(np.uint8)
        if code == 1:
            return values.astype(np.float16).view(np.uint8)
        return (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    file = rng.integers(0, 256, (outputs, ROW_BYTES[code](inner)), dtype=np.uint8)
    size, places = SCALES_AT[code]
    blocks = file.reshape(outputs, -1, size)
    for place in places:
        size_of_one = 0.02 if code in (2, 3) else 0.0015
        scales = (rng.standard_normal(blocks.shape[:2]) * size_of_one).astype(np.float16)
        blocks[..., place : place + 2] = scales[..., None].view(np.uint8)
    return file


def as_quantised(x: np.ndarray) -> np.ndarray:
    """float64 [rows, n]: what float32 rows are worth after quantisation (see kernels/activations.py)."""
    blocks = x.reshape(x.shape[0], -1, 32).astype(np.float32)
    largest = np.abs(blocks).max(-1, keepdims=True)
    scaled = blocks * np.divide(np.float32(127), largest, out=np.zeros_like(largest), where=largest != 0)
    rounded = np.rint(scaled)
    rest = np.minimum(np.rint((scaled - rounded) * 256), 127) / 256
    limit = 4 * np.sqrt((x.astype(np.float32) ** 2).mean(-1))[:, None, None]
    return ((rounded + np.where(largest > limit, rest, 0)).astype(np.float64) * (largest / 127)).reshape(x.shape)


def rms_norm(x: np.ndarray, weights: np.ndarray, epsilon: float) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weights


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def rotate(heads: np.ndarray, cosines: np.ndarray, sines: np.ndarray) -> np.ndarray:
    """Half-split RoPE: heads [rows, heads, d], cosines and sines [rows, d / 2]."""
    low, high = np.split(heads, 2, axis=-1)
    cosines, sines = cosines[:, None], sines[:, None]
    return np.concatenate([low * cosines - high * sines, high * cosines + low * sines], -1)


def attention(queries: np.ndarray, keys: np.ndarray, values: np.ndarray, first: int) -> np.ndarray:
    """Causal attention of one sequence.

    queries [n, heads, d] at positions first, first + 1, ...; keys and values [first + n, kv_heads, d]; grouped.
    """
    n, heads, dim = queries.shape
    group = heads // keys.shape[1]
    out = np.zeros(queries.shape)
    for row in range(n):
        for head in range(heads):
            seen = first + row + 1
            scores = keys[:seen, head // group] @ queries[row, head] / np.sqrt(dim)
            weights = np.exp(scores - scores.max())
            out[row, head] = weights @ values[:seen, head // group] / weights.sum()
    return out

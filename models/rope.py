"""Rotary position embeddings as tables of cosines and sines.

Source: Su et al., "RoFormer", 2021. Pair i of a head turns by position * base ** (-2 i / head_dim).
"""

import numpy as np
from numpy.typing import NDArray


def rope_bytes(positions: int, head_dim: int) -> int:
    """Bytes of both tables."""
    return 2 * 4 * positions * (head_dim // 2)


def rope_tables(
    positions: int, head_dim: int, base: float, scale: float, factors: NDArray[np.float32] | None
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Cosines and sines, float32 [positions, head_dim / 2].

    Positions are divided by `scale`; `factors`, [head_dim / 2], divide the frequencies one by one (Llama 3's scaling
    comes so in GGUF files, as the tensor rope_freqs.weight).
    """
    frequencies = base ** (-np.arange(0, head_dim, 2, dtype=np.float64) / head_dim) / scale
    if factors is not None:
        frequencies = frequencies / factors
    angles = np.arange(positions, dtype=np.float64)[:, None] * frequencies
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

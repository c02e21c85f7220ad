"""Products with packed weights: against NumPy, over odd shapes, and the same bits in every grouping."""

import numpy as np
import pytest

from puma.kernels.activations import RECORD, quantise
from puma.kernels.compile import entry, kernel
from puma.kernels.embedding import embed
from puma.kernels.matmul import multiply_matrix
from puma.kernels.packing import SUPPORTED_CODES, pack, takes_floats, tile_bytes
from tests.kernels import reference

CODES = sorted(SUPPORTED_CODES)
QUANTISED = [code for code in CODES if not takes_floats(code)]


@entry("void(int64[::1], int64, float32[:, ::1], float32[:, ::1], uint8[:, ::1], int64, int64, boolean)")
def product(matrix, rows, x, out, records, thread, threads, accumulate):
    for row in range(rows):
        quantise(x[row].ctypes.data, x.shape[1], records[row].ctypes.data, np.float32(4.0))
    inputs = (records.ctypes.data, records.strides[0], x.ctypes.data, x.strides[0])
    multiply_matrix(thread, threads, matrix, rows, inputs, (out.ctypes.data, out.strides[0]), accumulate)


@kernel
def embed_row(matrix, token, out):
    embed(matrix, token, out.ctypes.data)


class Packed:
    """Random weights of one format, packed, with their value in float64."""

    def __init__(self, code, outputs, inner, file=None, seed=0):
        rng = np.random.default_rng(seed)
        self.file = reference.random_weights(code, outputs, inner, rng) if file is None else file
        self.value = reference.DEQUANTISE[code](self.file)
        width = tile_bytes(code, inner)
        self.tiles = np.zeros((-(-outputs // 16), width), np.uint8)
        pack(code, self.file, inner, np.arange(outputs), self.tiles)
        self.code, self.outputs, self.inner = code, outputs, inner
        self.row = np.array([code, outputs, inner, self.tiles.ctypes.data, width])

    def times(self, x, threads=1, out=None):
        """float32 [rows, outputs] of float32 [rows, inner]."""
        padded = -(-self.inner // 32) * 32
        full = np.zeros((len(x), padded), np.float32)
        full[:, : self.inner] = x
        records = np.zeros((len(x), padded // 32 * RECORD), np.uint8)
        wide = np.zeros((len(x), self.tiles.shape[0] * 16), np.float32)
        if out is not None:
            wide[:, : self.outputs] = out
        for thread in range(threads):
            product(self.row, len(x), full, wide, records, thread, threads, out is not None)
        return wide[:, : self.outputs].copy()

    def expected(self, x):
        seen = x.astype(np.float64) if takes_floats(self.code) else reference.as_quantised(x)
        return seen @ self.value.T


def activations(rows, inner, seed=1):
    """Ordinary rows, among them some with a value far above the others, as real models have them."""
    x = np.random.default_rng(seed).standard_normal((rows, inner)).astype(np.float32)
    x[::3, inner // 2] *= 40
    return x


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(("outputs", "inner"), [(16, 32), (48, 96), (40, 64), (1, 32), (130, 576)])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 7, 17])
def test_matches_numpy(code, outputs, inner, rows):
    weights, x = Packed(code, outputs, inner), activations(rows, inner)
    expected = weights.expected(x)
    np.testing.assert_allclose(weights.times(x), expected, rtol=1e-5, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("code", [code for code in CODES if takes_floats(code)])
@pytest.mark.parametrize("inner", [1, 31, 33])
def test_float_formats_take_any_inner_size(code, inner):
    weights, x = Packed(code, 20, inner), activations(3, inner)
    np.testing.assert_allclose(weights.times(x), weights.expected(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("code", CODES)
def test_a_row_has_the_same_bits_in_any_company(code):
    weights, x = Packed(code, 64, 96), activations(300, 96)
    together = weights.times(x)
    alone = np.concatenate([weights.times(x[row : row + 1]) for row in range(len(x))])
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_array_equal(together, weights.times(x, threads=3))


@pytest.mark.parametrize("code", CODES)
def test_adds_to_the_residual(code):
    weights, x = Packed(code, 40, 64), activations(5, 64)
    before = activations(5, 40, seed=3)
    np.testing.assert_array_equal(weights.times(x, out=before), weights.times(x) + before)


@pytest.mark.parametrize("code", QUANTISED)
@pytest.mark.parametrize("byte", [0x00, 0x7F, 0x80, 0xFF])
def test_extreme_weights_meet_extreme_activations_exactly(code, byte):
    file = np.full((16, reference.ROW_BYTES[code](64)), byte, np.uint8)
    size, places = reference.SCALES_AT[code]
    for place in places:
        file.reshape(16, -1, size)[..., place : place + 2] = np.array([1.0], np.float16).view(np.uint8)
    weights = Packed(code, 16, 64, file)
    for sign in (-1, 1):
        x = np.full((2, 64), 127.0 * sign, np.float32)
        np.testing.assert_allclose(weights.times(x), weights.expected(x), rtol=1e-6)


@pytest.mark.parametrize("code", QUANTISED)
def test_blocks_with_outliers_keep_sixteen_bits(code):
    weights, x = Packed(code, 32, 256), np.random.default_rng(5).standard_normal((4, 256)).astype(np.float32)
    x[:, 7] = 60
    exact = x[:, :32].astype(np.float64) @ weights.value[:, :32].T
    x[:, 32:] = 0
    error = np.abs(weights.times(x) - exact).max() / np.abs(exact).max()
    assert error < 2e-4


@pytest.mark.parametrize("code", QUANTISED)
def test_a_row_of_zeros_yields_zeros(code):
    assert not Packed(code, 32, 64).times(np.zeros((3, 64), np.float32)).any()


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("broken", ["weight", "activation"])
def test_not_a_number_is_not_hidden(code, broken):
    file = reference.random_weights(code, 16, 64, np.random.default_rng(0)).copy()
    x = activations(5, 64)
    if broken == "activation":
        x[2, 40] = np.nan
    elif code in reference.SCALES_AT:
        file[3, :2] = np.array([np.nan], np.float16).view(np.uint8)
    else:
        # All bits set is NaN in every float format.
        file[3, :4] = 0xFF
    out = Packed(code, 16, 64, file).times(x)
    assert np.isnan(out[2] if broken == "activation" else out[:, 3]).all()


@pytest.mark.parametrize("code", CODES)
def test_an_embedding_is_a_row_of_the_matrix(code):
    weights = Packed(code, 40, 64)
    out = np.zeros(64, np.float32)
    for token in (0, 15, 16, 39):
        embed_row(weights.row, token, out)
        np.testing.assert_allclose(out, weights.value[token], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("code", CODES)
def test_packing_can_reorder_outputs(code):
    file = reference.random_weights(code, 32, 64, np.random.default_rng(0))
    order = np.random.default_rng(1).permutation(32)
    weights, shuffled = Packed(code, 32, 64, file), Packed(code, 32, 64, file)
    shuffled.tiles[:] = 0
    pack(code, file, 64, order, shuffled.tiles)
    x = activations(2, 64)
    np.testing.assert_array_equal(shuffled.times(x), weights.times(x)[:, order])

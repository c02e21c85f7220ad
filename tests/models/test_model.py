"""A whole step on tiny models: against NumPy, and the same bits however it is cut into steps."""

import numpy as np
import pytest

from puma.config.engine import EngineConfig
from puma.config.errors import ConfigError
from puma.kernels.packing import SUPPORTED_CODES
from puma.models.errors import ModelFileError
from puma.models.formats.weight_types import SUPPORTED
from puma.models.model import load_model
from tests.models.batches import Batches, bits
from tests.models.formats.gguf_writer import write_gguf
from tests.tiny import KV_DTYPES, Shape, Tiny, metadata

PROMPT = [(7 * n + 3) % 250 + 2 for n in range(300)]


def load(tiny, **options):
    options = {"memory_pool_bytes": 4 << 20, "threads": 2} | options
    return load_model(tiny.path, EngineConfig(**options))


@pytest.fixture
def tiny(tmp_path):
    return Tiny(tmp_path / "tiny.gguf", 3)


@pytest.fixture(params=KV_DTYPES)
def model(tiny, request):
    model = load(tiny, kv_dtype=request.param)
    yield model
    model.close()


def log_softmax(logits):
    return logits - logits.max() - np.log(np.exp(logits - logits.max()).sum())


@pytest.mark.parametrize("code", sorted(SUPPORTED_CODES))
@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_matches_numpy(tmp_path, code, tied, kv_dtype):
    tiny = Tiny(tmp_path / "tiny.gguf", code, Shape(tied=tied))
    model = load(tiny, kv_dtype=kv_dtype)
    output = Batches(model).step((0, 0, PROMPT[:150]))
    expected = log_softmax(tiny.logits(PROMPT[:150], kv_dtype)[-1])
    # Rounding to int8 can go either way where float32 and float64 differ in the last bit.
    tolerance = 1e-3 if code in (0, 1, 30) else 1e-1
    np.testing.assert_allclose(output.likely_logprobs[0], expected[output.likely_tokens[0]], atol=tolerance)
    np.testing.assert_allclose(np.sort(expected)[-20:][::-1], output.likely_logprobs[0], atol=tolerance)
    model.close()


@pytest.mark.parametrize(
    ("heads", "kv_heads", "head_dim"), [(1, 1, 96), (2, 1, 32), (3, 1, 96), (5, 1, 32), (6, 2, 96), (8, 1, 64)]
)
@pytest.mark.parametrize(("kv_dtype", "tolerance"), [("f16", 1e-3), ("f32", 1e-5)])
def test_every_grouping_of_heads(tmp_path, heads, kv_heads, head_dim, kv_dtype, tolerance):
    tiny = Tiny(tmp_path / "tiny.gguf", 0, Shape(layers=1, heads=heads, kv_heads=kv_heads, head_dim=head_dim))
    model = load(tiny, kv_dtype=kv_dtype)
    batches = Batches(model)
    expected = tiny.logits(PROMPT[:40], kv_dtype)
    for position, token in enumerate(PROMPT[:40]):
        output = batches.step((1, position, [token]))
        wanted = log_softmax(expected[position])[output.likely_tokens[0]]
        np.testing.assert_allclose(output.likely_logprobs[0], wanted, rtol=0, atol=tolerance)
    model.close()


def test_the_same_bits_token_by_token_in_chunks_and_at_once(model):
    batches = Batches(model)
    alone = [bits(batches.step((0, position, [token]))) for position, token in enumerate(PROMPT)]
    for length in (1, 2, 15, 16, 17, 127, 128, 129, 255, 256, 257, 300):
        assert bits(batches.step((1, 0, PROMPT[:length]))) == alone[length - 1], length
    for cut in (1, 16, 100, 128, 299):
        batches.step((2, 0, PROMPT[:cut]))
        assert bits(batches.step((2, cut, PROMPT[cut:]))) == alone[-1], cut


def test_the_same_bits_in_a_ragged_batch(model):
    batches = Batches(model)
    alone = {length: bits(batches.step((0, 0, PROMPT[:length]))) for length in (1, 20, 130, 131)}
    batches.step((0, 0, PROMPT[:130]))
    output = batches.step((1, 0, PROMPT[:20]), (0, 130, PROMPT[130:131]), (2, 0, PROMPT[:1]), (3, 0, PROMPT[:130]))
    assert [bits(output, sample) for sample in range(4)] == [alone[20], alone[131], alone[1], alone[130]]


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_the_same_bits_on_any_number_of_threads_and_any_block_size(tiny, kv_dtype):
    seen = set()
    for threads in (1, 2, 3, 5):
        for tokens_per_block in (16, 48):
            model = load(tiny, threads=threads, tokens_per_block=tokens_per_block, kv_dtype=kv_dtype)
            batches = Batches(model)
            batches.step((1, 0, PROMPT[:140]))
            seen.add(bits(batches.step((1, 140, PROMPT[140:141]), (0, 0, PROMPT[:60]))))
            model.close()
    assert len(seen) == 1


def test_many_long_sequences_may_share_a_small_pool(tiny):
    model = load(tiny, memory_pool_bytes=512 * 512, max_batch_size=32)
    assert model.plan.tokens == 512
    batches = Batches(model)
    batches.tables = np.tile(np.arange(model.plan.blocks, dtype=np.int32), (32, 1))
    batches.step((0, 0, PROMPT))
    alone = [bits(batches.step((0, 300 + n, [n + 5]))) for n in range(200)][-1]
    output = batches.step(*((slot, 499, [204]) for slot in range(32)))
    assert {bits(output, slot) for slot in range(32)} == {alone}
    model.close()


def test_a_slot_continues_with_the_token_it_sampled(model):
    batches = Batches(model)
    first = batches.step((0, 0, PROMPT[:10]))
    told = bits(batches.step((1, 0, [*PROMPT[:10], int(first.tokens[0])])))
    batches.step((0, 0, PROMPT[:10]))
    assert bits(batches.step((0, 10, [-1]))) == told


def test_a_broken_weight_is_reported_and_spares_the_others(tmp_path):
    tiny = Tiny(tmp_path / "tiny.gguf", 8)
    shape, code, raw = tiny.tensors["token_embd.weight"]
    raw = bytearray(raw)
    row = len(raw) // shape[1]
    raw[5 * row : 5 * row + 2] = np.array([np.nan], np.float16).tobytes()
    tiny.tensors["output.weight"] = tiny.tensors["token_embd.weight"]
    tiny.tensors["token_embd.weight"] = (shape, code, bytes(raw))
    write_gguf(tiny.path, metadata(tiny.shape), tiny.tensors)
    model = load(tiny)
    batches = Batches(model)
    well = bits(batches.step((0, 0, [7, 8, 9])))
    output = batches.step((1, 0, [7, 5, 9]), (2, 0, [7, 8, 9]))
    assert output.tokens[0] == -1
    assert bits(output, 1) == well
    # The poisoned blocks do not reach whoever gets them next.
    batches.step((1, 0, [7]))
    assert bits(batches.step((1, 1, [8]), (3, 0, [9]))) == bits(batches.step((0, 0, [7, 8])))
    model.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("blk.1.ffn_up.weight"), "blk.1.ffn_up.weight is missing"),
        (lambda t: t.update({"blk.0.attn_q.bias": ((128,), 0, bytes(512))}), "attn_q.bias"),
        (lambda t: t.update({"output_norm.weight": ((32,), 0, bytes(128))}), "shape [32], expected [64]"),
    ],
)
def test_tensors_that_do_not_fit_the_architecture(tmp_path, change, message):
    tiny = Tiny(tmp_path / "tiny.gguf")
    change(tiny.tensors)
    write_gguf(tiny.path, metadata(tiny.shape), tiny.tensors)
    with pytest.raises(ModelFileError) as caught:
        load(tiny)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("general.architecture", "mamba"),
        ("llama.attention.head_count", 0),
        ("llama.attention.head_count_kv", 3),
        ("llama.attention.key_length", 33),
        ("llama.rope.scaling.type", "yarn"),
        ("llama.block_count", "two"),
        ("llama.attention.layer_norm_rms_epsilon", -1.0),
        ("tokenizer.ggml.pre", "a-new-one"),
    ],
)
def test_hyperparameters_that_cannot_be_served(tmp_path, key, value):
    tiny = Tiny(tmp_path / "tiny.gguf")
    write_gguf(tiny.path, metadata(tiny.shape) | {key: value}, tiny.tensors)
    with pytest.raises(ModelFileError) as caught:
        load(tiny)
    assert str(tiny.path) in str(caught.value)
    assert key.removeprefix("general.") in str(caught.value)


def test_what_the_reader_lets_through_can_be_computed():
    assert {int(weight_type) for weight_type in SUPPORTED} == SUPPORTED_CODES


def test_a_context_longer_than_the_models_is_refused(tiny):
    with pytest.raises(ConfigError, match="must be 1 to 512: the model's own context"):
        load(tiny, context_length=513)


def test_a_pool_larger_than_the_machine_is_refused(tiny):
    with pytest.raises(ConfigError, match="of memory are available, and the model takes"):
        load(tiny, memory_pool_bytes=1 << 50)


def test_a_pool_smaller_than_a_block_is_refused(tiny):
    with pytest.raises(ConfigError, match="must be 8192 to "):
        load(tiny, memory_pool_bytes=8191)

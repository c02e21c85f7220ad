"""The KV array: as large as the plan says, and what stands in it where, to the bit."""

import numpy as np
import pytest

from puma.config.engine import EngineConfig
from puma.config.memory import VALUE_BYTES
from puma.models.model import load_model
from tests.models.batches import Batches
from tests.tiny import KV_DTYPES, Shape, Tiny

PROMPT = [(7 * n + 3) % 250 + 2 for n in range(150)]


def first_layer(model, kv_dtype, slot, count):
    """Keys and values of a slot's first `count` tokens, as they are cached: [tokens, kv_heads, head_dim]."""
    machine, geometry, plan = model._machine, model.geometry, model.plan
    tile = (plan.tokens_per_block * plan.blocks // 16, geometry.kv_heads)
    keys, values = (
        array[: array.size // geometry.layers].view(KV_DTYPES[kv_dtype]) for array in (machine.keys, machine.values)
    )
    at = np.arange(count)
    block = Batches(model).tables[slot][at // plan.tokens_per_block]
    tiles, lanes = (block * plan.tokens_per_block + at % plan.tokens_per_block) // 16, at % 16
    return (
        keys.reshape(*tile, geometry.head_dim, 16)[tiles, :, :, lanes],
        values.reshape(*tile, 16, geometry.head_dim)[tiles, :, lanes],
    )


@pytest.mark.parametrize("tokens_per_block", [16, 48])
@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(1, 1, 32), (6, 3, 96), (10, 5, 64)])
def test_cached_keys_and_values(tmp_path, tokens_per_block, heads, kv_heads, head_dim):
    tiny = Tiny(tmp_path / "tiny.gguf", 0, Shape(heads=heads, kv_heads=kv_heads, head_dim=head_dim))
    cached = {}
    for kv_dtype in KV_DTYPES:
        config = EngineConfig(
            memory_pool_bytes=8 << 20, threads=2, kv_dtype=kv_dtype, tokens_per_block=tokens_per_block
        )
        model = load_model(tiny.path, config)
        batches = Batches(model)
        batches.step((1, 0, PROMPT[:133]), (0, 0, PROMPT[5:20]))
        for position in range(133, 150):
            batches.step((1, position, PROMPT[position : position + 1]))
        cached[kv_dtype] = first_layer(model, kv_dtype, 1, len(PROMPT))
        model.close()
    _, *expected = tiny.first_layer(PROMPT)
    for half, single, exact in zip(cached["f16"], cached["f32"], expected, strict=True):
        np.testing.assert_allclose(single, exact, rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(half, single.astype(np.float16))
        assert (single != half).any()


@pytest.mark.parametrize("kv_dtype", KV_DTYPES)
def test_the_real_models_arrays_hold_what_the_plan_says(smollm2_path, kv_dtype):
    model = load_model(smollm2_path, EngineConfig(threads=2, kv_dtype=kv_dtype))
    try:
        assert model.plan.token_bytes == 30 * 2 * 3 * 64 * VALUE_BYTES[kv_dtype]
        assert model._machine.keys.nbytes + model._machine.values.nbytes == model.plan.pool_bytes
        # The last block of the pool can be used.
        batches = Batches(model)
        batches.tables[0, 0] = model.plan.blocks - 1
        assert np.isfinite(batches.step((0, 0, PROMPT[:16])).logprobs).all()
        keys, values = model._machine.keys, model._machine.values
        assert keys[-1024:].any()
        assert values[-1024:].any()
    finally:
        model.close()

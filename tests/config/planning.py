"""The model and the machine that proposals are tested with."""

from puma.config.fit import check_fit
from puma.config.memory import VALUE_BYTES
from puma.config.plan import ModelFacts, ModelPlan

MIB, GIB = 2**20, 2**30
SMOLLM2 = ModelFacts(
    name="smollm2:135m",
    architecture="llama",
    source="/models/smollm2.gguf",
    remote=False,
    stored_bytes=97_000_000,
    weight_bytes=98_000_000,
    layers=30,
    kv_heads=3,
    head_dim=64,
    context_length=8192,
    vocabulary_size=49152,
)
SCRATCH = 20 * MIB


def planner(available):
    """The plan of a configuration where so much memory is available."""

    def plan(config):
        geometry = SMOLLM2.geometry(VALUE_BYTES[config.kv_dtype])
        others = SMOLLM2.weight_bytes + SCRATCH
        memory, context = check_fit(geometry, config, SMOLLM2.context_length, others, available)
        return ModelPlan(
            facts=SMOLLM2,
            memory=memory,
            kv_dtype=config.kv_dtype,
            memory_pool_bytes=config.memory_pool_bytes,
            context_length=context,
            scratch_bytes=SCRATCH,
            process_bytes=0,
            available_bytes=available,
            usable_bytes=available,
        )

    return plan


def room(available):
    return available - SMOLLM2.weight_bytes - SCRATCH

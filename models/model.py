"""LoadedModel: a model that can answer: its text side, its program and weights, its KV array, and one step."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from puma.config.engine import EngineConfig
from puma.config.fit import check_fit, memory_refused
from puma.config.machine import available_bytes
from puma.config.memory import VALUE_BYTES
from puma.config.plan import ModelPlan
from puma.kernels import step as at
from puma.kernels.compile import compile_entries
from puma.kernels.cpu import LOWERING
from puma.kernels.sample import CHOSEN_FIELDS
from puma.kernels.threads import Team
from puma.models.errors import ModelFileError
from puma.models.formats.gguf import read_gguf
from puma.models.machine import Machine
from puma.models.outline import Outline, read_outline
from puma.models.plan import available_cores, limits_of, plan_model
from puma.models.rope import rope_tables
from puma.models.step import StepInput, StepOutput, read_chosen
from puma.models.tensors import Tensors

Progress = Callable[[str, float], None]
"""Called with a stage, "kernels" and then "weights", and the part of it that is done, 0 to 1."""


class LoadedModel:
    """Steps may be run by one thread only; everything else is read-only."""

    def __init__(self, outline: Outline, footprint: ModelPlan, config: EngineConfig) -> None:
        """`outline` has its weights packed. Raises MemoryError."""
        shape, plan = outline.shape, footprint.memory
        self.name, self.text = footprint.facts.name, outline.text
        self.footprint, self.plan = footprint, plan
        self.geometry = footprint.facts.geometry(VALUE_BYTES[config.kv_dtype])
        self.vocabulary_size = shape.tokens
        self.context_length = footprint.context_length
        self.limits = limits_of(config, self.context_length)
        self.instructions = LOWERING
        rope = rope_tables(self.context_length, shape.head_dim, shape.rope_base, shape.rope_scale, outline.rope_factors)
        self._machine = Machine(outline.program, shape, self.geometry, plan, self.limits, rope)
        self._last_tokens = np.zeros(self.limits.samples, np.int32)
        self._team = Team(self._machine.table, self._machine.shared, self.limits.threads)

    def step(self, batch: StepInput) -> StepOutput:
        """Run one step; the interpreter's lock is released until it ends."""
        chosen = np.zeros((len(batch.sample_rows), CHOSEN_FIELDS), np.int32)
        step = self._machine.step
        step[at.ROWS], step[at.RUN_TOTAL] = len(batch.tokens), len(batch.runs)
        step[at.SAMPLE_TOTAL] = len(batch.sample_rows)
        for field, array in (
            (at.TOKENS, batch.tokens),
            (at.POSITIONS, batch.positions),
            (at.ROW_SLOTS, batch.row_slots),
            (at.RUNS, batch.runs),
            (at.SAMPLE_ROWS, batch.sample_rows),
            (at.SAMPLE_SLOTS, batch.sample_slots),
            (at.TABLES, batch.tables),
            (at.LAST_TOKENS, self._last_tokens),
            (at.CHOICES, batch.choices),
            (at.CHOSEN, chosen),
        ):
            step[field] = array.ctypes.data
        step[at.TABLE_STRIDE] = batch.tables.strides[0]
        self._team.run()
        return read_chosen(chosen)

    def close(self) -> None:
        """End the helper threads; no step may be running."""
        self._team.close()


def load_model(path: Path, config: EngineConfig, *, progress: Progress = lambda stage, part: None) -> LoadedModel:
    """Read, check and pack a model, and compile what it needs. Raises ModelFileError or ConfigError."""
    with read_gguf(path) as file:
        outline = read_outline(file, Tensors.of(file))
        facts = outline.facts(path.stem, str(path), remote=False)
        plan = plan_model(outline, facts, config, available_bytes())
        cores = available_cores()
        # Only now: what is wrong with a file is told before anyone has waited for the compiler.
        compile_entries(lambda part: progress("kernels", part), min(config.threads or cores, cores))
        try:
            outline.program.pack(lambda part: progress("weights", part))
        except MemoryError:
            raise ModelFileError(f"{path}: there is not enough memory for its weights") from None
    # Once more: the weights have taken theirs, and to touch pages that are not there would end some process.
    geometry = facts.geometry(VALUE_BYTES[config.kv_dtype])
    check_fit(geometry, config, plan.facts.context_length, plan.scratch_bytes, available_bytes())
    try:
        return LoadedModel(outline, plan, config)
    except MemoryError:
        raise memory_refused(config, available_bytes()) from None

"""LoadedModel: a model that can answer: its text side, its program and weights, its KV array, and one step."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from puma.config.engine import EngineConfig
from puma.config.fit import check_fit, memory_refused
from puma.config.machine import available_bytes
from puma.config.memory import VALUE_BYTES, KVGeometry, MemoryPlan
from puma.kernels import step as at
from puma.kernels.compile import compile_entries
from puma.kernels.cpu import LOWERING
from puma.kernels.sample import CHOSEN_FIELDS
from puma.kernels.threads import Team
from puma.models.architectures import llama
from puma.models.architectures.hyperparameters import Hyperparameters, Metadata, read_hyperparameters
from puma.models.errors import ModelFileError
from puma.models.formats.gguf import GGUFFile, read_gguf
from puma.models.machine import Machine
from puma.models.program import Program
from puma.models.rope import rope_tables
from puma.models.sizes import Limits
from puma.models.step import StepInput, StepOutput, read_chosen
from puma.models.tensors import Tensors
from puma.models.text.model_text import ModelText

Progress = Callable[[str, float], None]
"""Called with a stage, "kernels" and then "weights", and the part of it that is done, 0 to 1."""

ARCHITECTURES = {"llama": llama.build}


class LoadedModel:
    """Steps may be run by one thread only; everything else is read-only."""

    def __init__(
        self,
        name: str,
        text: ModelText,
        shape: Hyperparameters,
        program: Program,
        geometry: KVGeometry,
        plan: MemoryPlan,
        limits: Limits,
        rope: tuple[NDArray[np.float32], NDArray[np.float32]],
    ) -> None:
        self.name, self.text = name, text
        self.geometry, self.plan = geometry, plan
        self.vocabulary_size = shape.tokens
        self.context_length = limits.context
        self.limits = limits
        self.instructions = LOWERING
        self._machine = Machine(program, shape, geometry, plan, limits, rope)
        self._last_tokens = np.zeros(limits.samples, np.int32)
        self._team = Team(self._machine.table, self._machine.shared, limits.threads)

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
        file.check_types()
        text = read_text(file)
        shape = hyperparameters(file, text.tokenizer.vocabulary_size)
        geometry = KVGeometry(shape.layers, shape.kv_heads, shape.head_dim, VALUE_BYTES[config.kv_dtype])
        weights = sum(tensor.nbytes for tensor in file.tensors.values())
        plan, context = check_fit(geometry, config, shape.context_length, weights, available_bytes())
        tensors = Tensors(file)
        program = ARCHITECTURES[architecture(file)](shape, tensors)
        factors = tensors.vector("rope_freqs.weight", shape.head_dim // 2) if "rope_freqs.weight" in tensors else None
        rope = rope_tables(context, shape.head_dim, shape.rope_base, shape.rope_scale, factors)
        tensors.refuse_rest()
        # Only now: what is wrong with a file is told before anyone has waited for the compiler.
        compile_entries(lambda part: progress("kernels", part))
        try:
            program.pack(lambda part: progress("weights", part))
        except MemoryError:
            raise ModelFileError(f"{path}: there is not enough memory for its weights") from None
    limits = Limits(
        rows=config.max_step_tokens,
        samples=config.max_batch_size,
        threads=config.threads or available_cores(),
        context=context,
    )
    # Once more: the weights have taken theirs, and to touch pages that are not there would end some process.
    check_fit(geometry, config, shape.context_length, 0, available_bytes())
    try:
        return LoadedModel(path.stem, text, shape, program, geometry, plan, limits, rope)
    except MemoryError:
        raise memory_refused(config, available_bytes()) from None


def architecture(file: GGUFFile) -> str:
    name = file.metadata.get("general.architecture")
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModelFileError(f"{file.path}: architecture {name!r} is not supported; supported: {known}")
    return name


def hyperparameters(file: GGUFFile, tokens: int) -> Hyperparameters:
    """The sizes of the model; `tokens` is how many its tokenizer knows."""
    metadata = Metadata(file.metadata, file.path, architecture(file))
    embedding = file.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise ModelFileError(f"{file.path}: tensor token_embd.weight is missing or no matrix")
    rows = embedding.shape[1]
    if tokens > rows:
        raise ModelFileError(f"{file.path}: the tokenizer knows {tokens} tokens, token_embd.weight only {rows}")
    return read_hyperparameters(metadata, rows, tokens)


def read_text(file: GGUFFile) -> ModelText:
    """Tokenizer and template. Raises ModelFileError that names the file."""
    try:
        return ModelText.from_gguf(file.metadata)
    except ModelFileError as error:
        raise ModelFileError(f"{file.path}: {error}") from error


def available_cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

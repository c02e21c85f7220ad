"""StepInput and StepOutput: one step as plain arrays."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from puma.kernels.sample import CHOICE_FIELDS, CHOSEN_FIELDS, LIKELY, LOGPROB, TOKEN

Int32 = NDArray[np.int32]


class StepInput(msgspec.Struct, frozen=True):
    """A ragged batch: the rows of all runs, one after the other."""

    tokens: Int32
    """[rows]; -1: the token that the row's slot sampled last."""
    positions: Int32
    """[rows]"""
    row_slots: Int32
    """[rows]"""
    runs: Int32
    """[runs, 4]: first row, rows, position of the first row, slot."""
    sample_rows: Int32
    """[samples]: rows whose logits choose a token."""
    sample_slots: Int32
    """[samples]"""
    choices: NDArray[np.int64]
    """[samples, CHOICE_FIELDS]: see kernels/sample.py; `choice` makes one."""
    tables: Int32
    """[slots, blocks]: block ids; read while the step runs, so entries in use may not change before it ends."""


class StepOutput(msgspec.Struct, frozen=True):
    """What was chosen, in the order of StepInput.sample_rows."""

    tokens: Int32
    """[samples]; -1: the logits were not numbers."""
    logprobs: NDArray[np.float32]
    """[samples]; natural logarithms; meaningless where none were asked for."""
    likely_tokens: Int32
    """[samples, 20], best first; as many as were asked for are set."""
    likely_logprobs: NDArray[np.float32]
    """[samples, 20]"""


def choice(
    *,
    temperature: float,
    top_k: int,
    top_p: float,
    min_p: float,
    seed: int,
    index: int,
    logprobs: int,
    forced: int = -1,
) -> NDArray[np.int64]:
    """How one token is chosen, int64 [CHOICE_FIELDS]; three of its fields are float64 bits.

    top_k <= 0 is off; `seed` is any 64-bit number, signed or not; `logprobs` as in Sampling; `forced` is a token to be
    taken whatever its probability, to score it.
    """
    record = np.zeros(CHOICE_FIELDS, np.int64)
    record.view(np.float64)[:3] = temperature, top_p, min_p
    signed_seed = (seed + (1 << 63)) % (1 << 64) - (1 << 63)
    record[3:] = max(0, min(top_k, 1 << 62)), signed_seed, index, logprobs, forced
    return record


def read_chosen(chosen: Int32) -> StepOutput:
    """Take apart the kernels' records, int32 [samples, CHOSEN_FIELDS]."""
    floats = chosen.view(np.float32)
    return StepOutput(
        tokens=chosen[:, TOKEN],
        logprobs=floats[:, LOGPROB],
        likely_tokens=chosen[:, LIKELY:CHOSEN_FIELDS:2],
        likely_logprobs=floats[:, LIKELY + 1 : CHOSEN_FIELDS : 2],
    )

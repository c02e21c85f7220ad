"""How many bytes a machine takes, computed without allocating any; the allocation itself uses these numbers."""

from collections.abc import Sequence

import msgspec

from puma.config.memory import MemoryPlan
from puma.kernels import batch_attention
from puma.kernels.activations import BLOCK, RECORD
from puma.kernels.attention import SPAN
from puma.kernels.operations import GATED_SCRATCH
from puma.kernels.team import shared_bytes
from puma.kernels.vectors import LANES
from puma.models.architectures.hyperparameters import Hyperparameters
from puma.models.program import Rows
from puma.models.rope import rope_bytes
from puma.models.weights import CACHE_LINE, allocated_bytes, padded

SPARE_ROWS = LANES
"""Attention reads tiles of sixteen rows, which may reach beyond the last one."""


class Limits(msgspec.Struct, frozen=True):
    """The largest step."""

    rows: int
    samples: int
    threads: int
    context: int
    sharing: bool
    """Whether sequences may share blocks."""


class BufferSizes(msgspec.Struct, frozen=True):
    """Bytes of a buffer of activations: from row to row, and in all. All 0 for a part of another buffer."""

    stride: int = 0
    floats: int = 0
    quantised_stride: int = 0
    quantised: int = 0


class Sizes(msgspec.Struct, frozen=True):
    """Bytes of each array, as it is asked for; the two sums count what `allocate` adds as well."""

    layer: int
    """Keys, or values, of one layer."""
    layers: int
    buffers: tuple[BufferSizes, ...]
    partials: int
    scratch: int
    """Of one thread, like `weights`."""
    weights: int
    threads: int
    shared: int
    rope: int
    """Cosines and sines together."""

    @property
    def kv_bytes(self) -> int:
        """The keys and the values."""
        return 2 * allocated_bytes(self.layer * self.layers)

    @property
    def scratch_bytes(self) -> int:
        """All a machine has besides keys, values and the model's weights, but for tables of a few kilobytes."""
        arrays = [self.partials, self.scratch * self.threads, self.weights * self.threads, self.shared]
        for buffer in self.buffers:
            arrays += [nbytes for nbytes in (buffer.floats, buffer.quantised) if nbytes]
        return self.rope + sum(allocated_bytes(nbytes) for nbytes in arrays)


def machine_sizes(buffers: Sequence[Rows], shape: Hyperparameters, plan: MemoryPlan, limits: Limits) -> Sizes:
    """Those of the machine that runs a program with these buffers."""
    return Sizes(
        layer=plan.pool_bytes // (2 * shape.layers),
        layers=shape.layers,
        buffers=tuple(buffer_sizes(rows, limits) for rows in buffers),
        partials=most_spans(plan, limits) * batch_attention.partial_bytes(shape.heads, shape.head_dim),
        scratch=max(GATED_SCRATCH, batch_attention.scratch_bytes(shape.head_dim)),
        weights=4 * padded(shape.vocabulary) + CACHE_LINE,
        threads=limits.threads,
        shared=shared_bytes(limits.threads),
        rope=rope_bytes(limits.context, shape.head_dim),
    )


def most_spans(plan: MemoryPlan, limits: Limits) -> int:
    """The spans of all sequences in one step, at most."""
    if limits.sharing:
        # Each can be as long as the pool. What is never used is never touched.
        return limits.samples * -(-min(limits.context, plan.tokens) // SPAN)
    return limits.samples + plan.tokens // SPAN + 1


def buffer_sizes(rows: Rows, limits: Limits) -> BufferSizes:
    """Those of one buffer."""
    if rows.part_of >= 0:
        return BufferSizes()
    count = (limits.samples if rows.per_sample else limits.rows) + SPARE_ROWS
    # A line more than a power of two, so that the same column of neighbouring rows has its own cache line.
    stride = 4 * padded(rows.size) + CACHE_LINE
    quantised_stride = padded(rows.size) // BLOCK * RECORD if rows.quantised else 0
    return BufferSizes(stride, count * stride, quantised_stride, count * quantised_stride)

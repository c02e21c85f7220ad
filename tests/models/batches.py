"""Steps for a LoadedModel, without the actors: runs in, StepOutput out."""

import numpy as np

from puma.models.step import StepInput, choice

LIKELY = 20


class Batches:
    """Gives every slot its own blocks, in an order that is anything but consecutive."""

    def __init__(self, model):
        self.model = model
        blocks = np.random.default_rng(0).permutation(model.plan.blocks)
        self.tables = blocks[: blocks.size // 4 * 4].reshape(4, -1).astype(np.int32)

    def step(self, *runs, **sampling):
        """Runs are (slot, first position, token ids); every run samples. Sampling as in `choice`."""
        options = {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 0, "logprobs": LIKELY}
        options |= sampling
        counts = np.array([len(ids) for _, _, ids in runs])
        first = np.cumsum(counts) - counts
        slots = np.array([slot for slot, _, _ in runs], np.int32)
        positions = np.concatenate([np.arange(start, start + len(ids)) for _, start, ids in runs])
        return self.model.step(
            StepInput(
                tokens=np.concatenate([np.array(ids, np.int32) for _, _, ids in runs]),
                positions=positions.astype(np.int32),
                row_slots=np.repeat(slots, counts),
                runs=np.array(
                    [(f, c, run[1], run[0]) for f, c, run in zip(first, counts, runs, strict=True)], np.int32
                ),
                sample_rows=(first + counts - 1).astype(np.int32),
                sample_slots=slots,
                choices=np.stack([choice(index=start + len(ids), **options) for _, start, ids in runs]),
                tables=self.tables,
            )
        )


def bits(output, sample=0):
    """Everything one sample yielded, to be compared exactly."""
    return (
        int(output.tokens[sample]),
        output.logprobs[sample].tobytes(),
        output.likely_tokens[sample].tobytes(),
        output.likely_logprobs[sample].tobytes(),
    )

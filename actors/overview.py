"""What the scheduler says when it is asked how things stand."""

from puma.actors.ledger import Ledger
from puma.actors.messages import SequenceState, Snapshot
from puma.actors.sequence import Decoding, Leaving, Prefilling, Sequence


def overview(ledger: Ledger, model: str) -> Snapshot:
    """The engine between two steps, without request ids: those are intake's."""
    return Snapshot(
        model=model,
        blocks_total=ledger.limits.blocks,
        blocks_used=ledger.limits.blocks - ledger.available,
        blocks_cached=ledger.cached,
        sequences=tuple(line(sequence) for sequence in ledger.roster.sequences.values()),
        steps=ledger.counts.steps,
        busy_seconds=ledger.counts.busy_seconds,
        generated_tokens=ledger.counts.generated_tokens,
        prompt_tokens=ledger.counts.prompt_tokens,
        cached_tokens=ledger.counts.cached_tokens,
    )


def line(sequence: Sequence) -> SequenceState:
    """One sequence, in the order in which they arrived."""
    state = sequence.state
    return SequenceState(
        sequence=sequence.id,
        request_id="",
        state=type(state).__name__.lower(),
        prompt_tokens=len(sequence.admit.token_ids),
        generated=len(sequence.generated),
        blocks=state.blocks if isinstance(state, Prefilling | Decoding | Leaving) else 0,
    )

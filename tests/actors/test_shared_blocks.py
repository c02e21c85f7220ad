"""Who holds blocks together, and what comes back when some of them leave: against sets of blocks."""

from hypothesis import given
from hypothesis import strategies as st

from puma.actors.shared_blocks import Departures, Held, shared_blocks

CHAINS = ((0, 1, 2, 3, 4), (0, 1, 2, 5), (0, 6, 7), (8, 9))
"""Ways through a tree of blocks."""


@st.composite
def tables(draw):
    """Tables that begin with a part of a chain and go on with blocks of their own."""
    made, own = {}, 100
    for sequence in range(draw(st.integers(0, 7))):
        chain = draw(st.sampled_from(CHAINS))
        count = draw(st.integers(0, 3))
        made[sequence] = [*chain[: draw(st.integers(0, len(chain)))], *range(own, own + count)]
        own += count
    return made


def holders(made):
    return [sum(block in table for table in made.values()) for block in range(200)]


def test_groups_by_hand():
    made = {1: [0, 1, 2, 50], 2: [0, 1, 2, 60], 3: [0, 70], 4: [8]}
    assert {(one.sequences, one.blocks) for one in shared_blocks(made, holders(made))} == {
        (frozenset({1, 2, 3}), 1),
        (frozenset({1, 2}), 2),
    }


@given(tables())
def test_every_shared_block_is_in_one_group(made):
    expected = {}
    for block, count in enumerate(holders(made)):
        if count > 1:
            together = frozenset(one for one, table in made.items() if block in table)
            expected[together] = expected.get(together, 0) + 1
    groups = shared_blocks(made, holders(made))
    assert {one.sequences: one.blocks for one in groups} == expected
    assert len(groups) == len(expected)


@given(tables(), st.data())
def test_what_comes_back_is_what_nobody_else_holds(made, data):
    shared = (Held(one.sequences, one.blocks) for one in shared_blocks(made, holders(made)))
    departures = Departures(3, 5, shared)
    late, left = set(), dict(made)
    for sequence in data.draw(st.permutations(sorted(made)))[: data.draw(st.integers(0, len(made)))]:
        is_late = data.draw(st.booleans())
        late |= set(made[sequence]) if is_late else set()
        del left[sequence]
        departures.leave(sequence, len(made[sequence]), late=is_late)
        gone = set().union(*made.values()) - set().union(*left.values())
        assert departures.available == 3 + len(gone - late)
        assert departures.returning == 5 + len(gone & late)

"""The block pool: no block leaked, none owned twice, `available` exact, consecutive blocks where there are some."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from puma.actors.block_pool import BlockPool, PoolError
from puma.actors.messages import Grow, Open, Reserve


class PoolMachine(RuleBasedStateMachine):
    """Any order of releases, openings and growths, against a count per sequence."""

    @initialize(blocks=st.integers(1, 40), tokens_per_block=st.sampled_from([1, 3, 16]))
    def start(self, blocks, tokens_per_block):
        self.pool = BlockPool(blocks, tokens_per_block)
        self.held: dict[int, list[int]] = {}
        self.next = 0

    @precondition(lambda self: hasattr(self, "pool"))
    @rule(data=st.data())
    def step(self, data):
        pool, held = self.pool, self.held
        known = sorted(held)
        release = data.draw(st.lists(st.sampled_from(known), unique=True)) if known else []
        left = [one for one in known if one not in release]
        free = pool.available + sum(len(held[one]) for one in release)
        grow = []
        for sequence in data.draw(st.lists(st.sampled_from(left), unique=True)) if left else []:
            more = data.draw(st.integers(0, min(3, free)))
            free -= more
            grow.append(Grow(sequence, (len(held[sequence]) + more) * pool.tokens_per_block))
        tokens = data.draw(st.lists(st.integers(1, pool.blocks * pool.tokens_per_block), max_size=3))
        opening = [Open(self.next + place, count) for place, count in enumerate(tokens)]
        self.next += len(opening)
        grant = pool.serve(Reserve(5, tuple(release), tuple(grow), tuple(opening)))
        assert grant.step == 5
        self.check(grant, release, grow, opening, free)

    def check(self, grant, release, grow, opening, free):
        for sequence in release:
            del self.held[sequence]
        for one in grant.appended:
            self.held[one.sequence] = [*self.held.get(one.sequence, []), *one.block_ids]
        for one in (*grow, *opening):
            need = -(-one.tokens // self.pool.tokens_per_block)
            if one.sequence in grant.refused:
                assert isinstance(one, Open)
                assert need > free
            else:
                assert len(self.held[one.sequence]) == need
                free -= need if isinstance(one, Open) else 0
        assert grant.available == free

    @invariant()
    def every_block_is_free_or_owned_once(self):
        if hasattr(self, "pool"):
            self.pool.check_integrity()
            assert self.pool.tables == self.held
            assert self.pool.available == self.pool.blocks - sum(map(len, self.held.values()))

    def teardown(self):
        if hasattr(self, "pool"):
            grant = self.pool.serve(Reserve(6, release=tuple(self.held)))
            assert grant.available == self.pool.blocks
            assert self.pool.serve(Reserve(7, open=(Open(-1, self.pool.blocks),))).refused == ()


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def table(pool: BlockPool, sequence: int) -> list[int]:
    return pool.tables[sequence]


def test_a_lone_sequence_gets_consecutive_blocks_and_grows_by_them():
    pool = BlockPool(100, 16)
    pool.serve(Reserve(0, open=(Open(1, 40 * 16),)))
    for blocks in range(41, 101):
        pool.serve(Reserve(blocks, grow=(Grow(1, blocks * 16),)))
    assert table(pool, 1) == list(range(100))


def test_several_sequences_grow_side_by_side_without_being_cut():
    pool = BlockPool(128, 16)
    for sequence in range(4):
        pool.serve(Reserve(0, open=(Open(sequence, 2 * 16),)))
    for blocks in range(3, 16):
        pool.serve(Reserve(0, grow=tuple(Grow(sequence, blocks * 16) for sequence in range(4))))
    for sequence in range(4):
        first = table(pool, sequence)[0]
        assert table(pool, sequence) == list(range(first, first + 15))


def test_scattered_blocks_are_used_to_the_last_one():
    pool = BlockPool(9, 1)
    pool.serve(Reserve(0, open=tuple(Open(sequence, 1) for sequence in range(9))))
    odd = tuple(sequence for sequence in range(9) if table(pool, sequence)[0] % 2)
    grant = pool.serve(Reserve(1, release=odd, open=(Open(10, len(odd)),)))
    assert sorted(grant.appended[0].block_ids) == [1, 3, 5, 7]
    assert grant.available == 0


def test_what_the_running_need_is_not_given_to_newcomers():
    pool = BlockPool(3, 1)
    pool.serve(Reserve(0, open=(Open(1, 1),)))
    grant = pool.serve(Reserve(1, grow=(Grow(1, 3),), open=(Open(2, 1),)))
    assert grant.refused == (2,)
    assert len(table(pool, 1)) == 3


def test_bookkeeping_does_not_grow_with_use():
    pool = BlockPool(64, 16)
    for sequence in range(3000):
        pool.serve(Reserve(0, release=(sequence - 1,) if sequence else (), open=(Open(sequence, 17),)))
        pool.serve(Reserve(0, grow=(Grow(sequence, 64),)))
    assert len(pool._free._largest) < 64


@pytest.mark.parametrize(
    ("reserve", "message"),
    [
        (Reserve(0, release=(2,)), "sequence 2 has no table"),
        (Reserve(0, release=(1, 1)), "sequence 1 has no table"),
        (Reserve(0, grow=(Grow(2, 1),)), "sequence 2 has no table"),
        (Reserve(0, grow=(Grow(1, 160),)), "sequence 1 needs 9 blocks more; 2 are free"),
        (Reserve(0, open=(Open(1, 1),)), "sequence 1 has a table already"),
    ],
)
def test_asking_for_what_cannot_be_is_an_error(reserve, message):
    pool = BlockPool(3, 16)
    pool.serve(Reserve(0, open=(Open(1, 16),)))
    with pytest.raises(PoolError, match=message):
        pool.serve(reserve)


def test_integrity_notices_a_block_that_is_owned_twice_or_lost():
    pool = BlockPool(3, 16)
    pool.serve(Reserve(0, open=(Open(1, 16),)))
    table(pool, 1).append(2)
    with pytest.raises(PoolError, match="3 blocks, but"):
        pool.check_integrity()
    del table(pool, 1)[:]
    with pytest.raises(PoolError, match="3 blocks, but"):
        pool.check_integrity()

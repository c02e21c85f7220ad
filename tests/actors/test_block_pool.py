"""The block pool: no block leaked, shared by content only, `available` exact, consecutive where there are some."""

from collections import Counter
from itertools import chain

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from puma.actors.block_pool import BlockPool, PoolError
from puma.actors.messages import Filled, Grow, Open, Reserve

ROOM = 10**6


def ids(*tokens):
    return np.array(tokens, np.int32)


def opening(sequence, tokens, token_ids=None):
    """An admission; its tokens are its own unless they are given."""
    own = ids(*([1000 + sequence] * (tokens - 1))) if token_ids is None else ids(*token_ids)
    return Open(sequence, tokens, own)


class PoolMachine(RuleBasedStateMachine):
    """Any order of fillings, releases, openings and growths, against tables that are kept by hand.

    Tokens are drawn from two, and openings continue what others hold, so that much is shared.
    """

    @initialize(blocks=st.integers(1, 40), tokens_per_block=st.sampled_from([1, 2, 3]))
    def start(self, blocks, tokens_per_block):
        self.pool = BlockPool(blocks, tokens_per_block)
        self.held: dict[int, list[int]] = {}
        self.tokens: dict[int, list[int]] = {}
        self.filled: dict[int, int] = {}
        """Blocks of each that are known to be computed."""
        self.memory: dict[int, tuple[int, ...]] = {}
        """What stands in each block, after what."""
        self.next = 0

    @precondition(lambda self: hasattr(self, "pool"))
    @rule(data=st.data())
    def step(self, data):
        known = sorted(self.held)
        filled = tuple(filter(None, (self.fill(data, one) for one in some(data, known))))
        distrusted = some(data, known) if data.draw(st.integers(0, 4)) == 0 else []
        release = some(data, known)
        left = [one for one in known if one not in release]
        staying = {block for one in left for block in self.held[one]}
        free = self.pool.blocks - len(staying)
        grow = []
        for sequence in some(data, left):
            more = data.draw(st.integers(0, min(3, free)))
            free -= more
            self.tokens[sequence] += data.draw(tokens(more * self.pool.tokens_per_block))
            grow.append(Grow(sequence, (len(self.held[sequence]) + more) * self.pool.tokens_per_block))
        openings = [self.draw_opening(data) for _ in range(data.draw(st.integers(0, 3)))]
        room = data.draw(st.sampled_from([ROOM, 0, 5, 10]))
        reserve = Reserve(5, tuple(release), tuple(grow), tuple(openings), room, filled, tuple(distrusted))
        grant = self.pool.serve(reserve)
        assert grant.step == 5
        assert not {*self.pool.cache.known()} & {block for one in distrusted for block in self.held[one]}
        self.check(grant, release, grow, openings, room, free)

    def fill(self, data, sequence):
        """More of its blocks, within the tokens it has."""
        size = self.pool.tokens_per_block
        most = min(len(self.tokens[sequence]) // size, len(self.held[sequence]))
        first = self.filled[sequence]
        last = data.draw(st.integers(first, most))
        for place in range(first, last):
            self.memory[self.held[sequence][place]] = tuple(self.tokens[sequence][: (place + 1) * size])
        self.filled[sequence] = last
        return Filled(sequence, first * size, ids(*self.tokens[sequence][first * size : last * size])) if last else None

    def draw_opening(self, data):
        begins = [[], *self.tokens.values()]
        token_ids = [*data.draw(st.sampled_from(begins)), *data.draw(tokens(data.draw(st.integers(1, 9))))]
        sequence, self.next = self.next, self.next + 1
        self.tokens[sequence] = token_ids
        return Open(sequence, len(token_ids) + 1, ids(*token_ids))

    def check(self, grant, release, grow, openings, room, free):
        size = self.pool.tokens_per_block
        for sequence in release:
            del self.held[sequence], self.filled[sequence]
        opened = {one.sequence: one for one in openings}
        for one in grant.appended:
            cached = one.cached_tokens // size
            fresh = one.block_ids[cached:]
            assert not {*fresh} & {block for table in self.held.values() for block in table}, (
                "no writer gets a block twice"
            )
            assert not {*fresh} & {*self.pool.cache.known()}, "what is cached is not written"
            for block in fresh:
                self.memory.pop(block, None)
            for place, block in enumerate(one.block_ids[:cached]):
                assert self.memory[block] == tuple(self.tokens[one.sequence][: (place + 1) * size])
            if one.sequence in opened:
                assert one.cached_tokens < len(self.tokens[one.sequence]), "one token is left to compute"
                self.filled[one.sequence] = cached
            self.held[one.sequence] = [*self.held.get(one.sequence, []), *one.block_ids]
        for one in (*grow, *openings):
            need = -(-one.tokens // size)
            if one.sequence in grant.refused:
                assert isinstance(one, Open)
                assert need > free or room <= 0
                del self.tokens[one.sequence]
            else:
                assert len(self.held[one.sequence]) == need
                if isinstance(one, Open):
                    assert room > 0
                    free -= need
                    room -= len(one.token_ids) - self.filled[one.sequence] * size
        assert grant.available == self.pool.available
        assert grant.cached == self.pool.cache.idle
        self.check_shared(grant.shared)

    def check_shared(self, shared):
        together = Counter(
            frozenset(one for one, table in self.held.items() if block in table)
            for block in {block for table in self.held.values() for block in table}
        )
        expected = {sequences: blocks for sequences, blocks in together.items() if len(sequences) > 1}
        assert {one.sequences: one.blocks for one in shared} == expected
        assert len(shared) == len(expected)

    @invariant()
    def every_block_is_free_or_idle_or_held_as_counted(self):
        if hasattr(self, "pool"):
            self.pool.check_integrity()
            assert self.pool.tables == self.held
            assert self.pool.available == self.pool.blocks - len({*chain(*self.held.values())})

    @invariant()
    def what_is_cached_is_what_was_written_there(self):
        if hasattr(self, "pool"):
            for block, contents in self.pool.cache.known().items():
                assert np.frombuffer(b"".join(contents), np.int32).tolist() == [*self.memory[block]]

    @invariant()
    def leaves_go_before_what_they_follow(self):
        if hasattr(self, "pool"):
            order = {block: place for place, block in enumerate(self.pool.cache.idle_blocks())}
            known = self.pool.cache.known()
            for above, contents in known.items():
                for below, longer in known.items():
                    if above in order and len(longer) > len(contents) and longer[: len(contents)] == contents:
                        assert order[below] < order[above]

    def teardown(self):
        if hasattr(self, "pool"):
            grant = self.pool.serve(Reserve(6, release=tuple(self.held)))
            assert grant.available == self.pool.blocks
            whole = opening(-1, self.pool.blocks * self.pool.tokens_per_block)
            assert self.pool.serve(Reserve(7, room=ROOM, open=(whole,))).refused == ()


def some(data, sequences):
    return data.draw(st.lists(st.sampled_from(sequences), unique=True)) if sequences else []


def tokens(count):
    return st.lists(st.integers(1, 2), min_size=count, max_size=count)


TestPoolMachine = PoolMachine.TestCase
TestPoolMachine.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


def table(pool: BlockPool, sequence: int) -> list[int]:
    return pool.tables[sequence]


def test_a_lone_sequence_gets_consecutive_blocks_and_grows_by_them():
    pool = BlockPool(100, 16)
    pool.serve(Reserve(0, room=ROOM, open=(opening(1, 40 * 16),)))
    for blocks in range(41, 101):
        pool.serve(Reserve(blocks, grow=(Grow(1, blocks * 16),)))
    assert table(pool, 1) == list(range(100))


def test_several_sequences_grow_side_by_side_without_being_cut():
    pool = BlockPool(128, 16)
    for sequence in range(4):
        pool.serve(Reserve(0, room=ROOM, open=(opening(sequence, 2 * 16),)))
    for blocks in range(3, 16):
        pool.serve(Reserve(0, grow=tuple(Grow(sequence, blocks * 16) for sequence in range(4))))
    for sequence in range(4):
        first = table(pool, sequence)[0]
        assert table(pool, sequence) == list(range(first, first + 15))


def test_scattered_blocks_are_used_to_the_last_one():
    pool = BlockPool(9, 1)
    pool.serve(Reserve(0, room=ROOM, open=tuple(opening(sequence, 1) for sequence in range(9))))
    odd = tuple(sequence for sequence in range(9) if table(pool, sequence)[0] % 2)
    grant = pool.serve(Reserve(1, release=odd, room=ROOM, open=(opening(10, len(odd)),)))
    assert sorted(grant.appended[0].block_ids) == [1, 3, 5, 7]
    assert grant.available == 0


def test_what_the_running_need_is_not_given_to_newcomers():
    pool = BlockPool(3, 1)
    pool.serve(Reserve(0, room=ROOM, open=(opening(1, 1),)))
    grant = pool.serve(Reserve(1, grow=(Grow(1, 3),), room=ROOM, open=(opening(2, 1),)))
    assert grant.refused == (2,)
    assert len(table(pool, 1)) == 3


def test_bookkeeping_does_not_grow_with_use():
    pool = BlockPool(64, 16)
    for sequence in range(3000):
        pool.serve(Reserve(0, release=(sequence - 1,) if sequence else (), room=ROOM, open=(opening(sequence, 17),)))
        pool.serve(Reserve(0, grow=(Grow(sequence, 64),)))
    assert len(pool._free._largest) < 64


@pytest.mark.parametrize(
    ("reserve", "message"),
    [
        (Reserve(0, release=(2,)), "sequence 2 has no table"),
        (Reserve(0, release=(1, 1)), "sequence 1 has no table"),
        (Reserve(0, grow=(Grow(2, 1),)), "sequence 2 has no table"),
        (Reserve(0, grow=(Grow(1, 160),)), "sequence 1 needs 9 blocks more; 2 are free"),
        (Reserve(0, room=ROOM, open=(opening(1, 1),)), "sequence 1 has a table already"),
    ],
)
def test_asking_for_what_cannot_be_is_an_error(reserve, message):
    pool = BlockPool(3, 16)
    pool.serve(Reserve(0, room=ROOM, open=(opening(1, 16),)))
    with pytest.raises(PoolError, match=message):
        pool.serve(reserve)


def test_integrity_notices_a_block_that_is_owned_twice_or_lost():
    pool = BlockPool(3, 16)
    pool.serve(Reserve(0, room=ROOM, open=(opening(1, 16),)))
    table(pool, 1).append(2)
    with pytest.raises(PoolError, match="3 blocks, but tables"):
        pool.check_integrity()
    del table(pool, 1)[:]
    with pytest.raises(PoolError, match="3 blocks, but tables"):
        pool.check_integrity()

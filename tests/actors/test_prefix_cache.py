"""The prefix cache alone: found by tokens and not by hashes, given up in the right order, forgotten when distrusted."""

from itertools import pairwise

import numpy as np

from puma.actors import prefix_cache
from puma.actors.block_pool import BlockPool
from puma.actors.messages import Filled, Grow, Open, Reserve
from puma.actors.prefix_cache import ROOT, PrefixCache, contents

ROOM = 10**6


def ids(text: str):
    """One token per letter."""
    return np.frombuffer(text.encode(), np.uint8).astype(np.int32)


def add_all(cache: PrefixCache, text: str, first_block: int) -> None:
    """Consecutive blocks from `first_block` on hold a text, two letters each."""
    before = ROOT
    for block, content in enumerate(contents(ids(text), 2), first_block):
        cache.add(before, content, block)
        before = block


def found(cache: PrefixCache, text: str, most: int = 99) -> list[int]:
    return cache.match(ids(text), most)


def test_the_longest_chain_of_whole_blocks_is_found():
    cache = PrefixCache(2)
    add_all(cache, "abcdef", 10)
    assert found(cache, "abcdefg") == [10, 11, 12]
    assert found(cache, "abcde") == [10, 11]
    assert found(cache, "abcdef", most=1) == [10]
    assert found(cache, "abXdef") == [10]
    assert found(cache, "cdef") == []
    assert found(cache, "a") == found(cache, "") == []


def test_a_part_of_a_block_is_never_cached():
    cache = PrefixCache(2)
    add_all(cache, "abc", 10)
    assert found(cache, "abcd") == [10]


def test_the_same_tokens_after_others_are_other_content():
    cache = PrefixCache(2)
    add_all(cache, "abcd", 10)
    add_all(cache, "xycd", 20)
    assert found(cache, "xycd") == [20, 21]
    assert found(cache, "abcd") == [10, 11]


class Colliding(bytes):
    """Content of which every hash is the same."""

    def __hash__(self):
        return 7


def test_equal_hashes_never_lead_to_foreign_content(monkeypatch):
    real = prefix_cache.contents
    monkeypatch.setattr(prefix_cache, "contents", lambda *what: map(Colliding, real(*what)))
    cache = PrefixCache(2)
    for first_block, text in ((10, "abcd"), (20, "xycd"), (30, "abxy")):
        before = ROOT
        for block, content in enumerate(prefix_cache.contents(ids(text), 2), first_block):
            cache.add(before, content, block)
            before = block
    assert found(cache, "abcd") == [10, 11]
    assert found(cache, "xycd") == [20, 21]
    assert found(cache, "ijcd") == []


def test_of_equal_content_the_first_block_stays_and_nothing_is_hung_below_the_second():
    cache = PrefixCache(2)
    add_all(cache, "abcd", 10)
    add_all(cache, "abcdef", 20)
    assert found(cache, "abcdef") == [10, 11]
    assert 20 not in cache
    assert 22 not in cache


def test_a_block_that_is_distrusted_takes_along_what_follows_it():
    cache = PrefixCache(2)
    add_all(cache, "abcdefgh", 10)
    cache.add(11, ids("xy").tobytes(), 20)
    cache.retire([13, 12, 20])
    assert sorted(cache.forget(11)) == [12, 13, 20]
    assert found(cache, "abcdefgh") == [10]
    assert cache.idle == 0
    assert cache.forget(11) == []


class Pool(BlockPool):
    """Sequences with texts, two letters to a block."""

    def __init__(self, blocks: int) -> None:
        super().__init__(blocks, 2)

    def run(self, sequence: int, text: str, *, grow: int = 0) -> int:
        """Open, compute everything; how many tokens were cached."""
        (granted,) = self.serve(Reserve(0, room=ROOM, open=(Open(sequence, len(text) + 1, ids(text)),))).appended
        cached, end = granted.cached_tokens, len(text) // 2 * 2
        grown = (Grow(sequence, len(text) + 1 + grow),) if grow else ()
        self.serve(Reserve(0, grow=grown, filled=(Filled(sequence, cached, ids(text)[cached:end]),)))
        return cached

    def end(self, *sequences: int) -> None:
        self.serve(Reserve(0, release=sequences))


def test_one_token_at_least_is_left_to_compute():
    pool = Pool(20)
    pool.run(1, "abcdef")
    assert pool.run(2, "abcdef") == 4
    assert pool.run(3, "abcdefg") == 6


def test_blocks_of_one_that_still_runs_are_shared_and_counted_once():
    pool = Pool(10)
    pool.run(1, "abcdef")
    assert pool.available == 6
    pool.run(2, "abcdefxy")
    assert pool.available == 4
    pool.end(1)
    # Its own last block was never full.
    assert pool.available == 5
    pool.end(2)
    assert pool.available == 10
    assert pool.run(3, "abcdefxyz") == 8


def test_idle_blocks_that_are_reused_are_available_no_more():
    pool = Pool(10)
    pool.run(1, "abcdef")
    pool.end(1)
    assert (pool.available, pool.cache.idle) == (10, 3)
    assert pool.run(2, "abcdefgh") == 6
    assert (pool.available, pool.cache.idle) == (5, 0)


def test_an_admission_fits_by_what_it_finds_cached():
    pool = Pool(6)
    pool.run(1, "abcdefgh")
    refused = pool.serve(Reserve(0, room=ROOM, open=(Open(2, 9, ids("ABCDEFGH")),))).refused
    assert refused == (2,)
    assert pool.run(3, "abcdefghi") == 8
    assert pool.available == 0


def test_as_many_enter_as_the_step_can_compute_the_rest_of():
    pool = Pool(64)
    pool.run(1, "abcdef")
    openings = tuple(Open(sequence, 10, ids(f"abcdef{sequence}..")) for sequence in range(2, 8))
    grant = pool.serve(Reserve(0, room=8, open=openings))
    # Three tokens of each are left to compute; the last one begins.
    assert [one.sequence for one in grant.appended] == [2, 3, 4]
    assert grant.refused == (5, 6, 7)


def test_the_least_recently_used_goes_first_and_of_a_table_its_end():
    pool = Pool(8)
    pool.run(1, "abcdef")
    pool.run(2, "xyzw")
    first, second = pool.tables[1], pool.tables[2]
    pool.end(1)
    pool.end(2)
    assert pool.cache.idle_blocks() == [first[2], first[1], first[0], second[1], second[0]]
    # Used again: now it is the other's turn.
    pool.run(3, "abcdefg")
    pool.end(3)
    assert pool.cache.idle_blocks()[:2] == [second[1], second[0]]
    pool.run(4, "12345678")
    assert found(pool.cache, "xyzw") == []
    assert len(found(pool.cache, "abcdef")) == 3


def test_an_idle_block_makes_way_for_one_that_is_held_with_the_same_content():
    pool = Pool(20)
    pool.run(1, "abcdef")
    pool.end(1)
    # Two letters are left to compute, though the last block is cached too.
    assert pool.run(2, "abcdef", grow=2) == 4
    assert (pool.available, pool.cache.idle) == (15, 0)
    assert found(pool.cache, "abcdef") == pool.tables[2][:3]
    pool.serve(Reserve(0, filled=(Filled(2, 6, ids("gh")),)))
    pool.end(2)
    assert pool.run(3, "abcdefghi") == 8
    pool.check_integrity()


def test_nothing_is_evicted_while_blocks_are_free():
    pool = Pool(8)
    pool.run(1, "abcdef")
    pool.end(1)
    pool.run(2, "12345678")
    assert len(found(pool.cache, "abcdef")) == 3


def test_tables_that_grow_in_a_pool_full_of_cache_still_get_runs_of_blocks():
    pool = Pool(256)
    for sequence in range(8):
        pool.run(sequence, chr(200 + sequence) * 62)
        pool.end(sequence)
    assert pool.cache.idle == 248
    for sequence in (98, 99):
        pool.run(sequence, f"{sequence}x")
    for tokens in range(6, 106, 2):
        pool.serve(Reserve(0, grow=(Grow(98, tokens), Grow(99, tokens))))
    breaks = [sum(right != left + 1 for left, right in pairwise(pool.tables[one])) for one in (98, 99)]
    assert max(breaks) <= 52 // 2


def test_what_was_distrusted_is_not_found_and_its_holders_register_nothing_more():
    pool = Pool(20)
    pool.run(1, "abcdef")
    pool.run(2, "abcdefghij")
    pool.serve(Reserve(0, distrusted=(1,)))
    assert found(pool.cache, "abcdefghij") == []
    pool.serve(Reserve(0, filled=(Filled(2, 10, ids("")),)))
    pool.end(1, 2)
    assert (pool.available, pool.cache.idle) == (20, 0)
    pool.check_integrity()

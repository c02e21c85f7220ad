"""Who runs, who enters, and who makes room: pure decisions."""

import msgspec

from puma.actors.messages import Grow
from puma.actors.policy import Candidate, Limits, Share, View, Wish, plan, wish
from puma.actors.sequence import Decoding, Prefilling
from puma.actors.shared_blocks import Held

LIMITS = Limits(blocks=32, tokens_per_block=4, max_batch_size=4, max_step_tokens=16)


def decoding(computed: int, in_flight: int = 0) -> Decoding:
    """One whose table holds what it has computed, and no more than the block needs."""
    return Decoding(0, LIMITS.blocks_for(computed), computed, in_flight)


def prefilling(computed: int, length: int) -> Prefilling:
    return Prefilling(0, LIMITS.blocks_for(length + 1), computed, length, 0)


def view(*running, waiting=(), available=32, returning=0, shared=()) -> View:
    candidates = tuple(Candidate(100 + place, length) for place, length in enumerate(waiting))
    return View(
        running=tuple(enumerate(running)),
        waiting=candidates,
        available=available,
        returning=returning,
        shared=shared,
    )


def test_nobody_there_wants_nothing():
    assert not wish(view(), LIMITS).runs


def test_a_sequence_grows_when_its_next_token_needs_a_block():
    decision = wish(view(decoding(7), decoding(8)), LIMITS)
    assert decision.decoding == (0, 1)
    assert decision.growing == (Grow(1, 9),)


def test_whoever_waits_is_let_in_with_room_for_the_prompt_and_one_token_more():
    assert wish(view(waiting=[8]), LIMITS).opening == (Candidate(100, 8),)


def test_the_running_are_served_before_anyone_enters():
    decision = wish(view(decoding(8), waiting=[3], available=1), LIMITS)
    assert decision.growing == (Grow(0, 9),)
    assert decision.opening == ()


def test_nobody_overtakes_the_first_that_waits():
    decision = wish(view(waiting=[20, 3], available=4), LIMITS)
    assert decision.opening == ()
    assert not decision.runs


def test_nobody_enters_who_could_not_run_in_this_step():
    decision = wish(view(prefilling(0, 15), decoding(5), waiting=[3]), LIMITS)
    assert decision.opening == ()


def test_as_many_enter_as_fit_and_the_kv_cache_is_told_how_much_the_step_can_compute():
    decision = wish(view(decoding(5), prefilling(8, 10), waiting=[5, 5, 5, 5, 5], available=8), LIMITS)
    assert decision.opening == tuple(Candidate(100 + place, 5) for place in range(4))
    assert decision.room == 16 - 1 - 2


def test_the_youngest_yields_for_the_oldest():
    decision = wish(view(decoding(8), decoding(5), decoding(9), available=0), LIMITS)
    assert decision.yielding == (2,)
    assert decision.decoding == (0, 1)
    assert decision.growing == (Grow(0, 9),)
    assert decision.opening == ()


def test_a_prompt_that_is_being_read_can_yield_too():
    decision = wish(view(decoding(8), prefilling(4, 20), available=0), LIMITS)
    assert decision.yielding == (1,)
    assert decision.prefilling == ()


def test_blocks_of_one_in_flight_come_later_and_its_elder_waits_for_them():
    decision = wish(view(decoding(8), decoding(9, in_flight=1), available=0), LIMITS)
    assert decision.yielding == (1,)
    assert decision.decoding == ()
    assert not decision.runs


def test_nobody_yields_while_enough_blocks_are_on_their_way():
    decision = wish(view(decoding(8), decoding(9), available=0, returning=1), LIMITS)
    assert decision.yielding == ()
    assert decision.decoding == (1,)


def test_blocks_on_their_way_are_promised_once():
    decision = wish(view(decoding(8), decoding(12), decoding(9), available=0, returning=1), LIMITS)
    assert decision.yielding == (2,)
    assert decision.decoding == (1,)
    assert decision.growing == (Grow(1, 13),)


def test_nobody_younger_takes_blocks_from_one_that_waits_for_more():
    decision = wish(view(Decoding(0, 1, 8, 0), decoding(8), available=1, returning=2), LIMITS)
    assert decision.decoding == ()
    assert decision.yielding == ()


def test_nobody_enters_before_those_who_had_to_yield():
    decision = wish(view(decoding(8), decoding(20), waiting=[3], available=0), LIMITS)
    assert decision.yielding == (1,)
    assert decision.opening == ()


def test_nobody_enters_while_a_running_one_waits_for_blocks():
    decision = wish(view(decoding(8), decoding(7), waiting=[3], available=0, returning=5), LIMITS)
    assert decision.decoding == (1,)
    assert decision.opening == ()


def test_the_youngest_yields_even_if_it_is_the_one_that_needs_a_block():
    decision = wish(view(decoding(7), decoding(8), available=0), LIMITS)
    assert decision.yielding == (1,)
    assert decision.decoding == (0,)


def test_decodes_come_first_and_prompts_share_what_is_left_oldest_first():
    decision = wish(view(prefilling(0, 10), decoding(5), prefilling(4, 30)), LIMITS)
    assert plan(decision, {}, LIMITS) == (Share(1, 1), Share(0, 10), Share(2, 5))


def test_whoever_is_refused_does_not_run_and_its_share_goes_to_the_next():
    decision = Wish((), (), (Candidate(100, 12), Candidate(101, 12)), 16, (), ())
    assert plan(decision, {100: 0, 101: 0}, LIMITS) == (Share(100, 12), Share(101, 4))
    assert plan(decision, {101: 0}, LIMITS) == (Share(101, 12),)


def test_what_was_found_cached_is_not_computed():
    decision = Wish((), (), (Candidate(100, 12), Candidate(101, 12)), 16, (), ())
    assert plan(decision, {100: 8, 101: 4}, LIMITS) == (Share(100, 4), Share(101, 8))


CACHING = msgspec.structs.replace(LIMITS, prefix_caching=True)


def test_one_that_does_not_fit_is_tried_once_since_part_of_it_may_be_cached():
    decision = wish(view(decoding(5), waiting=[3, 20, 3], available=4), CACHING)
    assert decision.opening == (Candidate(100, 3), Candidate(101, 20))


def test_nobody_is_tried_when_a_refusal_would_leave_nothing_to_do():
    assert not wish(view(waiting=[20], available=4), CACHING).runs


def test_one_that_yields_gives_back_only_what_nobody_else_holds():
    together = Held(frozenset({1, 2}), 2)
    running = (decoding(8), decoding(9), decoding(9))
    decision = wish(view(*running, available=0, shared=(together,)), LIMITS)
    assert decision.yielding == (2,)
    # All three blocks of the youngest are the other's too.
    decision = wish(view(*running, available=0, shared=(Held(frozenset({1, 2}), 3),)), LIMITS)
    assert decision.yielding == (2, 1)
    assert decision.growing == (Grow(0, 9),)


def test_blocks_shared_with_one_in_flight_come_back_with_it():
    running = (decoding(8), decoding(9, in_flight=1), decoding(9))
    decision = wish(view(*running, available=0, shared=(Held(frozenset({1, 2}), 3),)), LIMITS)
    assert decision.yielding == (2, 1)
    assert decision.decoding == ()


def test_the_cost_of_a_decision_does_not_depend_on_how_many_wait():
    from puma.actors.roster import Roster
    from tests.actors.simulation import admission

    roster = Roster(LIMITS)
    for sequence in range(1000):
        roster.enter(admission(sequence, [1, 2], 4))
    assert len(roster.view(32).waiting) == LIMITS.max_batch_size

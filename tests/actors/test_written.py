"""What may be told to the KV cache as computed."""

from puma.actors.written import Written


def test_whole_blocks_are_told_once():
    written = Written()
    written.begin(8)
    assert written.tell(4) is None
    written.confirm(8, 3, known=20)
    assert written.tell(4) is None
    written.confirm(11, 6, known=20)
    assert written.tell(4) == (8, 16)
    assert written.tell(4) is None


def test_beyond_a_step_that_failed_nothing_counts():
    written = Written()
    written.begin(0)
    written.confirm(0, 4, known=20)
    written.confirm(8, 4, known=20)
    assert written.positions == 4


def test_a_position_whose_token_nobody_knows_does_not_count():
    written = Written()
    written.confirm(0, 4, known=3)
    assert written.positions == 3


def test_nothing_is_told_of_what_is_distrusted():
    written = Written()
    written.confirm(0, 9, known=20)
    written.distrust()
    written.confirm(9, 1, known=20)
    assert written.tell(4) is None

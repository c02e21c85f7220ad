from hypothesis import given, settings
from hypothesis import strategies as st

from puma.models.text.stop import StopFinder

LETTERS = st.text("ab", max_size=30) | st.text("ab<>|é", max_size=30)
STOPS = st.lists(st.text("ab", max_size=8) | st.text("ab<>|é", max_size=6), max_size=4).map(tuple)


def naive(text: str, stops: tuple[str, ...]) -> tuple[str, bool]:
    """The text before the stop string that is complete first, the longest if several are; and whether there is one."""
    for end in range(1, len(text) + 1):
        complete = [len(stop) for stop in stops if stop and text[:end].endswith(stop)]
        if complete:
            return text[: end - max(complete)], True
    return text, False


def held(text: str, stops: tuple[str, ...]) -> int:
    """Characters at the end of the text that may begin a stop string."""
    return max(
        (n for stop in stops for n in range(1, min(len(stop) - 1, len(text)) + 1) if text.endswith(stop[:n])),
        default=0,
    )


@settings(max_examples=500)
@given(st.lists(LETTERS, max_size=8), STOPS)
def test_like_the_naive_twin_however_the_text_is_cut(chunks, stops):
    finder, sent, hit = StopFinder(stops), "", False
    for number, chunk in enumerate(chunks):
        safe, hit = finder.push(chunk)
        sent += safe
        so_far = "".join(chunks[: number + 1])
        expected, expected_hit = naive(so_far, stops)
        assert hit == expected_hit
        assert sent == (expected if hit else so_far[: len(so_far) - held(so_far, stops)])
    assert sent + finder.flush() == naive("".join(chunks), stops)[0]


@given(LETTERS, LETTERS, st.text("ab<>|é", min_size=1, max_size=6))
def test_a_planted_stop_string_is_found(before, after, stop):
    finder = StopFinder((stop,))
    safe, hit = finder.push(before + stop + after)
    assert hit
    assert stop not in safe
    assert finder.flush() == ""


def test_no_letter_of_a_stop_string_over_four_tokens():
    finder = StopFinder(("###STOP",))
    assert [finder.push(piece) for piece in ("text #", "##", "ST", "OP and more")] == [
        ("text ", False),
        ("", False),
        ("", False),
        ("", True),
    ]
    assert finder.push("more") == ("", True)
    assert finder.flush() == ""


def test_a_stop_string_only_begun_is_emitted_at_the_end():
    finder = StopFinder(("<end>",))
    assert finder.push("a<en") == ("a", False)
    assert finder.flush() == "<en"
    assert finder.flush() == ""


def test_a_false_beginning_is_let_go():
    finder = StopFinder(("aab",))
    assert finder.push("aa") == ("", False)
    assert finder.push("a") == ("a", False)
    assert finder.push("c") == ("aac", False)


def test_the_first_complete_one_wins_and_the_longest_of_these():
    assert StopFinder(("abcd", "bc")).push("xabcd") == ("xa", True)
    assert StopFinder(("bc", "abc")).push("xabc") == ("x", True)


def test_without_stop_strings_all_text_is_safe():
    assert StopFinder(()).push("text") == ("text", False)
    assert StopFinder(("",)).push("text") == ("text", False)


def test_a_false_beginning_may_hold_a_true_one():
    assert StopFinder(("aabaaac",)).push("aabaaabaaac!") == ("aaba", True)


def test_long_stop_strings_and_texts_take_linear_work():
    stop = "a" * 10_000 + "b"
    finder = StopFinder((stop,))
    sent = "".join(finder.push("a" * 100)[0] for _ in range(2_000))
    assert len(sent) == 190_000
    assert finder.push("b") == ("", True)

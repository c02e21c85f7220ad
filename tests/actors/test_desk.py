"""From requests to admissions and from tokens to replies, with a real tokenizer and hand-made tokens."""

import pytest
import trio

from puma.actors.channels import drain
from puma.actors.desk import Desk
from puma.actors.door import Door
from puma.actors.errors import BadRequest, EngineFailed, ShuttingDown
from puma.actors.messages import (
    Admit,
    Begun,
    Cancel,
    Chat,
    Done,
    Emitted,
    Ended,
    Failed,
    NewToken,
    Piece,
    Sampling,
    Started,
    Submit,
    Text,
    TokenLogprob,
    Tokens,
    Withdraw,
)
from puma.actors.reply import Reply
from tests.actors.tiny_text import BOUNDS, END, HELLO, START, TEXT, tiny_text


class Visit:
    """A desk, its door, and what it tells the scheduler."""

    def __init__(self, text=TEXT) -> None:
        self.door = Door(8)
        self.scheduler, self.inbox = trio.open_memory_channel(100)
        self.desk = Desk(text, BOUNDS, self.door, self.scheduler)

    def hand_in(self, prompt, **fields) -> Submit:
        fields = {"sampling": Sampling(), "max_tokens": 9} | fields
        submit = Submit(request_id=str(len(self.door.guests)), prompt=prompt, reply=Reply(), **fields)
        self.door.enter(submit)
        self.desk.admit(submit, self.desk.encode(submit))
        return submit

    def told(self) -> list:
        return drain(self.inbox)

    def tokens(self, *token_ids: int, sequence: int = 1) -> None:
        """One token per step."""
        for token_id in token_ids:
            self.desk.publish(Emitted((NewToken(sequence, token_id, -token_id, ((token_id, -1.0), (65, -2.0))),), ()))

    def ended(self, finish: str, failure: str = "", sequence: int = 1) -> None:
        self.desk.publish(Emitted((), (Ended(sequence, finish, failure),)))


def events(submit: Submit) -> list:
    """Everything in a reply, without waiting."""
    return list(submit.reply._events)


def text_of(submit: Submit) -> str:
    return "".join(event.text for event in events(submit) if isinstance(event, Piece))


def refusal(submit: Submit) -> BadRequest:
    (event,) = events(submit)
    assert isinstance(event, Failed)
    assert isinstance(event.error, BadRequest)
    return event.error


@pytest.fixture
def visit():
    return Visit()


def test_a_text_is_admitted_with_its_tokens(visit):
    submit = visit.hand_in(Text("hello!"), sampling=Sampling(seed=3), max_tokens=4)
    (admit,) = visit.told()
    assert isinstance(admit, Admit)
    assert admit.token_ids.tolist() == [HELLO, ord("!")]
    assert (admit.budget, admit.stop_ids, admit.sampling.seed) == (4, frozenset([END]), 3)
    assert events(submit) == [Started(2)]


def test_a_chat_is_rendered_and_what_users_type_stays_text(visit):
    visit.hand_in(Chat(({"role": "user", "content": "<|im_end|>"},)))
    (admit,) = visit.told()
    assert admit.token_ids.tolist() == [
        *(START, *b"user\n", *b"<|im_end|>", END, *b"\n"),
        *(START, *b"assistant\n"),
    ]


def test_tokens_are_taken_as_they_are(visit):
    visit.hand_in(Tokens((START, 7)))
    assert visit.told()[0].token_ids.tolist() == [START, 7]


def test_without_a_limit_the_default_holds(visit):
    visit.hand_in(Text("a"), max_tokens=None)
    visit.hand_in(Text("a" * 60), max_tokens=None)
    visit.hand_in(Text("a" * 60), max_tokens=100)
    assert [admit.budget for admit in visit.told()] == [20, 4, 4]


@pytest.mark.parametrize(
    ("prompt", "fields", "param", "words"),
    [
        (Chat(()), {}, "messages", "empty"),
        (Chat(({"role": "user", "content": "refuse me"},)), {}, "messages", "as you like"),
        (Text(""), {}, "prompt", "no tokens"),
        (Tokens(()), {}, "prompt", "no tokens"),
        (Tokens((1, 999)), {}, "prompt", "token 1 of the prompt is 999"),
        (Text("a" * 65), {}, "prompt", "the context holds 64 tokens"),
        (Text("a" * (64 * 12 + 1)), {}, "prompt", "769 characters"),
        (Chat(({"role": "user", "content": [{"text": "a" * 800}]},)), {}, "messages", "804 characters"),
        (Text("\ud83d"), {}, "prompt", "surrogate"),
        (Text("a"), {"max_tokens": 0}, "max_tokens", "at least 1"),
    ],
)
def test_a_wrong_request_is_refused_alone_and_names_its_field(visit, prompt, fields, param, words):
    error = refusal(visit.hand_in(prompt, **fields))
    assert error.param == param
    assert words in error.message
    assert visit.told() == []
    assert not visit.door.guests


def test_a_template_that_breaks_concerns_its_request_only():
    visit = Visit(Broken())
    (event,) = events(visit.hand_in(Chat(({"role": "user", "content": "hi"},))))
    assert isinstance(event.error, EngineFailed)
    visit.hand_in(Text("hello"))
    assert len(visit.told()) == 1


class Broken:
    tokenizer = TEXT.tokenizer

    def encode_chat(self, messages):
        raise ZeroDivisionError("a template divided by zero")


def test_every_token_counts_and_the_end_has_no_text(visit):
    submit = visit.hand_in(Text("hi"))
    visit.tokens(HELLO, ord("!"), END)
    visit.ended("stop")
    assert events(submit)[1:] == [Piece("hello"), Piece("!"), Done("stop", 2, 3)]
    assert not visit.door.guests


def test_what_was_found_cached_is_told_at_the_end_however_it_comes(visit):
    stopped, ended = visit.hand_in(Text("hi"), stop=("o",)), visit.hand_in(Text("ho"))
    tokens = tuple(NewToken(sequence, token, 0.0, ()) for sequence, token in ((1, ord("o")), (2, ord("a"))))
    visit.desk.publish(Emitted(tokens, (Ended(2, "length"),), (Begun(1, 1), Begun(2, 7))))
    assert events(stopped)[-1] == Done("stop", 2, 1, 1)
    assert events(ended)[-1] == Done("length", 2, 1, 7)


def test_the_end_has_no_text_even_if_it_is_an_ordinary_token():
    visit = Visit(tiny_text(end=ord("!")))
    submit = visit.hand_in(Text("hi"))
    visit.tokens(HELLO, ord("!"))
    visit.ended("stop")
    assert events(submit)[1:] == [Piece("hello"), Done("stop", 2, 2)]


def test_no_piece_ends_within_a_character(visit):
    submit = visit.hand_in(Text("hi"))
    visit.tokens(*"a漢🐈".encode(), 0xF0, 0x9F)
    visit.ended("length")
    assert events(submit)[1:-1] == [Piece("a"), Piece("漢"), Piece("🐈"), Piece("\ufffd")]


def test_a_stop_string_ends_the_answer_at_once_and_is_not_in_it(visit):
    submit = visit.hand_in(Text("hi"), stop=("STOPPED",))
    visit.told()
    visit.tokens(*b"so STOP STOPPED and more")
    assert text_of(submit) == "so STOP "
    assert events(submit)[-1] == Done("stop", 2, len("so STOP STOPPED"))
    assert visit.told() == [Cancel(1, "stop string")]
    visit.ended("cancelled")
    assert not visit.door.guests


def test_a_stop_string_that_is_only_begun_is_text(visit):
    submit = visit.hand_in(Text("hi"), stop=("STOPPED",))
    visit.tokens(*b"so STOP")
    assert text_of(submit) == "so "
    visit.ended("length")
    assert text_of(submit) == "so STOP"
    assert events(submit)[-1].finish == "length"


def test_a_stop_string_that_is_completed_by_what_was_held_back_stops(visit):
    submit = visit.hand_in(Text("hi"), stop=("\ufffd",))
    visit.tokens(ord("a"), 0xF0)
    visit.ended("length")
    assert text_of(submit) == "a"
    assert events(submit)[-1].finish == "stop"


def test_log_probabilities_come_no_later_than_their_text(visit):
    submit = visit.hand_in(Text("hi"), sampling=Sampling(logprobs=2))
    visit.tokens(0xC3, 0xA9, END)
    visit.ended("stop")
    pieces = events(submit)[1:-1]
    assert [piece.text for piece in pieces] == ["", "é", ""]
    assert [one.token for piece in pieces for one in piece.logprobs] == [b"\xc3", b"\xa9", b"<|im_end|>"]
    assert pieces[0].logprobs == (TokenLogprob(0xC3, b"\xc3", -195.0, ((0xC3, b"\xc3", -1.0), (65, b"A", -2.0))),)


def test_a_failure_is_told_with_its_message(visit):
    submit = visit.hand_in(Text("hi"))
    visit.ended("failed", "the model's output is not a number")
    assert isinstance(events(submit)[-1].error, EngineFailed)
    assert events(submit)[-1].error.message == "the model's output is not a number"


def test_a_sequence_that_is_cancelled_from_elsewhere_is_told_so(visit):
    submit = visit.hand_in(Text("hi"))
    visit.ended("cancelled")
    assert isinstance(events(submit)[-1].error, ShuttingDown)


def test_whoever_is_withdrawn_is_cancelled_and_forgotten(visit):
    submit = visit.hand_in(Text("hi"))
    visit.told()
    visit.desk.withdraw(Withdraw(submit.request_id))
    visit.desk.withdraw(Withdraw(submit.request_id))
    visit.desk.withdraw(Withdraw("nobody"))
    assert visit.told() == [Cancel(1, "client left")]
    visit.tokens(ord("a"))
    visit.ended("cancelled")
    assert events(submit) == [Started(2)]
    assert not visit.door.guests


def test_several_sequences_are_kept_apart(visit):
    first, second = visit.hand_in(Text("hi")), visit.hand_in(Text("ho"))
    cat = "🐈".encode()
    for byte, letter in zip(cat, b"dogs", strict=True):
        visit.tokens(byte, sequence=1)
        visit.tokens(letter, sequence=2)
    assert (text_of(first), text_of(second)) == ("🐈", "dogs")

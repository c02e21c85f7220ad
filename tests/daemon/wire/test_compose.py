"""Forms of answers, and log-probabilities in their two shapes."""

import msgspec

from puma.actors.messages import TokenLogprob
from puma.daemon.wire.compose import ChatForm, Choice, Envelope, TextForm, total_usage
from puma.daemon.wire.logprobs import TextLogprobsWriter, chat_logprobs

HALF = TokenLogprob(7, b"\xf0\x9f", -0.5, ((7, b"\xf0\x9f", -0.5), (8, b"\xf0\x9d", float("-inf"))))
REST = TokenLogprob(9, b"\x98\x80!", -1.0, ())


def plain(struct):
    return msgspec.json.decode(msgspec.json.encode(struct))


def test_bytes_of_half_a_character():
    first, second = plain(chat_logprobs([HALF, REST]))["content"]
    assert first["token"] == "\N{REPLACEMENT CHARACTER}"
    assert first["bytes"] == [0xF0, 0x9F]
    assert [top["logprob"] for top in first["top_logprobs"]] == [-0.5, -9999.0]
    assert second["top_logprobs"] == []


def test_older_form_keeps_halves_apart_and_counts_characters():
    writer = TextLogprobsWriter()
    first, second, third = (plain(writer.write([token])) for token in (HALF, REST, REST))
    assert first["tokens"] == [r"bytes:\xf0\x9f"]
    assert first["top_logprobs"] == [{r"bytes:\xf0\x9f": -0.5, r"bytes:\xf0\x9d": -9999.0}]
    assert (first["text_offset"], second["text_offset"], third["text_offset"]) == ([0], [0], [2])


def test_usage_is_null_on_chunks_only_when_it_will_come():
    for asked in (False, True):
        envelope = Envelope("id", 1, "m", "f", include_usage=asked)
        for form in (ChatForm(envelope), TextForm(envelope)):
            chunk = plain(form.piece(0, "x", []))
            assert ("usage" in chunk) == asked
            assert chunk.get("usage") is None


def test_whole_answers_always_have_usage():
    first = Choice("a", finish="stop", prompt_tokens=2, completion_tokens=3, cached_tokens=1)
    choices = [first, Choice("b", finish="length", prompt_tokens=5, cached_tokens=4)]
    assert total_usage(choices).total_tokens == 10
    for form in (ChatForm(Envelope("id", 1, "m", "f")), TextForm(Envelope("id", 1, "m", "f"))):
        whole = plain(form.whole(choices))
        assert whole["usage"] == {
            "prompt_tokens": 7,
            "completion_tokens": 3,
            "total_tokens": 10,
            "prompt_tokens_details": {"cached_tokens": 5},
        }
        assert [choice["finish_reason"] for choice in whole["choices"]] == ["stop", "length"]

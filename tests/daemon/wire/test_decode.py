"""Bodies to structs, and faults to words."""

import contextlib

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from puma.actors.errors import BadRequest
from puma.daemon.wire.decode import checked, decode, members
from puma.daemon.wire.openai import ChatRequest, CompletionRequest

calm = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

DECODERS = [msgspec.json.Decoder(ChatRequest), msgspec.json.Decoder(CompletionRequest)]


def refusal(body, decoder):
    try:
        decode(body, decoder)
    except BadRequest as error:
        return error
    return None


def fault(body):
    with pytest.raises(BadRequest) as caught:
        decode(checked(body), DECODERS[0])
    return caught.value


def test_missing_fields_are_named_with_their_path():
    assert fault(b"{}").param == "messages"
    assert fault(b'{"messages":[{"role":"user"},{}]}').param == "messages[1].role"
    assert "required" in fault(b"{}").message


def test_wrong_items_are_told_in_words_and_their_list_is_the_field():
    found = fault(b'{"messages":[{"role":"user"},null]}')
    assert found.param == "messages"
    assert found.message.startswith("messages[1]: expected `object`, got `null`")


def test_half_pairs_are_found_among_escapes():
    for body, where in (
        (rb'{"a":"\\ud83d \ud83d"}', 14),
        (rb'{"a":"\ud83d\ude00\ud83d\n"}', 18),
        (rb'{"a":"\uDE00"}', 6),
        (rb'{"a":"\ud83d\ud83d\ude00"}', 6),
    ):
        assert f"at byte {where}" in fault(body).message


@calm
@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_a_bad_request(body):
    for decoder in DECODERS:
        with contextlib.suppress(BadRequest):
            decode(checked(body), decoder)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(), children, max_size=3),
    max_leaves=10,
)
FIELDS = st.sampled_from([*ChatRequest.__struct_fields__, *CompletionRequest.__struct_fields__, "other"])


@calm
@given(st.dictionaries(FIELDS, JSON, max_size=6))
def test_any_object_decodes_or_names_its_field(fields):
    body = msgspec.json.encode(fields)
    for decoder in DECODERS:
        error = refusal(body, decoder)
        assert error is None or error.message.startswith(error.param)
    assert set(members(body)) == set(fields)

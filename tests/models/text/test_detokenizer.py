from hypothesis import given
from hypothesis import strategies as st

from puma.models.text.detokenizer import Detokenizer
from puma.models.text.tokenizer import Tokenizer
from tests.models.text.vocabularies import metadata

FIRST_BYTE = 3
TOKENIZER = Tokenizer.from_gguf(metadata(user_defined=("<think>",), merges=("H i", "ð Ł", "ðŁ ĺ")))


def ids(raw: bytes) -> list[int]:
    return [FIRST_BYTE + byte for byte in raw]


def pieces(tokens: list[int]) -> list[str]:
    detokenizer = Detokenizer(TOKENIZER)
    return [*(detokenizer.push(token) for token in tokens), detokenizer.flush()]


def test_a_character_comes_whole_with_its_last_byte():
    assert pieces(ids("aé😁".encode())) == ["a", "", "é", "", "", "", "😁", ""]


def test_a_character_split_over_merged_tokens():
    half = FIRST_BYTE + 256 + 2
    assert TOKENIZER.token_bytes(half) == "😁".encode()[:3]
    assert pieces([half, *ids(b"\x81x")]) == ["", "😁", "x", ""]


def test_a_character_only_begun_is_replaced_at_the_end():
    assert pieces(ids("x😁".encode()[:-1])) == ["x", "", "", "", "�"]


def test_bytes_that_cannot_be_text_are_replaced_at_once():
    assert pieces(ids(b"\xffa\xc3(")) == ["�", "a", "", "�(", ""]


def test_control_tokens_have_no_text_and_break_no_character():
    first, last = ids("é".encode())
    assert pieces([0, first, 1, last]) == ["", "", "", "é", ""]


def test_user_defined_tokens_have_text():
    assert pieces([2]) == ["<think>", ""]


@given(st.lists(st.integers(0, TOKENIZER.vocabulary_size - 1) | st.integers(FIRST_BYTE + 128, FIRST_BYTE + 255)))
def test_pieces_joined_are_the_whole_decoded(tokens):
    whole = b"".join(map(TOKENIZER.text_bytes, tokens))
    assert "".join(pieces(tokens)) == whole.decode(errors="replace")


@given(st.text())
def test_text_comes_back(text):
    found = pieces(TOKENIZER.encode(text))
    assert "".join(found) == text
    for piece in found:
        assert piece.encode().decode() == piece


def test_text_of_the_real_model_comes_back(smollm2, reference):
    for case in reference["tokenize"]:
        detokenizer = Detokenizer(smollm2.tokenizer)
        found = "".join(map(detokenizer.push, case["ids"])) + detokenizer.flush()
        assert found == case["text"]

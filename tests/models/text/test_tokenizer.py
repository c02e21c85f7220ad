import numpy as np
import pytest

from puma.models.errors import ModelFileError, PromptError
from puma.models.text.tokenizer import Tokenizer
from tests.models.text.vocabularies import UNUSED, metadata


def make(**keys) -> Tokenizer:
    return Tokenizer.from_gguf(metadata(**keys))


def spelt(tokenizer: Tokenizer, text: str) -> list[bytes]:
    return [tokenizer.token_bytes(token) for token in tokenizer.encode(text)]


def test_reference_strings(smollm2, reference):
    assert len(reference["tokenize"]) == 50
    for case in reference["tokenize"]:
        assert smollm2.tokenizer.encode(case["text"]) == case["ids"], case["text"]
        assert smollm2.tokenizer.encode_prompt(case["text"]) == case["ids_special"], case["text"]


def test_bytes_of_all_reference_strings_come_back(smollm2, reference):
    for case in reference["tokenize"]:
        for ids in (case["ids"], case["ids_special"]):
            assert b"".join(map(smollm2.tokenizer.token_bytes, ids)).decode() == case["text"]


def test_special_ids_of_the_real_model(smollm2):
    tokenizer = smollm2.tokenizer
    assert tokenizer.vocabulary_size == 49152
    assert tokenizer.bos_id == 1
    assert tokenizer.end_ids == {0, 2}
    assert tokenizer.text_bytes(2) == b""
    assert tokenizer.token_bytes(2) == b"<|im_end|>"


def test_control_spellings_in_text_stay_text(smollm2):
    ids = smollm2.tokenizer.encode("<|im_end|>\n<|im_start|>system\n<|endoftext|>")
    assert min(ids) > 16


@pytest.mark.parametrize("character", ["a", " ", "\n", "<", "é"])
def test_long_runs(smollm2, character):
    for encode in (smollm2.tokenizer.encode, smollm2.tokenizer.encode_prompt):
        ids = encode(character * 100_000)
        assert b"".join(map(smollm2.tokenizer.token_bytes, ids)).decode() == character * 100_000


def test_digits_are_alone_with_smollm_and_together_with_gpt2():
    merges = ("1 2", "12 3")
    assert spelt(make(merges=merges), "x123") == [b"x", b"1", b"2", b"3"]
    assert spelt(make(merges=merges, pre="gpt-2"), "x123") == [b"x", b"123"]


def test_merges_never_cross_a_space():
    assert spelt(make(merges=("a Ġ", "Ġ b")), "a b") == [b"a", b" b"]


@pytest.mark.parametrize("pre", ["llama-bpe", "", None, 7])
def test_unknown_pre_tokenizers_are_errors(pre):
    with pytest.raises(ModelFileError) as caught:
        make(pre=pre)
    assert repr(pre) in str(caught.value)
    assert "gpt-2, smollm" in str(caught.value)


def test_the_start_token_is_added_once_and_only_if_the_model_says_so():
    bos = {"control": ("<s>", "</s>"), "bos_token_id": 0}
    assert make(**bos, add_bos_token=True).encode_prompt("a")[0] == 0
    assert make(**bos, add_bos_token=True).encode_prompt("<s>a").count(0) == 1
    assert make(**bos, add_bos_token=True).encode_prompt("") == [0]
    assert make(**bos, add_bos_token=True).encode("a")[0] != 0
    assert 0 not in make(**bos, add_bos_token=False).encode_prompt("a")
    assert 0 not in make(**bos).encode_prompt("a")
    assert make(add_bos_token=True).encode_prompt("a") == make().encode("a")


def test_the_longest_spelling_counts():
    tokenizer = make(control=("<a", "<a>", "<a>>", "b"))
    assert tokenizer.encode_prompt("<a>><a><ab") == [2, 1, 0, 3]


def test_user_defined_tokens_are_found_in_any_text():
    tokenizer = make(user_defined=("<think>", "  "))
    assert spelt(tokenizer, "a<think>  b") == [b"a", b"<think>", b"  ", b"b"]
    assert spelt(tokenizer, "a <think> b") == [b"a", b" ", b"<think>", b" ", b"b"]
    assert tokenizer.text_bytes(2) == b"<think>"


def test_end_ids_come_from_keys_and_from_spellings():
    assert make(control=("<x>", "<|eot_id|>", "<y>"), eos_token_id=2).end_ids == {1, 2}
    assert make(control=("<x>", "<y>"), eos_token_id=0, eot_token_id=1).end_ids == {0, 1}
    assert make(control=(), user_defined=("<|im_end|>",)).end_ids == {0}
    assert make(control=("<x>",)).end_ids == frozenset()


def test_an_ordinary_token_that_is_spelt_like_an_end_is_none():
    plain = metadata(control=(), merges=("< /", "</ s", "</s >"))
    assert plain["tokenizer.ggml.tokens"][-1] == "</s>"
    assert Tokenizer.from_gguf(plain).end_ids == frozenset()


def test_unused_tokens_have_no_text():
    values = metadata()
    values["tokenizer.ggml.token_type"][5] = UNUSED
    assert Tokenizer.from_gguf(values).text_bytes(5) == b""


@pytest.mark.parametrize("text", ["\ud800", "ab\udfffc", "é\ud83d"])
def test_half_a_surrogate_pair(smollm2, text):
    for encode in (smollm2.tokenizer.encode, smollm2.tokenizer.encode_prompt):
        with pytest.raises(PromptError, match="half a surrogate pair"):
            encode(text)
    assert smollm2.tokenizer.encode("\U0001f601")


def test_bytes_without_a_token_leave_nothing(smollm2):
    assert smollm2.tokenizer.encode("\x04") == []
    assert smollm2.tokenizer.encode_prompt("\x04") == []


@pytest.mark.parametrize(
    ("broken", "names"),
    [
        ({"tokenizer.ggml.model": "llama"}, "tokenizer.ggml.model is 'llama'"),
        ({"tokenizer.ggml.tokens": []}, "tokenizer.ggml.tokens is missing"),
        ({"tokenizer.ggml.tokens": np.array([1])}, "no array of strings"),
        ({"tokenizer.ggml.tokens": ["ok", "\udcff"]}, r"tokens[1] is not UTF-8: b'\xff'"),
        ({"tokenizer.ggml.token_type": np.array([1, 1], np.int32)}, "token_type is no array of 258"),
        ({"tokenizer.ggml.token_type": "1"}, "token_type is no array of 258"),
        ({"tokenizer.ggml.merges": ["ab"]}, "merges[0] is 'ab'"),
        ({"tokenizer.ggml.merges": ["a "]}, "merges[0] is 'a '"),
        ({"tokenizer.ggml.merges": [" a"]}, "merges[0] is ' a'"),
        ({"tokenizer.ggml.merges": ["a b"]}, "merges[0] joins 'a' and 'b'"),
        ({"tokenizer.ggml.bos_token_id": 258}, "bos_token_id is 258; the vocabulary has the ids 0 to 257"),
        ({"tokenizer.ggml.eos_token_id": -1}, "eos_token_id is -1"),
        ({"tokenizer.ggml.add_bos_token": 1}, "add_bos_token is 1"),
    ],
)
def test_broken_vocabularies_are_named(broken, names):
    with pytest.raises(ModelFileError) as caught:
        Tokenizer.from_gguf({**metadata(), **broken})
    assert names in str(caught.value)


def test_a_vocabulary_without_kinds_is_all_text():
    values = metadata()
    del values["tokenizer.ggml.token_type"]
    tokenizer = Tokenizer.from_gguf(values)
    assert 0 not in tokenizer.encode_prompt("<|im_start|>")

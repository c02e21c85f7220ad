"""Bad files: each is refused with a message that says what, where, expected and found; none is ever half read."""

import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from puma.models.errors import ModelFileError
from puma.models.formats.gguf import read_gguf
from puma.models.formats.weight_types import SUPPORTED, WeightType
from tests.models.formats.gguf_writer import Typed, array, gguf_bytes, padding, string, tensor_info, value

TENSORS = {
    "token_embd.weight": ((64, 4), WeightType.Q8_0, bytes(8 * 34)),
    "output_norm.weight": ((64,), WeightType.F32, bytes(64 * 4)),
    "output.weight": ((8, 4), WeightType.F32, bytes(8 * 4 * 4)),
}
METADATA = {
    "general.architecture": "llama",
    "tokens": ["a", "b", "c"],
    "scores": np.array([1.0, 2.0], np.float32),
}
WHOLE = gguf_bytes(METADATA, TENSORS)
HEAD = struct.Struct("<4sIQQ")


@pytest.fixture
def refusal(tmp_path):
    """The message with which a file of these bytes is refused."""

    def refuse(content: bytes) -> str:
        path = tmp_path / "model.gguf"
        path.write_bytes(content)
        with pytest.raises(ModelFileError) as caught:
            read_gguf(path).close()
        assert "model.gguf" in str(caught.value)
        return str(caught.value)

    return refuse


def with_infos(*infos: bytes, data: bytes = bytes(512), metadata: bytes = b"", keys: int = 0) -> bytes:
    head = HEAD.pack(b"GGUF", 3, len(infos), keys) + metadata + b"".join(infos)
    return head + padding(len(head), 32) + data


def with_key(key: str | bytes, raw: bytes) -> bytes:
    return with_infos(metadata=string(key) + raw, keys=1)


def test_the_whole_file_is_good(tmp_path):
    path = tmp_path / "model.gguf"
    path.write_bytes(WHOLE)
    with read_gguf(path) as file:
        assert set(file.tensors) == set(TENSORS)


@pytest.mark.parametrize("length", range(1, len(WHOLE), 7))
def test_cut_short_anywhere(refusal, length):
    message = refusal(WHOLE[:length])
    assert "cut short" in message
    assert str(length) in message


@pytest.mark.parametrize(
    ("missing", "first"),
    [
        (1, "output.weight"),
        (128, "output.weight"),
        (129, "output_norm.weight"),
        (128 + 256 + 16 + 1, "token_embd.weight"),
    ],
)
def test_the_first_tensor_out_of_bounds_is_named(refusal, missing, first):
    message = refusal(WHOLE[:-missing])
    assert f"'{first}'" in message
    assert f"the file has {len(WHOLE) - missing}" in message
    if first == "output.weight":
        assert f"a file of {len(WHOLE)} bytes" in message


SAFETENSORS = struct.pack("<Q", 60) + b'{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'.ljust(60) + bytes(4)


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "empty"),
        (b"GG", "cut short after 2 bytes"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html></html>", "web page"),
        (b"\n  <HTML><body>Log in</body></HTML>", "web page"),
        (SAFETENSORS, "safetensors"),
        (b'{"error": "Repository not found"}', "JSON"),
        (b"\x1f\x8b\x08" + bytes(50), "gzip"),
        (b"tjgg" + bytes(50), "before GGUF"),
        (bytes(4096), "zeros"),
        (b"hello, world", "68 65 6c 6c 6f"),
    ],
)
def test_not_a_model_at_all(refusal, content, what):
    message = refusal(content)
    assert what in message
    assert "again" in message


def test_a_zip_archive_a_folder_and_nothing(refusal, tmp_path):
    archive = tmp_path / "model.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("data.pkl", b"0")
    assert "zip archive" in refusal(archive.read_bytes())
    with pytest.raises(ModelFileError, match="folder"):
        read_gguf(tmp_path)
    with pytest.raises(ModelFileError, match="No such file"):
        read_gguf(tmp_path / "absent.gguf")


@pytest.mark.parametrize("version", [0, 1, 4, 1000])
def test_other_versions(refusal, version):
    message = refusal(gguf_bytes(METADATA, TENSORS, version=version))
    assert f"version {version}" in message
    assert "2 and 3" in message


def test_swapped_bytes(refusal):
    message = refusal(struct.pack(">4sIQQ", b"GGUF", 3, 0, 0) + bytes(64))
    assert "big-endian" in message
    assert "version 3" in message


@pytest.mark.parametrize("alignment", [0, 3, 24, -32, "32", True, 32.0])
def test_alignments_that_are_no_power_of_two(refusal, alignment):
    message = refusal(with_key("general.alignment", value(alignment)))
    assert f"general.alignment is {alignment!r}" in message


def test_offsets(refusal):
    def one(offset: int) -> str:
        return refusal(with_infos(tensor_info("w", (8,), 0, offset)))

    assert "'w'" in one(512)
    assert "offset wrong" in one(512)
    assert f"offset {2**63 + 64}" in one(2**63)
    assert "multiple of the alignment, 32" in one(33)


def test_overlapping_tensors(refusal):
    message = refusal(with_infos(tensor_info("a", (16,), 0, 0), tensor_info("b", (16,), 0, 32)))
    assert "'b'" in message
    assert "inside tensor 'a'" in message


@pytest.mark.parametrize(("number", "name"), [(99, "99"), (2**31, str(2**31)), (4, "Q4_2"), (31, "Q4_0_4_4")])
def test_unknown_weight_types(refusal, number, name):
    message = refusal(with_infos(tensor_info("blk.0.w", (32,), number, 0)))
    for part in ("'blk.0.w'", str(number), name, *(kind.name for kind in SUPPORTED)):
        assert part in message


def test_shapes(refusal):
    assert "5 dimensions" in refusal(with_infos(tensor_info("w", (1, 1, 1, 1, 1), 0, 0)))
    assert "0 dimensions" in refusal(with_infos(tensor_info("w", (), 0, 0)))
    assert "holds a zero" in refusal(with_infos(tensor_info("w", (4, 0), 0, 0)))
    assert "no whole blocks" in refusal(with_infos(tensor_info("w", (33,), int(WeightType.Q4_0), 0)))
    assert "cut short" in refusal(with_infos(tensor_info("w", (2**62, 2**62), 0, 0)))


def test_the_same_name_twice(refusal):
    twice = string("k") + value(1)
    assert "'k'" in refusal(with_infos(metadata=twice * 2, keys=2))
    info = tensor_info("w", (8,), 0, 0)
    assert "'w'" in refusal(with_infos(info, info))


def test_counts_and_lengths_that_the_file_cannot_hold(refusal):
    huge = 2**60
    assert "tensor 1 of" in refusal(HEAD.pack(b"GGUF", 3, huge, 0))
    assert "cut short" in refusal(HEAD.pack(b"GGUF", 3, 0, huge))
    assert "'k'" in refusal(with_key("k", struct.pack("<I", 8) + struct.pack("<Q", huge)))
    for kind in (0, 7, 8, 12, 9):
        message = refusal(with_key("k", value(Typed(9, array(kind, huge, bytes(16))))))
        assert "'k'" in message
        assert "cut short" in message
    tokens = array(8, 3, string("a") + struct.pack("<Q", huge))
    assert "element 2 of 3" in refusal(with_key("tokens", value(Typed(9, tokens))))


def test_value_types_and_nesting(refusal):
    assert "value type 13" in refusal(with_key("k", struct.pack("<I", 13)))
    assert "element type 77" in refusal(with_key("k", value(Typed(9, array(77, 0, b"")))))
    deep = array(4, 0, b"")
    for _ in range(1000):
        deep = array(9, 1, deep)
    assert "nested more than 4 deep" in refusal(with_key("k", value(Typed(9, deep))))


def test_names_must_be_utf8(refusal):
    assert "not UTF-8" in refusal(with_key(b"\xff", value(1)))
    assert "not UTF-8" in refusal(with_infos(tensor_info(b"\xfe", (8,), 0, 0)))


def test_shards_are_refused_by_number(refusal):
    message = refusal(gguf_bytes({"split.count": Typed(2, 3), "split.no": Typed(2, 1)}, {}))
    assert "part 2 of a model in 3 files" in message


@settings(max_examples=300, deadline=None)
@given(position=st.integers(0, len(WHOLE) - 1), garbage=st.binary(min_size=1, max_size=12), length=st.integers(0, 999))
def test_garbage_anywhere_is_read_or_refused(tmp_path_factory, position, garbage, length):
    path = tmp_path_factory.getbasetemp() / "garbage.gguf"
    broken = WHOLE[:position] + garbage + WHOLE[position + len(garbage) :]
    path.write_bytes(broken[: len(broken) - length])
    try:
        with read_gguf(path) as file:
            for name in file.tensors:
                file.data(name).sum()
    except ModelFileError:
        pass

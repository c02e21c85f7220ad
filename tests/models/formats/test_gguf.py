"""Good files: what the reader gives back, against the writer and against the real model."""

import gguf
import numpy as np
import pytest

from puma.models.errors import ModelFileError
from puma.models.formats.gguf import read_gguf
from puma.models.formats.weight_types import SUPPORTED, WeightType
from tests.models.formats.gguf_writer import Typed, array, gguf_bytes, write_gguf

METADATA = {
    "general.architecture": "llama",
    "a.bool": True,
    "an.int": 7,
    "a.negative": -3,
    "a.big": 1 << 40,
    "a.float": 0.5,
    "a.double": Typed(12, 0.1),
    "a.byte": Typed(0, 255),
    "a.small": Typed(1, -128),
    "a.short": Typed(3, -2),
    "an.array": np.array([1, -2, 3], np.int32),
    "no.numbers": np.array([], np.float32),
    "some.strings": ["a", "", "Ġé", "<|im_start|>"],
    "no.strings": [],
}


def row(weight_type: WeightType, elements: int, seed: int = 0) -> bytes:
    count = elements // weight_type.block_size * weight_type.block_bytes
    return np.random.default_rng(seed).integers(0, 256, count, np.uint8).tobytes()


def plain(metadata):
    return {
        key: value.tolist() if isinstance(value, np.ndarray) else value.value if isinstance(value, Typed) else value
        for key, value in metadata.items()
    }


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("alignment", [8, 32, 4096])
def test_metadata_and_tensors_come_back(tmp_path, version, alignment):
    path = tmp_path / "model.gguf"
    tensors = {
        "vector": ((5,), WeightType.F32, row(WeightType.F32, 5)),
        "matrix": ((64, 3), WeightType.Q4_1, row(WeightType.Q4_1, 64 * 3)),
        "halves": ((2, 2, 2, 2), WeightType.F16, row(WeightType.F16, 16)),
    }
    write_gguf(path, METADATA, tensors, version=version, alignment=alignment)
    with read_gguf(path) as file:
        assert file.version == version
        metadata = dict(file.metadata)
        assert metadata.pop("general.alignment", 32) == alignment
        assert plain(metadata) == plain(METADATA)
        for name, (shape, weight_type, raw) in tensors.items():
            info = file.tensors[name]
            assert (info.shape, info.type, info.nbytes) == (shape, weight_type, len(raw))
            assert info.offset % alignment == 0
            assert file.data(name).tobytes() == raw
        assert list(file.tensors) == list(tensors)


def test_the_types_of_values(tmp_path):
    path = tmp_path / "model.gguf"
    write_gguf(path, METADATA, {})
    with read_gguf(path) as file:
        assert file.metadata["a.bool"] is True
        assert file.metadata["an.array"].dtype == np.int32
        assert file.metadata["an.array"].flags.owndata
        assert file.metadata["some.strings"] == ["a", "", "Ġé", "<|im_start|>"]


def test_views_are_read_only_and_outlive_the_file(tmp_path):
    path = tmp_path / "model.gguf"
    write_gguf(path, {}, {"x": ((4,), WeightType.F32, np.arange(4, dtype=np.float32).tobytes())})
    with read_gguf(path) as file:
        view = file.data("x")
    assert not view.flags.writeable
    assert view.view(np.float32).tolist() == [0, 1, 2, 3]


def test_bytes_that_are_no_utf8_are_kept(tmp_path):
    path = tmp_path / "model.gguf"
    write_gguf(path, {"general.name": b"caf\xe9", "tokens": [b"\xff", b"ok"]}, {})
    with read_gguf(path) as file:
        assert file.metadata["general.name"] == "caf\\xe9"
        assert [token.encode(errors="surrogateescape") for token in file.metadata["tokens"]] == [b"\xff", b"ok"]


def test_nested_arrays(tmp_path):
    inner = array(4, 2, np.array([1, 2], np.uint32).tobytes()) + array(8, 0, b"")
    path = tmp_path / "model.gguf"
    write_gguf(path, {"nested": Typed(9, array(9, 2, inner))}, {})
    with read_gguf(path) as file:
        numbers, strings = file.metadata["nested"]
        assert numbers.tolist() == [1, 2]
        assert strings == []


def test_types_that_cannot_be_computed_with_are_named(tmp_path):
    path = tmp_path / "model.gguf"
    tensors = {
        "fine": ((32,), WeightType.Q8_0, row(WeightType.Q8_0, 32)),
        "blk.0.odd": ((256,), WeightType.IQ3_S, row(WeightType.IQ3_S, 256)),
    }
    write_gguf(path, {}, tensors)
    with read_gguf(path) as file, pytest.raises(ModelFileError) as caught:
        file.check_types()
    for part in ("model.gguf", "'blk.0.odd'", "IQ3_S", "21", *(kind.name for kind in SUPPORTED)):
        assert part in str(caught.value)


def test_sizes_agree_with_ggml():
    ours = {int(kind): (kind.block_size, kind.block_bytes) for kind in WeightType}
    theirs = {int(kind): size for kind, size in gguf.GGML_QUANT_SIZES.items()}
    assert {number: ours.get(number) for number in theirs} == theirs


def test_the_real_model(smollm2_path):
    other = gguf.GGUFReader(smollm2_path)
    with read_gguf(smollm2_path) as file:
        file.check_types()
        assert file.metadata["llama.embedding_length"] == 576
        for key in ("tokenizer.ggml.tokens", "tokenizer.ggml.merges", "tokenizer.chat_template"):
            assert file.metadata[key] == other.fields[key].contents()
        assert len(file.tensors) == len(other.tensors) == 272
        for tensor in other.tensors:
            info = file.tensors[tensor.name]
            assert info.shape == tuple(tensor.shape.tolist())
            assert (int(info.type), info.offset, info.nbytes) == (
                int(tensor.tensor_type),
                tensor.data_offset,
                tensor.n_bytes,
            )
            assert np.array_equal(file.data(tensor.name), tensor.data.view(np.uint8).reshape(-1))


def test_a_large_vocabulary_is_read_in_one_go(tmp_path):
    tokens = [f"token {n} ▁é" for n in range(262_144)]
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_bytes({"tokenizer.ggml.tokens": tokens}, {}))
    with read_gguf(path) as file:
        assert file.metadata["tokenizer.ggml.tokens"] == tokens

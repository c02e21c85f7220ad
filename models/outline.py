"""Outline: what a model is as its header describes it. Neither building nor checking one reads a weight."""

import msgspec
import numpy as np
from numpy.typing import NDArray

from puma.config.plan import ModelFacts
from puma.models.architectures import llama
from puma.models.architectures.hyperparameters import Hyperparameters, Metadata, read_hyperparameters
from puma.models.errors import ModelFileError
from puma.models.formats.gguf import GGUFHeader
from puma.models.program import Program
from puma.models.tensors import Tensors
from puma.models.text.model_text import ModelText

ARCHITECTURES = {"llama": llama.build}


class Outline(msgspec.Struct, frozen=True):
    """A whole model, its weights not yet packed."""

    architecture: str
    text: ModelText
    shape: Hyperparameters
    program: Program
    rope_factors: NDArray[np.float32] | None
    stored_bytes: int
    """Of all tensors in the file."""

    def facts(self, name: str, source: str, *, remote: bool) -> ModelFacts:
        """What the memory plan needs to know; before the weights are packed or after."""
        return ModelFacts(
            name=name,
            architecture=self.architecture,
            source=source,
            remote=remote,
            stored_bytes=self.stored_bytes,
            weight_bytes=self.program.weight_bytes,
            layers=self.shape.layers,
            kv_heads=self.shape.kv_heads,
            head_dim=self.shape.head_dim,
            context_length=self.shape.context_length,
            vocabulary_size=self.shape.tokens,
        )


def read_outline(header: GGUFHeader, tensors: Tensors) -> Outline:
    """The outline of a file. Raises ModelFileError when it is not a model that can be run."""
    header.check_types()
    text = read_text(header)
    shape = read_shape(header, text.tokenizer.vocabulary_size)
    name = architecture_of(header)
    program = ARCHITECTURES[name](shape, tensors)
    factors = tensors.vector("rope_freqs.weight", shape.head_dim // 2) if "rope_freqs.weight" in tensors else None
    tensors.refuse_rest()
    stored = sum(tensor.nbytes for tensor in header.tensors.values())
    return Outline(name, text, shape, program, factors, stored)


def architecture_of(header: GGUFHeader) -> str:
    """The architecture's name. Raises ModelFileError when it is none of ours."""
    name = header.metadata.get("general.architecture")
    if name not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModelFileError(f"{header.path}: architecture {name!r} is not supported; supported: {known}")
    return name


def read_shape(header: GGUFHeader, tokens: int) -> Hyperparameters:
    """The sizes of the model; `tokens` is how many its tokenizer knows."""
    metadata = Metadata(header.metadata, header.path, architecture_of(header))
    embedding = header.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.shape) != 2:
        raise ModelFileError(f"{header.path}: tensor token_embd.weight is missing or no matrix")
    rows = embedding.shape[1]
    if tokens > rows:
        raise ModelFileError(f"{header.path}: the tokenizer knows {tokens} tokens, token_embd.weight only {rows}")
    return read_hyperparameters(metadata, rows, tokens)


def read_text(header: GGUFHeader) -> ModelText:
    """Tokenizer and template. Raises ModelFileError that names the file."""
    try:
        return ModelText.from_gguf(header.metadata)
    except ModelFileError as error:
        raise ModelFileError(f"{header.path}: {error}") from error

"""Llama: RMSNorm, rotary positions, grouped-query attention, SwiGLU; the output head may be the embedding.

Source: Touvron et al., "LLaMA", 2023; Ainslie et al., "GQA", 2023; names of tensors and keys are GGUF's.
"""

import numpy as np
from numpy.typing import NDArray

from puma.models.architectures.hyperparameters import Hyperparameters
from puma.models.program import Program
from puma.models.tensors import Tensors
from puma.models.weights import Tensor


def build(shape: Hyperparameters, tensors: Tensors) -> Program:
    """The program of a whole model."""
    program = Program()
    hidden, normed = program.buffer(shape.hidden), program.buffer(shape.hidden)
    heads_size = shape.heads * shape.head_dim
    projected = program.buffer(heads_size + 2 * shape.kv_heads * shape.head_dim)
    attended, gated = program.buffer(heads_size), program.buffer(shape.feed_forward)

    embedding = tensors.matrix("token_embd.weight", shape.vocabulary, shape.hidden)
    embedding_matrix = program.matrix([embedding])
    program.embed(embedding_matrix, hidden)
    for layer in range(shape.layers):
        name = f"blk.{layer}."
        program.norm(hidden, normed, tensors.vector(name + "attn_norm.weight", shape.hidden), shape.epsilon)
        query = half_split(tensors.matrix(name + "attn_q.weight", heads_size, shape.hidden), shape.head_dim)
        key_size = shape.kv_heads * shape.head_dim
        key = half_split(tensors.matrix(name + "attn_k.weight", key_size, shape.hidden), shape.head_dim)
        value = tensors.matrix(name + "attn_v.weight", key_size, shape.hidden)
        program.project(normed, projected, [query, key, value])
        program.rotate(projected, layer)
        program.attend(projected, attended, layer)
        program.quantise(attended)
        output = tensors.matrix(name + "attn_output.weight", shape.hidden, heads_size)
        program.project(attended, hidden, [output], residual=True)
        program.norm(hidden, normed, tensors.vector(name + "ffn_norm.weight", shape.hidden), shape.epsilon)
        gate = tensors.matrix(name + "ffn_gate.weight", shape.feed_forward, shape.hidden)
        up = tensors.matrix(name + "ffn_up.weight", shape.feed_forward, shape.hidden)
        program.gated(normed, gated, gate, up)
        program.quantise(gated)
        down = tensors.matrix(name + "ffn_down.weight", shape.hidden, shape.feed_forward)
        program.project(gated, hidden, [down], residual=True)
    add_head(program, shape, tensors, hidden, embedding_matrix)
    return program


def add_head(program: Program, shape: Hyperparameters, tensors: Tensors, hidden: int, embedding_matrix: int) -> None:
    """Logits and sampling, for the rows that want them."""
    selected = program.buffer(shape.hidden, per_sample=True)
    normed = program.buffer(shape.hidden, per_sample=True)
    logits = program.buffer(shape.vocabulary, per_sample=True, counted=shape.tokens)
    program.select(hidden, selected)
    weights = tensors.vector("output_norm.weight", shape.hidden)
    # What comes so late is averaged by no later layer, and only few rows get here: all of it keeps sixteen bits.
    program.norm(selected, normed, weights, shape.epsilon, outlier=0.0)
    head = embedding_matrix
    if "output.weight" in tensors:
        head = program.matrix([tensors.matrix("output.weight", shape.vocabulary, shape.hidden)])
    program.multiply(normed, logits, head)
    program.sample(logits)


def half_split(tensor: Tensor, head_dim: int) -> Tensor:
    """Reorder each head's outputs so that the pairs which rotate together are half a head apart.

    GGUF stores llama's queries and keys with such pairs as neighbours.
    """
    within = np.concatenate([np.arange(0, head_dim, 2), np.arange(1, head_dim, 2)])
    starts = np.arange(0, tensor.outputs, head_dim)[:, None]
    order: NDArray[np.int64] = (starts + within[None, :]).reshape(-1)
    return Tensor(tensor.type, tensor.outputs, tensor.inner, tensor.data, order)

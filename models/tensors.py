"""A file's tensors, asked for by name and checked against the shape that the architecture expects."""

import numpy as np
from numpy.typing import NDArray

from puma.models.errors import ModelFileError
from puma.models.formats.gguf import GGUFFile
from puma.models.formats.gguf_tensors import TensorInfo
from puma.models.formats.weight_types import WeightType
from puma.models.weights import Tensor


class Tensors:
    """Remembers what has been taken, so that surplus tensors can be refused."""

    def __init__(self, file: GGUFFile) -> None:
        self._file = file
        self._taken: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._file.tensors

    def matrix(self, name: str, outputs: int, inner: int) -> Tensor:
        """A matrix of this shape. Raises ModelFileError when it is missing or has another one."""
        info = self._take(name, (inner, outputs))
        return Tensor(info.type, outputs, inner, self._file.data(name).reshape(outputs, -1))

    def vector(self, name: str, size: int) -> NDArray[np.float32]:
        """A vector of float32 [size]."""
        info = self._take(name, (size,))
        data = self._file.data(name)
        if info.type is WeightType.F32:
            return data.view(np.float32)
        if info.type is WeightType.F16:
            return data.view(np.float16).astype(np.float32)
        raise ModelFileError(f"{self._file.path}: {name} has type {info.type.name}; a vector is F32 or F16")

    def refuse_rest(self) -> None:
        """Raise ModelFileError when the file holds tensors that nothing has asked for."""
        if surplus := sorted(set(self._file.tensors) - self._taken):
            shown = ", ".join(surplus[:5]) + (", ..." if len(surplus) > 5 else "")
            raise ModelFileError(
                f"{self._file.path} holds {len(surplus)} tensors that its architecture does not know: {shown}. "
                "Ignoring them would change the answers."
            )

    def _take(self, name: str, shape: tuple[int, ...]) -> TensorInfo:
        info = self._file.tensors.get(name)
        if info is None:
            raise ModelFileError(f"{self._file.path}: tensor {name} is missing")
        found = info.shape[: len(shape)] + tuple(size for size in info.shape[len(shape) :] if size != 1)
        if found != shape:
            raise ModelFileError(
                f"{self._file.path}: tensor {name} has shape {list(info.shape)}, expected {list(shape)}"
            )
        self._taken.add(name)
        return info

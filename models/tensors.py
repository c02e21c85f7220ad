"""A file's tensors, asked for by name and checked against the shape that the architecture expects."""

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import NDArray

from puma.models.errors import ModelFileError
from puma.models.formats.gguf import GGUFFile, GGUFHeader
from puma.models.formats.gguf_tensors import TensorInfo
from puma.models.formats.weight_types import WeightType
from puma.models.weights import Tensor


class Tensors:
    """Remembers what has been taken, so that surplus tensors can be refused."""

    def __init__(self, header: GGUFHeader, data: Callable[[str], NDArray[np.uint8]]) -> None:
        """`data` gives a tensor's bytes, uint8 [nbytes], by its name."""
        self._header, self._data = header, data
        self._taken: set[str] = set()

    @classmethod
    def of(cls, file: GGUFFile) -> Self:
        """Those of a file that is here."""
        return cls(file, file.data)

    @classmethod
    def without_data(cls, header: GGUFHeader) -> Self:
        """Those of a header alone: whatever they hold is zero, and matrices take no memory."""

        def zeros(name: str) -> NDArray[np.uint8]:
            info = header.tensors[name]
            one_dimension = len(info.shape) == 1
            return np.zeros(info.nbytes, np.uint8) if one_dimension else np.broadcast_to(np.uint8(0), info.nbytes)

        return cls(header, zeros)

    def __contains__(self, name: str) -> bool:
        return name in self._header.tensors

    def matrix(self, name: str, outputs: int, inner: int) -> Tensor:
        """A matrix of this shape. Raises ModelFileError when it is missing or has another one."""
        info = self._take(name, (inner, outputs))
        return Tensor(info.type, outputs, inner, self._data(name).reshape(outputs, -1))

    def vector(self, name: str, size: int) -> NDArray[np.float32]:
        """A vector of float32 [size]."""
        info = self._take(name, (size,))
        data = self._data(name)
        if info.type is WeightType.F32:
            return data.view(np.float32)
        if info.type is WeightType.F16:
            return data.view(np.float16).astype(np.float32)
        raise ModelFileError(f"{self._header.path}: {name} has type {info.type.name}; a vector is F32 or F16")

    def refuse_rest(self) -> None:
        """Raise ModelFileError when the file holds tensors that nothing has asked for."""
        if surplus := sorted(set(self._header.tensors) - self._taken):
            shown = ", ".join(surplus[:5]) + (", ..." if len(surplus) > 5 else "")
            raise ModelFileError(
                f"{self._header.path} holds {len(surplus)} tensors that its architecture does not know: {shown}. "
                "Ignoring them would change the answers."
            )

    def _take(self, name: str, shape: tuple[int, ...]) -> TensorInfo:
        info = self._header.tensors.get(name)
        if info is None:
            raise ModelFileError(f"{self._header.path}: tensor {name} is missing")
        found = info.shape[: len(shape)] + tuple(size for size in info.shape[len(shape) :] if size != 1)
        if found != shape:
            raise ModelFileError(
                f"{self._header.path}: tensor {name} has shape {list(info.shape)}, expected {list(shape)}"
            )
        self._taken.add(name)
        return info

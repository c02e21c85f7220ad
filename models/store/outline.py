"""The outline of whatever a user names: a model that is here."""

from puma.models.formats.gguf import read_gguf
from puma.models.outline import Outline, read_outline
from puma.models.store.resolve import resolve
from puma.models.tensors import Tensors


def outline_of(model: str) -> tuple[Outline, str, bool]:
    """The outline, where its header was read, and whether that is elsewhere. Raises StoreError or ModelFileError."""
    path = resolve(model)
    with read_gguf(path) as file:
        return read_outline(file, Tensors.without_data(file)), str(path), False

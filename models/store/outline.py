"""The outline of whatever a user calls a model: one that is here, or one whose header is read from afar."""

from puma.models.formats.gguf import GGUFHeader, read_gguf
from puma.models.outline import Outline, read_outline
from puma.models.store.address import address_of
from puma.models.store.catalogue import CATALOGUE
from puma.models.store.remote import header_at, header_in_wheel
from puma.models.store.resolve import resolve
from puma.models.tensors import Tensors


def outline_of(model: str) -> tuple[Outline, str, bool]:
    """The outline, where its header was read, and whether that is elsewhere. Raises StoreError or ModelFileError."""
    if address := address_of(model):
        return _of(header_at(address)), address, True
    for entry in CATALOGUE:
        if entry.name == model and not entry.is_here:
            header = header_in_wheel(entry)
            return _of(header), str(header.path), True
    path = resolve(model)
    with read_gguf(path) as file:
        return _of(file), str(path), False


def _of(header: GGUFHeader) -> Outline:
    return read_outline(header, Tensors.without_data(header))

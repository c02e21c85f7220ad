"""From what a user calls a model to its file."""

import os
from pathlib import Path

from puma.models.store.address import address_of
from puma.models.store.catalogue import CATALOGUE, find
from puma.models.store.errors import StoreError


def resolve(name_or_path: str) -> Path:
    """The file of a model. Raises StoreError when there is none.

    A name of the catalogue means the same in every folder. Whatever else exists, or ends in .gguf, is a path.
    """
    named = any(entry.name == name_or_path for entry in CATALOGUE)
    exists = bool(name_or_path) and os.path.exists(name_or_path)
    if not named and exists:
        return Path(name_or_path)
    if not named and address_of(name_or_path):
        raise StoreError(f"{name_or_path} can be planned with, but not served yet: download it, and name the file")
    if not named and name_or_path.endswith(".gguf"):
        raise StoreError(f"there is no file {name_or_path!r}")
    entry = find(name_or_path)
    if not entry.is_here:
        raise StoreError(f"{entry.name} is not here yet; fetch it with `puma pull {entry.name}`")
    return entry.path

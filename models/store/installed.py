"""The models that are here."""

from pathlib import Path

import msgspec

from puma.models.store.catalogue import CATALOGUE
from puma.models.store.home import models_folder


class InstalledModel(msgspec.Struct, frozen=True):
    """One model file in the data folder. `name` is what `puma serve` takes."""

    name: str
    path: Path
    bytes: int


def installed() -> list[InstalledModel]:
    """All model files in the data folder, by name. None of them is opened, so a broken one disturbs no other."""
    names = {entry.path: entry.name for entry in CATALOGUE}
    return sorted(
        (
            InstalledModel(names.get(path, str(path)), path, path.stat().st_size)
            for path in models_folder().glob("*.gguf")
            if not path.name.startswith(".") and path.is_file()
        ),
        key=lambda model: model.name,
    )

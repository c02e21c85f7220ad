"""Where compiled kernels are kept between starts.

Numba checks only the file a function stands in, not what it imports. So the folder's name is a digest of everything
the machine code depends on: all kernel sources, Numba, LLVM, the CPU and the chosen instructions.
"""

import hashlib
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import llvmlite
import numba
import platformdirs
from numba.core import config as numba_config

from puma.config.home import chosen_home
from puma.kernels import cpu

UNUSED_SECONDS = 30 * 24 * 3600

FOLDER_NAME = "PUMA_COMPILE_FOLDER"
"""Environment variable by which a process that compiles for another is told the other's folder; not for users."""


def digest() -> str:
    """Sixteen hex digits that change whenever the compiled code could."""
    found = hashlib.sha256()
    for part in (numba.__version__, llvmlite.__version__, cpu.MACHINE, cpu.CPU_NAME, cpu.LOWERING):
        found.update(part.encode() + b"\0")
    folder = Path(__file__).parent
    for source in sorted(folder.rglob("*.py")):
        found.update(source.relative_to(folder).as_posix().encode() + b"\0" + source.read_bytes())
    return found.hexdigest()[:16]


def cache_folder() -> Path:
    """The first folder of these that can be written: PUMA_HOME, the user's cache, a temporary one of our own.

    Its name is the digest.
    """
    if told := os.environ.get(FOLDER_NAME):
        return Path(told)
    home = chosen_home()
    candidates = [home / "cache"] if home else []
    candidates.append(platformdirs.user_cache_path("puma"))
    for parent in candidates:
        folder = parent / "kernels" / digest()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            prune(folder)
            return folder
    folder = Path(tempfile.mkdtemp(prefix="puma-kernels-")) / digest()
    folder.mkdir()
    return folder


def is_current() -> bool:
    """Whether the folder in use still belongs to the sources as they are now."""
    return Path(numba_config.CACHE_DIR).name == digest()


def prune(current: Path) -> None:
    """Remove what other versions left and nobody has used for a month."""
    os.utime(current)
    for folder in current.parent.iterdir():
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > UNUSED_SECONDS:
                shutil.rmtree(folder)


def configure() -> None:
    """Tell Numba. It reads the setting when a function is decorated, so this runs before any kernel is defined."""
    numba_config.CACHE_DIR = str(cache_folder())

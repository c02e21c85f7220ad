"""Puma's version, as installed."""

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    return metadata.version("puma")

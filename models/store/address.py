"""Models that are named by an address: a web server's, or the Hugging Face hub's."""

import os
import re
from urllib.parse import quote, urlsplit

from puma.models.store.errors import StoreError

HUB = "https://huggingface.co"
HUB_VARIABLE = "HF_ENDPOINT"
TOKEN_VARIABLE = "HF_TOKEN"

_HUB = re.compile(r"(?:https?://)?(?:www\.)?(?:hf\.co|huggingface\.co)/(.+)", re.IGNORECASE)
_VIEWS = ("blob", "resolve", "raw")

HUB_FORM = "hf.co/OWNER/REPOSITORY/FILE.gguf"


def address_of(model: str) -> str | None:
    """Where a model is, when it is named by an address; None for a name or a path. Raises StoreError."""
    if found := _HUB.fullmatch(model):
        return _hub_address(found[1])
    if re.match(r"https?://", model, re.IGNORECASE):
        return model
    if re.match(r"[a-z][a-z0-9+.-]*://", model, re.IGNORECASE):
        raise StoreError(f"{model}: only http and https addresses can be read, and {HUB_FORM}")
    return None


def headers_for(address: str) -> dict[str, str]:
    """The user's token for the hub, and for nobody else."""
    token = os.environ.get(TOKEN_VARIABLE)
    if token and urlsplit(address).netloc == urlsplit(_hub()).netloc:
        return {"Authorization": f"Bearer {token}"}
    return {}


def _hub() -> str:
    return os.environ.get(HUB_VARIABLE) or HUB


def _hub_address(path: str) -> str:
    """Of "OWNER/REPOSITORY/FILE", with or without a view and a revision before the file."""
    owner, _, rest = path.partition("?")[0].partition("/")
    repository, _, file = rest.partition("/")
    revision = "main"
    if file.split("/")[0] in _VIEWS:
        _, revision, file = [*file.split("/", 2), "", ""][:3]
    if not (owner and repository and file):
        raise StoreError(f"{path}: expected {HUB_FORM}")
    return f"{_hub()}/{owner}/{repository}/resolve/{quote(revision)}/{quote(file)}"

"""Who may use the API: whoever sends the key, when one is configured. `/health` answers everyone."""

import hmac

from quart import request
from quart_trio import QuartTrio

from puma.daemon.errors import NotAuthorised

OPEN = ("/health",)
"""Routes without a key."""

SCHEME = "bearer"


def require_key(app: QuartTrio, key: str) -> None:
    """Refuse every request that does not carry the key, before anything of it is read."""

    @app.before_request
    async def check() -> None:  # pyright: ignore[reportUnusedFunction]
        if request.path not in OPEN and not carries(request.headers.get("Authorization"), key):
            raise NotAuthorised("this server needs its API key: send `Authorization: Bearer KEY`")


def carries(header: str | None, key: str) -> bool:
    """Whether an Authorization header carries the key; takes as long for a wrong one as for a right one."""
    scheme, _, given = (header or "").partition(" ")
    # A header is bytes, which the server shows as Latin-1; the key was configured as UTF-8.
    return scheme.lower() == SCHEME and hmac.compare_digest(given.strip().encode("latin-1", "replace"), key.encode())

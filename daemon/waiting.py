"""What the port answers while the model is being loaded and compiled: 503, to everything.

An application of its own and not a state of the real one, which cannot exist before its engine does.
"""

import msgspec
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, Scope

from puma.daemon.errors import ModelLoading, describe
from puma.daemon.routes.health import Health

BODIES = {"/health": msgspec.json.encode(Health("loading"))}

STATUS, _error = describe(ModelLoading("the model is being loaded; try again soon"))
ERROR = msgspec.json.encode(_error)


async def waiting(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
    """The application."""
    if scope["type"] != "http":
        return
    headers = [(b"content-type", b"application/json"), (b"retry-after", b"1"), (b"connection", b"close")]
    body = BODIES.get(scope["path"], ERROR)
    await send({"type": "http.response.start", "status": STATUS, "headers": headers, "trailers": False})
    await send({"type": "http.response.body", "body": body, "more_body": False})

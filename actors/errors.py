"""Why a request did not get its answer.

RequestError
    BadRequest         the request itself is wrong; the client must change it          (400)
    QueueFull          as many requests wait as may wait; try again later              (429)
    ShuttingDown       the daemon takes no new requests                                (503)
    EngineFailed       a step failed, or the answer is not a number; not the client's fault (500)
"""


class RequestError(Exception):
    """Base of all; `message` is for the person who sent the request."""

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code


class BadRequest(RequestError):
    """The request cannot be answered as it is; `param` names the field."""


class QueueFull(RequestError):
    """Too many requests wait already."""


class ShuttingDown(RequestError):
    """The daemon is stopping."""


class EngineFailed(RequestError):
    """The step that computed this request failed."""

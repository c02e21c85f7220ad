"""From an error to what the client is told.

RequestError (actors/errors.py)
    BadRequest         400    the request is wrong: change it
    NotAuthorised      401    the API key is missing or wrong
    ModelNotFound      404    another model is served: ask GET /v1/models
    QueueFull          429    try again later
    EngineFailed       500    a step failed: the request may be sent again
    ShuttingDown       503    the daemon stops: try again when it is back
    ModelLoading       503    the daemon begins: try again soon
HTTPException          its own status: no such route, wrong method, body too large or too slow
anything else          500    a fault of Puma; the log has it under the request's id
"""

import re

from werkzeug.exceptions import HTTPException

from puma.actors.errors import BadRequest, EngineFailed, QueueFull, RequestError, ShuttingDown
from puma.daemon.log import current_request
from puma.daemon.wire.openai import ErrorBody, ErrorDetail


class NotAuthorised(RequestError):
    """The API key is missing or wrong."""


class ModelNotFound(RequestError):
    """The request names a model that is not the one served."""


class ModelLoading(RequestError):
    """The model is not here yet."""


TABLE: tuple[tuple[type[RequestError], int, str, str | None], ...] = (
    (BadRequest, 400, "invalid_request_error", None),
    (NotAuthorised, 401, "invalid_request_error", "invalid_api_key"),
    (ModelNotFound, 404, "invalid_request_error", "model_not_found"),
    (QueueFull, 429, "rate_limit_error", "queue_full"),
    (EngineFailed, 500, "server_error", "engine_failed"),
    (ShuttingDown, 503, "server_error", "shutting_down"),
    (ModelLoading, 503, "server_error", "model_loading"),
)
"""Error, status, type, and the code when the error has none of its own."""

_PATHS = re.compile(r"""(?<![\w.])~?/[^\s'"<>|:;,()]+""")

HTTP_CODES = {
    400: "bad_request",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "request_too_large",
}


def error_body(message: str, kind: str, code: str | None, param: str | None = None) -> ErrorBody:
    """OpenAI's shape; all four members are always there."""
    return ErrorBody(ErrorDetail(message=message, type=kind, param=param, code=code))


def describe(error: Exception) -> tuple[int, ErrorBody]:
    """Status and body for an error. Never holds a path or a traceback: what is unforeseen is in the log."""
    if isinstance(error, RequestError):
        for kind, status, name, code in TABLE:
            if isinstance(error, kind):
                message = error.message if status != 500 else _without_paths(error.message)
                return status, error_body(message, name, error.code or code, error.param)
    if isinstance(error, HTTPException) and error.code is not None:
        kind = "invalid_request_error" if error.code < 500 else "server_error"
        return error.code, error_body(error.description or error.name, kind, HTTP_CODES.get(error.code))
    message = f"internal error; the log has it under the request id {current_request.get()}"
    return 500, error_body(message, "server_error", "internal_error")


def _without_paths(message: str) -> str:
    """The words of a failure within the engine, for a client: what they quote may name files of this machine."""
    shown = _PATHS.sub("(a path)", message)
    return f"{shown}; the log has more under the request id {current_request.get()}"

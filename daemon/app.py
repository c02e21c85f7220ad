"""The Quart application: routes, errors in one shape, and the layer round it that always runs."""

import secrets
import time
from collections.abc import Callable
from typing import Any

import msgspec
from hypercorn.typing import ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope
from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from puma.actors.errors import QueueFull, RequestError, ShuttingDown
from puma.config.server import ServerConfig
from puma.daemon.access import require_key
from puma.daemon.errors import NotAuthorised, describe
from puma.daemon.log import current_request, log
from puma.daemon.routes.chat import chat_routes
from puma.daemon.routes.completions import completion_routes
from puma.daemon.routes.health import health_routes
from puma.daemon.routes.models import model_routes
from puma.daemon.routes.respond import JSON, json_response
from puma.daemon.service import NOTE, SUBMITTED, Service, note


def create_app(service: Service, config: ServerConfig) -> QuartTrio:
    """The application that answers with this service's engine."""
    app = QuartTrio(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = config.max_body_bytes
    app.config["BODY_TIMEOUT"] = config.body_timeout_seconds
    app.url_map.merge_slashes = False
    for blueprint in (chat_routes, completion_routes, model_routes, health_routes):
        app.register_blueprint(blueprint(service))
    if config.api_key is not None:
        require_key(app, config.api_key)
    app.register_error_handler(RequestError, _request_error)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(Exception, _unforeseen)
    app.asgi_app = _outermost(app.asgi_app, service)
    return app


async def _request_error(error: RequestError) -> Response:
    status, body = describe(error)
    note(error.message)
    if status == 500:
        log.error("%s", error.message)
    response = json_response(body, status)
    if isinstance(error, QueueFull):
        response.headers["Retry-After"] = "1"
    if isinstance(error, NotAuthorised):
        response.headers["WWW-Authenticate"] = "Bearer"
        # Its body has not been read.
        response.headers["Connection"] = "close"
    if isinstance(error, ShuttingDown):
        response.headers["Connection"] = "close"
    return response


async def _http_error(error: HTTPException) -> Response:
    status, body = describe(error)
    words = {
        404: f"no such route: {request.method} {request.path[:200]}",
        405: f"method not allowed: {request.method} {request.path[:200]}",
        408: f"the request body did not arrive within {request.body_timeout} s",
        413: f"the request body is larger than {request.max_content_length} bytes",
    }
    body.error.message = words.get(status, body.error.message)
    response = json_response(body, status)
    if isinstance(error, MethodNotAllowed):
        response.headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
    if status in (408, 413):
        response.headers["Connection"] = "close"
    return response


async def _unforeseen(error: Exception) -> Response:
    log.error("internal error", exc_info=error)
    status, body = describe(error)
    return json_response(body, status)


def _outermost(inner: Callable[..., Any], service: Service) -> Callable[..., Any]:
    """Round everything else: gives the request its id and its log line, and ends what it submitted.

    This is the one place that always runs when a request is over, however it ended: answered, failed, or
    cancelled because the client left, even before its response body was begun.
    """

    async def asgi(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        state: dict[str, Any] = scope["state"]
        request_id = secrets.token_hex(8)
        current_request.set(request_id)
        # "GET ?a=1" has no path at all.
        scope["path"] = scope["path"] or "/"
        begun = time.monotonic()
        status = 0

        async def sending(message: ASGISendEvent) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await inner(scope, receive, sending)
        except Exception as error:
            if status:
                raise
            await _last_resort(error, sending)
        finally:
            for submitted in state.get(SUBMITTED, ()):
                service.end(submitted)
            _log_line(scope["method"], scope["path"], status, time.monotonic() - begun, state.get(NOTE))

    return asgi


async def _last_resort(error: Exception, send: Callable[[Any], Any]) -> None:
    """Answer for Quart, when it fails itself."""
    log.error("internal error before a response", exc_info=error)
    status, body = describe(error)
    headers = [(b"content-type", JSON.encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": msgspec.json.encode(body), "more_body": False})


def _log_line(method: str, path: str, status: int, seconds: float, words: str | None) -> None:
    write = log.debug if path == "/health" else log.info
    about = f", {words[:1000]}" if words else ""
    # What clients send may hold line breaks and worse.
    line = f"{method} {path[:200]} {status or 'no answer'}, {seconds:.3f} s{about}"
    write("%s", "".join(sign if sign.isprintable() else "?" for sign in line))

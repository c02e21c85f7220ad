"""GET /health: 200 while the model can answer.

The port opens once the model is loaded and compiled, so before that nothing listens; while the daemon drains,
the answer is 503.
"""

import msgspec
from quart import Blueprint, Response

from puma.daemon.routes.respond import json_response
from puma.daemon.service import Service


class Health(msgspec.Struct):
    status: str


def health_routes(service: Service) -> Blueprint:
    routes = Blueprint("health", __name__)

    @routes.get("/health")
    async def health() -> Response:  # pyright: ignore[reportUnusedFunction]
        if service.draining:
            return json_response(Health("draining"), 503)
        return json_response(Health("ok"))

    return routes

"""GET /health: 200 while the model can answer, 503 while the daemon drains; while it loads, see daemon/waiting.py."""

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

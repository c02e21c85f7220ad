"""GET /v1/models and GET /v1/models/{id}."""

from quart import Blueprint, Response

from puma.daemon.routes.respond import json_response
from puma.daemon.service import Service
from puma.daemon.wire.openai import ModelList


def model_routes(service: Service) -> Blueprint:
    routes = Blueprint("models", __name__)

    @routes.get("/v1/models")
    async def listed() -> Response:  # pyright: ignore[reportUnusedFunction]
        return json_response(ModelList(data=[service.model]))

    # Names may hold slashes.
    @routes.get("/v1/models/<path:name>")
    async def one(name: str) -> Response:  # pyright: ignore[reportUnusedFunction]
        service.check_model(name)
        return json_response(service.model)

    return routes

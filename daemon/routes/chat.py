"""POST /v1/chat/completions."""

import msgspec
from quart import Blueprint, Response

from puma.daemon.answers import Answers
from puma.daemon.routes.respond import respond
from puma.daemon.service import Service
from puma.daemon.wire.compose import ChatForm
from puma.daemon.wire.openai import ChatRequest
from puma.daemon.wire.translate import chat_submit

_decoder = msgspec.json.Decoder(ChatRequest)


def chat_routes(service: Service) -> Blueprint:
    routes = Blueprint("chat", __name__)

    @routes.post("/v1/chat/completions")
    async def create() -> Response:  # pyright: ignore[reportUnusedFunction]
        asked = await service.read(_decoder)
        envelope = service.envelope("chatcmpl", asked, bool(asked.logprobs))
        answers = Answers(1)
        vocabulary = service.engine.model.vocabulary_size
        service.submit([chat_submit(asked, envelope.id, answers.replies[0], vocabulary)])
        return await respond(
            answers, ChatForm(envelope), stream=bool(asked.stream), include_usage=envelope.include_usage
        )

    return routes

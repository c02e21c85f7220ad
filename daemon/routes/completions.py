"""POST /v1/completions."""

import msgspec
from quart import Blueprint, Response

from puma.daemon.answers import Answers
from puma.daemon.routes.respond import respond
from puma.daemon.service import Service
from puma.daemon.wire.compose import TextForm
from puma.daemon.wire.openai import CompletionRequest
from puma.daemon.wire.translate import completion_submits, prompts

_decoder = msgspec.json.Decoder(CompletionRequest)


def completion_routes(service: Service) -> Blueprint:
    routes = Blueprint("completions", __name__)

    @routes.post("/v1/completions")
    async def create() -> Response:  # pyright: ignore[reportUnusedFunction]
        asked = await service.read(_decoder)
        envelope = service.envelope("cmpl", asked, asked.logprobs is not None)
        answers = Answers(len(prompts(asked, service.engine.config.max_queued_requests)))
        vocabulary = service.engine.model.vocabulary_size
        service.submit(completion_submits(asked, envelope.id, answers.replies, vocabulary))
        return await respond(
            answers, TextForm(envelope), stream=bool(asked.stream), include_usage=envelope.include_usage
        )

    return routes

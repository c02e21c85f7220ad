"""How both endpoints answer: wait for admission, then a whole response or a stream."""

from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import trio
from quart import Response, request

from puma.actors.errors import RequestError
from puma.actors.messages import Piece
from puma.daemon.answers import Answers
from puma.daemon.errors import describe
from puma.daemon.log import log
from puma.daemon.service import note
from puma.daemon.wire import sse
from puma.daemon.wire.compose import Form, total_usage

JSON = "application/json"


def json_response(body: msgspec.Struct, status: int = 200) -> Response:
    return Response(msgspec.json.encode(body), status=status, content_type=JSON)


async def respond(answers: Answers, form: Form, *, stream: bool, include_usage: bool) -> Response:
    """The response to submitted requests. Raises the RequestError of one that fails before the first byte."""
    await answers.admitted()
    if not stream:
        choices = await answers.collect()
        note(_summary(answers))
        return json_response(form.whole(choices))
    note("the stream was broken off")
    events = _events(answers, form, include_usage, request.scope["state"])
    response = Response(events, content_type=sse.CONTENT_TYPE, headers=sse.HEADERS)
    # Quart would end the stream after a minute.
    response.timeout = None
    return response


async def _events(
    answers: Answers, form: Form, include_usage: bool, state: dict[str, Any]
) -> AsyncGenerator[bytes, None]:
    """The stream's bytes. What has piled up is written at once.

    Frees nothing: a generator that was never started never reaches its `finally`. The application's outermost
    layer does (daemon/app.py).
    """
    opening = form.opening()
    if opening is not None:
        yield sse.event(opening)
    try:
        while not answers.finished:
            written = bytearray()
            with trio.move_on_after(sse.KEEP_ALIVE_SECONDS) as silence:
                for index, event in await answers.take():
                    if isinstance(event, Piece):
                        written += sse.event(form.piece(index, event.text, list(event.logprobs)))
                    else:
                        written += sse.event(form.closing(index, event.finish))
            yield sse.KEEP_ALIVE if silence.cancelled_caught else bytes(written)
    except RequestError as error:
        _, body = describe(error)
        log.warning("the stream ends with an error: %s", error.message)
        yield sse.event(body)
        return
    note(_summary(answers), state)
    usage = sse.event(form.usage(total_usage(answers.choices))) if include_usage else b""
    yield usage + sse.DONE


def _summary(answers: Answers) -> str:
    """For the log: tokens of prompts and answers, and how the first answer ended."""
    usage = total_usage(answers.choices)
    return f"{usage.prompt_tokens} + {usage.completion_tokens} tokens, {answers.choices[0].finish}"

"""How both endpoints answer: wait for admission, then a whole response or a stream."""

from collections.abc import AsyncGenerator

import msgspec
import trio
from quart import Response

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
        usage = total_usage(choices)
        note(f"{usage.prompt_tokens} + {usage.completion_tokens} tokens, {choices[0].finish}")
        return json_response(form.whole(choices))
    prompt_tokens = sum(choice.prompt_tokens for choice in answers.choices)
    note(f"stream, {prompt_tokens} tokens of prompt")
    response = Response(_events(answers, form, include_usage), content_type=sse.CONTENT_TYPE, headers=sse.HEADERS)
    # Quart would end the stream after a minute.
    response.timeout = None
    return response


async def _events(answers: Answers, form: Form, include_usage: bool) -> AsyncGenerator[bytes, None]:
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
    usage = sse.event(form.usage(total_usage(answers.choices))) if include_usage else b""
    yield usage + sse.DONE

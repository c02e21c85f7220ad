"""A client's request to the engine's Submit. Pure, save for the seed of a request that names none."""

import secrets
from typing import Any

from msgspec import to_builtins

from puma.actors.errors import BadRequest
from puma.actors.messages import Chat, Sampling, Submit, Text, Tokens
from puma.actors.reply import Reply
from puma.daemon.wire.openai import ChatRequest, CompletionRequest, Message, Part, Request

ROLES = ("system", "developer", "user", "assistant", "tool")

NO_SEED = -1
SEED_BITS = 63


def chat_submit(request: ChatRequest, request_id: str, reply: Reply, vocabulary_size: int) -> Submit:
    """Raises BadRequest for what the types cannot say."""
    if request.top_logprobs and not request.logprobs:
        raise BadRequest("top_logprobs: needs logprobs to be true", param="top_logprobs")
    alternatives = (request.top_logprobs or 0) if request.logprobs else -1
    return Submit(
        request_id=request_id,
        prompt=Chat(tuple(_message(message, at) for at, message in enumerate(request.messages))),
        sampling=_sampling(request, alternatives, vocabulary_size),
        max_tokens=_limit(request),
        stop=_stops(request),
        reply=reply,
    )


def completion_submits(
    request: CompletionRequest, request_id: str, replies: tuple[Reply, ...], vocabulary_size: int
) -> tuple[Submit, ...]:
    """One Submit per prompt, each with its own reply. Raises BadRequest for what the types cannot say."""
    alternatives = -1 if request.logprobs is None else request.logprobs
    sampling = _sampling(request, alternatives, vocabulary_size)
    return tuple(
        Submit(
            request_id=request_id if index == 0 else f"{request_id}-{index}",
            prompt=prompt,
            sampling=sampling,
            max_tokens=_limit(request),
            stop=_stops(request),
            reply=reply,
        )
        for index, (prompt, reply) in enumerate(zip(prompts(request), replies, strict=True))
    )


def prompts(request: CompletionRequest, most: int | None = None) -> tuple[Text | Tokens, ...]:
    """The prompts: a text, ids, several texts, or several lists of ids; `most` is how many may wait at all.

    Raises BadRequest for a mixture, and for more of them.
    """
    made = _prompts(request)
    if most is not None and len(made) > most:
        raise BadRequest(f"prompt: {len(made)} prompts in one request; at most {most} are possible", param="prompt")
    return made


def _prompts(request: CompletionRequest) -> tuple[Text | Tokens, ...]:
    given = request.prompt
    if isinstance(given, str):
        return (Text(given),)
    texts = [item for item in given if isinstance(item, str)]
    ids = [item for item in given if isinstance(item, int)]
    lists = [item for item in given if isinstance(item, list)]
    if len(texts) == len(given):
        return tuple(Text(text) for text in texts)
    if len(ids) == len(given):
        return (Tokens(tuple(ids)),)
    if len(lists) == len(given):
        return tuple(Tokens(tuple(item)) for item in lists)
    raise BadRequest("prompt: a list holds texts, or token ids, or lists of ids, but not a mixture", param="prompt")


def _message(message: Message, at: int) -> dict[str, Any]:
    """A message as chat templates take it, with only the fields that were given."""
    where = f"messages[{at}]"
    if message.role not in ROLES:
        named = f"{message.role[:40]!r} is not one of {', '.join(ROLES)}"
        raise BadRequest(f"{where}.role: {named}", param=f"{where}.role")
    fields: dict[str, Any] = {"role": message.role, "content": _content(message, where)}
    if message.name is not None:
        fields["name"] = message.name
    if message.tool_calls:
        fields["tool_calls"] = to_builtins(message.tool_calls)
    if message.tool_call_id is not None:
        fields["tool_call_id"] = message.tool_call_id
    return fields


def _content(message: Message, where: str) -> str | list[dict[str, str]] | None:
    content = message.content
    if content is None:
        if message.role == "assistant" and message.tool_calls:
            return None
        problem = "is required; it may be missing or null beside tool_calls only"
        raise BadRequest(f"{where}.content: {problem}", param=f"{where}.content")
    if isinstance(content, str):
        return content
    return [_text_part(part, f"{where}.content[{at}]") for at, part in enumerate(content)]


def _text_part(part: Part, where: str) -> dict[str, str]:
    if part.type != "text":
        kind = f"{part.type[:40]!r} parts are not supported; this model reads text only"
        raise BadRequest(f"{where}.type: {kind}", param=f"{where}.type")
    if part.text is None:
        raise BadRequest(f"{where}.text: this field is required", param=f"{where}.text")
    return {"type": "text", "text": part.text}


def _limit(request: Request) -> int | None:
    newer, older = request.max_completion_tokens, request.max_tokens
    if newer is not None and older is not None and newer != older:
        name = "max_completion_tokens"
        raise BadRequest(f"{name}: {newer} differs from max_tokens, {older}; send one of them", param=name)
    return older if newer is None else newer


def _stops(request: Request) -> tuple[str, ...]:
    if isinstance(request.stop, str):
        return (request.stop,)
    return tuple(request.stop or ())


def _sampling(request: Request, logprobs: int, vocabulary_size: int) -> Sampling:
    top_k = request.top_k or 0
    seed = request.seed
    return Sampling(
        temperature=1.0 if request.temperature is None else request.temperature,
        top_k=top_k if 0 < top_k < vocabulary_size else 0,
        top_p=1.0 if request.top_p is None else request.top_p,
        min_p=request.min_p or 0.0,
        seed=secrets.randbits(SEED_BITS) if seed is None or seed == NO_SEED else seed % 2**SEED_BITS,
        logprobs=logprobs,
    )

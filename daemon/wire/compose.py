"""What the engine yields to what clients get: a whole response, or the chunks of a stream.

The two endpoints differ in form only; ChatForm and TextForm are the two forms of one thing.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import UNSET

from puma.actors.messages import TokenLogprob
from puma.daemon.wire.logprobs import TextLogprobsWriter, chat_logprobs
from puma.daemon.wire.openai import (
    AnswerMessage,
    ChatChoice,
    ChatChunk,
    ChatCompletion,
    ChunkChoice,
    Delta,
    FinishReason,
    PromptTokensDetails,
    TextChoice,
    TextCompletion,
    Usage,
)


class Envelope(msgspec.Struct, frozen=True):
    """What every chunk and response of one request repeats."""

    id: str
    created: int
    model: str
    fingerprint: str
    logprobs: bool = False
    include_usage: bool = False
    """Whether a stream ends with a chunk of usage; its other chunks then say that theirs is null."""


class Choice(msgspec.Struct):
    """One answer, collected to its end."""

    text: str = ""
    logprobs: list[TokenLogprob] = []
    finish: FinishReason = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


class Form(Protocol):
    """How an endpoint writes an answer."""

    def opening(self) -> msgspec.Struct | None:
        """The chunk before the first token, if there is one."""
        ...

    def piece(self, index: int, text: str, logprobs: list[TokenLogprob]) -> msgspec.Struct: ...

    def closing(self, index: int, finish: FinishReason) -> msgspec.Struct:
        """The one chunk of a choice that has a finish reason."""
        ...

    def usage(self, usage: Usage) -> msgspec.Struct: ...

    def whole(self, choices: Sequence[Choice]) -> msgspec.Struct: ...


def total_usage(choices: Sequence[Choice]) -> Usage:
    prompt = sum(choice.prompt_tokens for choice in choices)
    completion = sum(choice.completion_tokens for choice in choices)
    cached = sum(choice.cached_tokens for choice in choices)
    return Usage(prompt, completion, prompt + completion, PromptTokensDetails(cached))


class ChatForm:
    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope

    def opening(self) -> ChatChunk:
        return self._chunk([ChunkChoice(0, Delta(role="assistant", content="", refusal=None))])

    def piece(self, index: int, text: str, logprobs: list[TokenLogprob]) -> ChatChunk:
        listed = chat_logprobs(logprobs) if self._envelope.logprobs else None
        return self._chunk([ChunkChoice(index, Delta(content=text), logprobs=listed)])

    def closing(self, index: int, finish: FinishReason) -> ChatChunk:
        return self._chunk([ChunkChoice(index, Delta(), finish_reason=finish)])

    def usage(self, usage: Usage) -> ChatChunk:
        return self._chunk([], usage)

    def whole(self, choices: Sequence[Choice]) -> ChatCompletion:
        envelope = self._envelope
        return ChatCompletion(
            id=envelope.id,
            created=envelope.created,
            model=envelope.model,
            system_fingerprint=envelope.fingerprint,
            choices=[
                ChatChoice(
                    index=index,
                    message=AnswerMessage(content=choice.text),
                    logprobs=chat_logprobs(choice.logprobs) if envelope.logprobs else None,
                    finish_reason=choice.finish,
                )
                for index, choice in enumerate(choices)
            ],
            usage=total_usage(choices),
        )

    def _chunk(self, choices: list[ChunkChoice], usage: Usage | None = None) -> ChatChunk:
        envelope = self._envelope
        return ChatChunk(
            id=envelope.id,
            created=envelope.created,
            model=envelope.model,
            system_fingerprint=envelope.fingerprint,
            choices=choices,
            usage=usage if envelope.include_usage else UNSET,
        )


class TextForm:
    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._writers: defaultdict[int, TextLogprobsWriter] = defaultdict(TextLogprobsWriter)

    def opening(self) -> None:
        return None

    def piece(self, index: int, text: str, logprobs: list[TokenLogprob]) -> TextCompletion:
        return self._completion([self._choice(index, text, logprobs)])

    def closing(self, index: int, finish: FinishReason) -> TextCompletion:
        return self._completion([TextChoice(index, "", finish_reason=finish)])

    def usage(self, usage: Usage) -> TextCompletion:
        return self._completion([], usage)

    def whole(self, choices: Sequence[Choice]) -> TextCompletion:
        listed: list[TextChoice] = []
        for index, choice in enumerate(choices):
            listed.append(self._choice(index, choice.text, choice.logprobs))
            listed[-1].finish_reason = choice.finish
        response = self._completion(listed)
        response.usage = total_usage(choices)
        return response

    def _choice(self, index: int, text: str, logprobs: list[TokenLogprob]) -> TextChoice:
        listed = self._writers[index].write(logprobs) if self._envelope.logprobs else None
        return TextChoice(index, text, logprobs=listed)

    def _completion(self, choices: list[TextChoice], usage: Usage | None = None) -> TextCompletion:
        envelope = self._envelope
        return TextCompletion(
            id=envelope.id,
            created=envelope.created,
            model=envelope.model,
            system_fingerprint=envelope.fingerprint,
            choices=choices,
            usage=usage if envelope.include_usage else UNSET,
        )

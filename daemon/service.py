"""Service: what the routes share. The engine, the requests that live, and the model as the API shows it."""

import time
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from quart import request

from puma.actors.engine import Engine
from puma.actors.errors import RequestError
from puma.actors.messages import Submit
from puma.daemon.errors import ModelNotFound
from puma.daemon.live import LiveRequests
from puma.daemon.log import current_request, log
from puma.daemon.version import version
from puma.daemon.wire.compose import Envelope
from puma.daemon.wire.decode import checked, decode, members
from puma.daemon.wire.fields import refuse_unsupported, unknown
from puma.daemon.wire.openai import Model, Request

R = TypeVar("R", bound=Request)

SUBMITTED = "puma.submitted"
"""Key of the ASGI scope's state: ids that were submitted to the engine for this HTTP request."""
NOTE = "puma.note"
"""Key of the ASGI scope's state: what the request's log line says beside method, path and status."""

MAX_NAMED = 1000


class Service:
    def __init__(self, engine: Engine, live: LiveRequests, model_name: str) -> None:
        self.engine = engine
        self.live = live
        self.model = Model(id=model_name, created=engine.created)
        self.draining = False
        self._named: set[str] = set()

    async def read(self, decoder: msgspec.json.Decoder[R]) -> R:
        """The current HTTP request's body. Raises BadRequest or ModelNotFound."""
        body = checked(await request.get_data(True, False, False))
        decoded = decode(body, decoder)
        given = members(body)
        refuse_unsupported(given)
        self._name_unknown(unknown(given, type(decoded)))
        self.check_model(decoded.model)
        return decoded

    def check_model(self, name: str | None) -> None:
        """Raises ModelNotFound unless this is the served model's name, or none."""
        if name is not None and name != self.model.id:
            shown = name if len(name) <= 100 else name[:100] + "…"
            raise ModelNotFound(f"no model {shown!r} here; this server has {self.model.id!r}", param="model")

    def submit(self, submits: Sequence[Submit]) -> None:
        """Submit them all, bound to the current HTTP request: they end when it ends, at the latest.

        Raises QueueFull or ShuttingDown. There is no checkpoint between a submission and its binding.
        """
        submitted: list[str] = request.scope["state"].setdefault(SUBMITTED, [])
        for message in submits:
            self.engine.submit(message)
            self.live.add(message.request_id, message.reply)
            submitted.append(message.request_id)

    def end(self, request_id: str) -> None:
        """The handler has ended: whatever its request still holds is given back. Never raises."""
        self.engine.withdraw(request_id)
        self.live.remove(request_id)

    def refuse_new(self) -> None:
        """From now on new requests get 503."""
        self.draining = True
        self.engine.stop_admitting()

    def cut(self, error: RequestError) -> None:
        """End every request now; its client is told this error."""
        for request_id in self.live.fail(error):
            self.engine.withdraw(request_id)

    def envelope(self, prefix: str, asked: Request, logprobs: bool) -> Envelope:
        """What every chunk of the answer to the current HTTP request repeats."""
        options = asked.stream_options
        return Envelope(
            id=f"{prefix}-{current_request.get()}",
            created=int(time.time()),
            model=self.model.id,
            fingerprint=f"puma-{version()}",
            logprobs=logprobs,
            include_usage=bool(asked.stream and options is not None and options.include_usage),
        )

    def _name_unknown(self, names: set[str]) -> None:
        for name in sorted(names - self._named):
            if len(self._named) < MAX_NAMED:
                self._named.add(name)
                log.info("request field %r is unknown and was ignored; said once", name[:100])


def note(words: str, state: dict[str, Any] | None = None) -> None:
    """Words for the log line of the HTTP request with this state, or else of the current one."""
    (request.scope["state"] if state is None else state)[NOTE] = words

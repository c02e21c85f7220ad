"""What the daemon answers to `pumactl`."""

import os
import time

import trio

from puma.actors.errors import RequestError
from puma.config.configuration import Configuration
from puma.config.show import rows_of
from puma.daemon.control.messages import Answer, Ask, Config, GetConfig, Refused, SequenceLine, Status, Stop, Stopping
from puma.daemon.lifecycle import Lifecycle
from puma.daemon.log import log
from puma.daemon.service import Service
from puma.daemon.version import version

ENGINE_SECONDS = 5.0
"""For the engine to say how it is: it does so between two steps."""


class ControlDesk:
    def __init__(self, service: Service, life: Lifecycle, config: Configuration, address: str, begun: float) -> None:
        self._service = service
        self._life = life
        self._config = config
        self._address = address
        self._begun = begun

    async def answer(self, ask: Ask) -> Answer:
        """One answer to one question."""
        if isinstance(ask, Stop):
            log.info("pumactl: stopping%s", " now" if ask.now else "")
            self._life.stop(now=ask.now)
            return Stopping(len(self._service.live), self._config.server.grace_seconds)
        if isinstance(ask, GetConfig):
            return Config(rows_of(self._config), self._service.engine.model.footprint)
        try:
            with trio.fail_after(ENGINE_SECONDS):
                return await self._status()
        except trio.TooSlowError:
            return Refused(f"the engine did not answer within {ENGINE_SECONDS:g} s")
        except RequestError as error:
            return Refused(error.message)

    async def _status(self) -> Status:
        engine, snapshot = self._service.engine, await self._service.engine.snapshot()
        return Status(
            version=version(),
            pid=os.getpid(),
            state="draining" if self._service.draining else "serving",
            model=self._service.model.id,
            address=self._address,
            uptime_seconds=time.monotonic() - self._begun,
            requests=len(self._service.live),
            blocks_total=snapshot.blocks_total,
            blocks_used=snapshot.blocks_used,
            blocks_cached=snapshot.blocks_cached,
            tokens_per_block=engine.plan.tokens_per_block,
            context_length=engine.context_length,
            prompt_tokens=snapshot.prompt_tokens,
            cached_tokens=snapshot.cached_tokens,
            generated_tokens=snapshot.generated_tokens,
            steps=snapshot.steps,
            busy_seconds=snapshot.busy_seconds,
            sequences=tuple(
                SequenceLine(line.request_id, line.state, line.prompt_tokens, line.generated, line.blocks)
                for line in snapshot.sequences
            ),
        )

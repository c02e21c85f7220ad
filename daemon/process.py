"""The life of the process, from loading to the end.

    load and compile           with progress on stderr; meanwhile the port answers 503
    engine, control, server    the server opens last
    ready                      one line on stdout
    drain                      and everything is closed in the reverse order

Lifetimes are nested the same way: the HTTP server lives inside the control socket's, that inside the engine's.
"""

import os
import resource
import socket
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import trio

from puma.actors.engine import Engine, run_engine
from puma.config.configuration import Configuration, locating
from puma.daemon.announce import announce, describe, warn
from puma.daemon.app import create_app
from puma.daemon.connection import Limits
from puma.daemon.control.desk import ControlDesk
from puma.daemon.control.lock import Lock
from puma.daemon.control.server import open_socket, serve_control
from puma.daemon.exits import Exit
from puma.daemon.lifecycle import SIGNALS, Lifecycle
from puma.daemon.listener import url_of
from puma.daemon.live import LiveRequests
from puma.daemon.progress import loading
from puma.daemon.server import serve as serve_http
from puma.daemon.service import Service
from puma.daemon.shutdown import drain, tell
from puma.daemon.waiting import waiting
from puma.models.model import LoadedModel, Progress, load_model

SWITCH_INTERVAL = 0.0005
"""Seconds after which a thread of Python code lets the event loop have a turn; Python's own 5 ms are felt."""

MOST_DESCRIPTORS = 65536


def serve(daemon: "Daemon") -> int:
    """Serve until told to stop; returns the exit status."""
    _allow_connections()
    sys.setswitchinterval(SWITCH_INTERVAL)
    return trio.run(daemon.run)


def _allow_connections() -> None:
    """As many descriptors as this process may have: each connection takes one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Daemon:
    """One run. The port is bound, and the lock is held."""

    def __init__(
        self,
        path: Path,
        name: str,
        config: Configuration,
        port: socket.socket,
        control: Path,
        lock: Lock,
    ) -> None:
        self.path, self.name = path, name
        self.configuration, self.config = config, config.server
        self.port, self.control, self.lock = port, control, lock
        self.limits = Limits(send=config.server.send_timeout_seconds)
        self.life = Lifecycle()
        self.begun = time.monotonic()

    async def run(self) -> int:
        with trio.open_signal_receiver(*SIGNALS) as signals:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.life.watch, signals, self._leave)
                model = await self._load()
                if model is None:
                    self._leave(self.life.signal or 0)
                await self._serve(model)
                nursery.cancel_scope.cancel()
        model.close()
        return Exit.OK

    async def _load(self) -> LoadedModel | None:
        """None when the daemon is to end before the model is there."""
        model = None
        with loading() as report:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.life.stopping_or, nursery.cancel_scope)
                async with trio.open_nursery() as meanwhile:
                    loaded = trio.Event()
                    # A duplicate: the server closes its socket when it ends, and the port stays open.
                    await meanwhile.start(partial(serve_http, waiting, self.port.dup(), self.limits, stop=loaded))
                    model = await trio.to_thread.run_sync(self._read, report, abandon_on_cancel=True)
                    loaded.set()
                nursery.cancel_scope.cancel()
        return model

    def _read(self, report: Progress) -> LoadedModel:
        with locating(self.configuration):
            return load_model(self.path, self.configuration.engine, progress=report)

    async def _serve(self, model: LoadedModel) -> None:
        plan = model.plan
        url = url_of(self.port)
        live = LiveRequests()
        async with trio.open_nursery() as engines:
            run = partial(run_engine, model, self.configuration.engine, plan)
            engine: Engine = await engines.start(run_told, run, live)
            service = Service(engine, live, self.name)
            desk = ControlDesk(service, self.life, self.configuration, url, self.begun)
            async with trio.open_nursery() as controls:
                await controls.start(serve_control, open_socket(self.control), desk.answer)
                async with trio.open_nursery() as servers:
                    stop = trio.Event()
                    app = create_app(service, self.config)
                    await servers.start(partial(serve_http, app, self.port, self.limits, stop=stop))
                    describe(model)
                    warn(model, self.configuration.engine)
                    announce(self.name, url, plan)
                    await self.life.stopping.wait()
                    await drain(service, self.life, self.config.grace_seconds)
                    stop.set()
                controls.cancel_scope.cancel()
            engines.cancel_scope.cancel()

    def _leave(self, signal: int) -> NoReturn:
        """End at once: threads that load, compile or compute are not waited for."""
        self.control.unlink(missing_ok=True)
        self.lock.remove()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(128 + signal)


async def run_told(run: Any, live: LiveRequests, *, task_status: trio.TaskStatus[Engine]) -> None:
    """Run it; when it fails, let the handlers tell their clients before the failure ends everything."""
    try:
        await run(task_status=task_status)
    except* Exception:
        await tell(live)
        raise

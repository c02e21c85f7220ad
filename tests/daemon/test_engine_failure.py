"""An actor that cannot go on: every client is told before the failure ends the process."""

from functools import partial

import httpx
import pytest
import trio

from puma.actors.engine import run_engine
from puma.config.engine import EngineConfig
from puma.config.memory import plan_memory
from puma.config.server import ServerConfig
from puma.daemon.app import create_app
from puma.daemon.connection import Limits
from puma.daemon.errors import describe
from puma.daemon.listener import take_port, url_of
from puma.daemon.live import LiveRequests
from puma.daemon.process import run_told
from puma.daemon.server import serve
from puma.daemon.service import Service
from puma.models.model import load_model
from tests.daemon.streams import chunks_of

BODY = {"messages": [{"role": "user", "content": "Hi"}]}


async def broken_executor(plans, results, model, config, plan):
    """Takes one plan and dies of it, as a bug would make it."""
    async for _ in plans:
        await trio.sleep(0.2)
        raise RuntimeError("cannot read /home/somebody/secret.bin")


@pytest.fixture(scope="module")
def model(smollm2_path):
    loaded = load_model(smollm2_path, EngineConfig(threads=1))
    yield loaded
    loaded.close()


async def test_clients_are_told(model):
    answers = {}
    config, live = EngineConfig(), LiveRequests()
    run = partial(run_engine, model, config, plan_memory(model.geometry, config), executor=broken_executor)

    async def ask(name, url, **fields):
        async with httpx.AsyncClient(timeout=30) as client:
            answers[name] = await client.post(url + "/v1/chat/completions", json=BODY | fields)

    async def clients(url):
        async with trio.open_nursery() as asking:
            asking.start_soon(partial(ask, "whole", url))
            asking.start_soon(partial(ask, "stream", url, stream=True))

    with pytest.RaisesGroup(pytest.RaisesExc(RuntimeError, match="secret"), flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            engine = await nursery.start(run_told, run, live)
            port = take_port("127.0.0.1", 0)
            url = url_of(port)
            app = create_app(Service(engine, live, "m"), ServerConfig())
            await nursery.start(partial(serve, app, port, Limits(send=5), stop=trio.Event()))
            nursery.start_soon(clients, url)
    assert answers["whole"].status_code == 500
    for error in (answers["whole"].json()["error"], chunks_of(answers["stream"])[-1]["error"]):
        assert error["code"] == "engine_failed"
        assert error["type"] == "server_error"
        assert "/home" not in error["message"]


def test_what_is_unforeseen_tells_nothing_but_an_id():
    status, body = describe(RuntimeError("/home/somebody/secret.bin"))
    assert status == 500
    assert body.error.code == "internal_error"
    assert "secret" not in body.error.message

"""`puma run`."""

import argparse
import secrets
import sys
from collections.abc import Sequence

from puma.config.errors import ConfigError, Problem
from puma.daemon.commands.arguments import engine_config, model_name
from puma.daemon.log import start_logging
from puma.daemon.progress import loading

NO_SEED = -1
"""As in the API."""


def run(arguments: argparse.Namespace, unread: Sequence[str]) -> int:
    config = engine_config(arguments, unread)
    seed = _seed(arguments.seed)
    start_logging("warning")
    from puma.models.store.resolve import resolve

    # First: whoever forgot the model has written the prompt in its place.
    path = resolve(arguments.model)
    prompt = _prompt(arguments.prompt)
    from puma.actors.messages import Sampling
    from puma.daemon.session import Session
    from puma.daemon.terminal import answer_once, converse
    from puma.models.model import load_model

    sampling = Sampling(
        temperature=1.0 if arguments.temperature is None else arguments.temperature,
        seed=secrets.randbits(63) if seed == NO_SEED else seed % 2**63,
    )
    with loading() as report:
        model = load_model(path, config, progress=report)
    with Session(model, config) as session:
        if prompt is None:
            return converse(session, model_name(arguments.model), sampling)
        return answer_once(session, prompt, sampling)


def _seed(given: int | None) -> int:
    """As the API takes it: any signed 64-bit number. Raises ConfigError."""
    if given is not None and not -(2**63) <= given < 2**63:
        allowed = f"must be {-(2**63)} to {2**63 - 1}"
        raise ConfigError((Problem(key="seed", value=given, allowed=allowed, source="flag --seed"),))
    return NO_SEED if given is None else given


def _prompt(given: str | None) -> str | None:
    """The prompt to answer once: the argument, or what stdin holds; None for a conversation."""
    if given not in (None, "-"):
        prompt, source = given, "argument"
    elif given == "-" or not sys.stdin.isatty():
        prompt, source = _read_text(sys.stdin.buffer.read()), "standard input"
    else:
        return None
    if not prompt.strip():
        raise ConfigError((Problem(key="prompt", value=prompt, allowed="expected some text", source=source),))
    return prompt


def _read_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        allowed = f"expected UTF-8; byte {error.start} is not"
        problem = Problem(key="prompt", value=raw[:20], allowed=allowed, source="standard input")
        raise ConfigError((problem,)) from None

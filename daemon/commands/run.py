"""`puma run`."""

import argparse
import math
import re
import secrets
import sys
from collections.abc import Sequence

from puma.config.configuration import locating
from puma.config.errors import ConfigError, Problem
from puma.config.setting import COMMAND_LINE
from puma.daemon.commands.arguments import configuration, model_name
from puma.daemon.log import start_logging
from puma.daemon.progress import loading

NO_SEED = -1
"""As in the API."""


def run(arguments: argparse.Namespace, unread: Sequence[str]) -> int:
    problems: list[Problem] = []
    temperature, seed = _temperature(arguments.temperature, problems), _seed(arguments.seed, problems)
    config = configuration(arguments, unread, ("engine", "log"), problems)
    start_logging(config.log.level if "log.level" in config.origins else "warning")
    from puma.models.store.resolve import resolve

    # First: whoever forgot the model has written the prompt in its place.
    path = resolve(arguments.model)
    prompt = _prompt(arguments.prompt)
    from puma.actors.messages import Sampling
    from puma.daemon.session import Session
    from puma.daemon.terminal import answer_once, converse
    from puma.models.model import load_model

    sampling = Sampling(
        temperature=temperature,
        seed=secrets.randbits(63) if seed == NO_SEED else seed % 2**63,
    )
    with loading() as report, locating(config):
        model = load_model(path, config.engine, progress=report)
    with Session(model, config.engine) as session:
        if prompt is None:
            return converse(session, model_name(arguments.model), sampling)
        return answer_once(session, prompt, sampling)


def _temperature(text: str | None, problems: list[Problem]) -> float:
    """From 0 to 2; 1 unless given."""
    try:
        value = 1.0 if text is None else float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 2:
        allowed = "must be a number from 0 to 2"
        problems.append(Problem(key="--temperature", value=text, allowed=allowed, source=COMMAND_LINE))
    return value


def _seed(text: str | None, problems: list[Problem]) -> int:
    """As the API takes it: any signed 64-bit number."""
    if text is None:
        return NO_SEED
    if re.fullmatch(r"-?[0-9]{1,19}", text, re.ASCII) and -(2**63) <= int(text) < 2**63:
        return int(text)
    allowed = f"must be a whole number from {-(2**63)} to {2**63 - 1}"
    problems.append(Problem(key="--seed", value=text, allowed=allowed, source=COMMAND_LINE))
    return NO_SEED


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

"""`puma run`."""

import argparse
import secrets
import sys
from collections.abc import Sequence

from puma.config.errors import ConfigError, Problem
from puma.daemon.commands.arguments import engine_config, model_name
from puma.daemon.log import start_logging
from puma.daemon.progress import loading


def run(arguments: argparse.Namespace, unread: Sequence[str]) -> int:
    config = engine_config(arguments, unread)
    prompt = _prompt(arguments.prompt)
    start_logging("warning")
    from puma.models.store.resolve import resolve

    path = resolve(arguments.model)
    from puma.actors.messages import Sampling
    from puma.daemon.session import Session
    from puma.daemon.terminal import answer_once, converse
    from puma.models.model import load_model

    sampling = Sampling(
        temperature=1.0 if arguments.temperature is None else arguments.temperature,
        seed=secrets.randbits(63) if arguments.seed is None else arguments.seed % 2**63,
    )
    with loading() as report:
        model = load_model(path, config, progress=report)
    with Session(model, config) as session:
        if prompt is None:
            return converse(session, model_name(arguments.model), sampling)
        return answer_once(session, prompt, sampling)


def _prompt(given: str | None) -> str | None:
    """The prompt to answer once: the argument, or what stdin holds; None for a conversation."""
    if given not in (None, "-"):
        prompt, source = given, "argument"
    elif given == "-" or not sys.stdin.isatty():
        prompt, source = sys.stdin.buffer.read().decode(errors="replace"), "standard input"
    else:
        return None
    if not prompt.strip():
        raise ConfigError((Problem(key="prompt", value=prompt, allowed="expected some text", source=source),))
    return prompt

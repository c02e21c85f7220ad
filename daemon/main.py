"""`puma`: the command line. Each command's own module is imported only when it is that command's turn."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from puma.config.engine import EngineConfig
from puma.config.flags import add_flags
from puma.config.server import ServerConfig
from puma.daemon.exits import Exit

DEFAULT_MODEL = "smollm2:135m"

MODEL_HELP = f"A name from `puma ls`, or the path of a GGUF file (default {DEFAULT_MODEL})."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    try:
        parsed, unread = _parser().parse_known_args(arguments)
        command = importlib.import_module(f"puma.daemon.commands.{parsed.command}")
        return command.run(parsed, unread)
    except BrokenPipeError:
        # The interpreter flushes stdout once more at its end; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.BROKEN_PIPE
    except KeyboardInterrupt as error:
        return _report(error)
    except Exception as error:
        return _report(error)


def _report(error: BaseException) -> int:
    from puma.daemon.failures import report

    return report(error)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="puma", description="A local LLM inference daemon with the OpenAI HTTP API.", allow_abbrev=False
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="Serve a model over HTTP.", allow_abbrev=False)
    serve.add_argument("model", nargs="?", default=DEFAULT_MODEL, metavar="MODEL", help=MODEL_HELP)
    add_flags(serve, EngineConfig, "engine")
    add_flags(serve, ServerConfig, "server")

    run = commands.add_parser("run", help="Chat with a model in the terminal.", allow_abbrev=False)
    run.add_argument("model", nargs="?", default=DEFAULT_MODEL, metavar="MODEL", help=MODEL_HELP)
    run.add_argument("prompt", nargs="?", metavar="PROMPT", help="Answer this and end; `-` or a pipe: read it.")
    run.add_argument("--temperature", type=_temperature, metavar="NUMBER", help="0 to 2; 0 always picks the likeliest.")
    run.add_argument(
        "--seed",
        type=int,
        metavar="NUMBER",
        help="The same seed gives the same answers; -1: another one each time (64 bits, signed).",
    )
    add_flags(run, EngineConfig, "engine")

    pull = commands.add_parser("pull", help="Fetch a model.", allow_abbrev=False)
    pull.add_argument("name", nargs="?", default=DEFAULT_MODEL, metavar="NAME", help=f"Default {DEFAULT_MODEL}.")
    commands.add_parser("ls", help="List models: those that are here, those that can be pulled.", allow_abbrev=False)
    commands.add_parser("version", help="Print Puma's version.", allow_abbrev=False)
    return parser


def _temperature(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 2")
    return value


if __name__ == "__main__":
    sys.exit(main())

"""`puma`: the command line. Each command's own module is imported only when it is that command's turn."""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from puma.config.flags import Formatter, add_flags
from puma.daemon.exits import Exit

DEFAULT_MODEL = "smollm2:135m"

MODEL_HELP = f"A name from `puma ls`, or the path of a GGUF file (default {DEFAULT_MODEL})."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    try:
        parsed, unread = parser().parse_known_args(arguments)
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


class Parser(argparse.ArgumentParser):
    """Flags are written in full: an abbreviation would mean another one once a flag is added."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=Formatter, allow_abbrev=False, **options)


def _report(error: BaseException) -> int:
    from puma.daemon.failures import report

    return report(error)


def parser() -> argparse.ArgumentParser:
    parser = Parser(prog="puma", description="A local LLM inference daemon with the OpenAI HTTP API.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    serve = commands.add_parser("serve", help="Serve a model over HTTP.")
    serve.add_argument("model", nargs="?", default=DEFAULT_MODEL, metavar="MODEL", help=MODEL_HELP)
    add_flags(serve, ("engine", "server", "log"))

    run = commands.add_parser("run", help="Chat with a model in the terminal.")
    run.add_argument("model", nargs="?", default=DEFAULT_MODEL, metavar="MODEL", help=MODEL_HELP)
    run.add_argument("prompt", nargs="?", metavar="PROMPT", help="Answer this and end; `-` or a pipe: read it.")
    run.add_argument("--temperature", metavar="NUMBER", help="0 to 2; 0 always picks the likeliest.")
    run.add_argument(
        "--seed",
        metavar="NUMBER",
        help="The same seed gives the same answers; -1: another one each time (64 bits, signed).",
    )
    add_flags(run, ("engine", "log"))

    plan = commands.add_parser("plan", help="Show where a model's memory will go, before anything is started.")
    plan.add_argument("model", nargs="?", default=DEFAULT_MODEL, metavar="MODEL", help=MODEL_HELP)
    plan.add_argument("--json", action="store_true", help="As one JSON object, for programs.")
    plan.add_argument("--length", metavar="TOKENS", help="Say how many sequences of this length fit at once, too.")
    plan.add_argument("--fit", metavar="SHARE", help='Propose flags that use this much memory well: "60%%", "8GiB".')
    add_flags(plan, ("engine", "log"))

    config = commands.add_parser("config", help="Show the configuration in force.")
    kinds = config.add_subparsers(dest="what", required=True, metavar="WHAT")
    show = kinds.add_parser("show", help="Every value, and where it came from.")
    show.add_argument("--toml", action="store_true", help="As a file that can be saved.")
    add_flags(show, ("engine", "server", "log"))
    kinds.add_parser("schema", help="The JSON schema of a configuration file.")

    pull = commands.add_parser("pull", help="Fetch a model.")
    pull.add_argument("name", nargs="?", default=DEFAULT_MODEL, metavar="NAME", help=f"Default {DEFAULT_MODEL}.")
    commands.add_parser("ls", help="List models: those that are here, those that can be pulled.")
    commands.add_parser("version", help="Print Puma's version.")
    return parser


if __name__ == "__main__":
    sys.exit(main())

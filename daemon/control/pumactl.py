"""`pumactl`: ask a running daemon how it is and how it was configured, or to stop.

Exit statuses: 0 done; 1 the daemon refused; 2 wrong usage; 3 no daemon is running; 4 a daemon is there but does
not answer, it is starting or ending; 5 what answers is of another version, or may not be talked to.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import msgspec

from puma.config.configuration import find
from puma.config.show import show_text
from puma.daemon.control.client import CannotTalk, NotReady, NotRunning, ask
from puma.daemon.control.lock import open_lock, wait_released
from puma.daemon.control.messages import Config, GetConfig, GetStatus, Refused, Status, Stop, Stopping
from puma.daemon.control.paths import UnusablePath, socket_path
from puma.daemon.control.table import status_text
from puma.daemon.exits import Exit
from puma.daemon.plan_text import plan_lines

REFUSED, NOT_RUNNING, NOT_READY, CANNOT_TALK = 1, 3, 4, 5


def main(arguments: Sequence[str] | None = None) -> int:
    parsed = _parser().parse_args(arguments)
    try:
        return COMMANDS[parsed.command](_socket(parsed), parsed)
    except (UnusablePath, CannotTalk) as error:
        return _fail(error, CANNOT_TALK)
    except NotReady as error:
        return _fail(error, NOT_READY)
    except NotRunning as error:
        return _fail(error, NOT_RUNNING)
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return Exit.BROKEN_PIPE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pumactl", description="Ask a running Puma daemon how it is, or to stop.", allow_abbrev=False
    )
    parser.add_argument("--control-socket", metavar="PATH", help="The daemon's control socket, if not the usual.")
    parser.add_argument("--config", metavar="FILE", help="The daemon's configuration file, if not the usual.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    status = commands.add_parser("status", help="Model, memory and sequences of the running daemon.")
    status.add_argument("--json", action="store_true", help="As one JSON object, for programs.")
    config = commands.add_parser("config", help="Its configuration, where each value came from, and its memory.")
    config.add_argument("--json", action="store_true", help="As one JSON object, for programs.")
    stop = commands.add_parser("stop", help="Let running requests finish, then end; returns when it has gone.")
    stop.add_argument("--now", action="store_true", help="End running requests at once, with an error.")
    return parser


def _socket(parsed: argparse.Namespace) -> Path:
    """Where the daemon's socket is, as its configuration says; what else is wrong with that does not matter here."""
    if parsed.control_socket is not None:
        return socket_path(parsed.control_socket)
    configured, problems = find("server.control_socket", file=parsed.config)
    for problem in problems:
        print(f"pumactl: {problem}; looking at the usual place", file=sys.stderr)
    return socket_path(cast("str | None", configured))


def _config(path: Path, parsed: argparse.Namespace) -> int:
    answer = ask(path, GetConfig())
    if not isinstance(answer, Config):
        return _refused(answer)
    if parsed.json:
        print(msgspec.json.encode(answer).decode(), flush=True)
    else:
        print(show_text(answer.settings), "", *plan_lines(answer.plan), sep="\n", flush=True)
    return Exit.OK


def _status(path: Path, parsed: argparse.Namespace) -> int:
    answer = ask(path, GetStatus())
    if not isinstance(answer, Status):
        return _refused(answer)
    print(msgspec.json.encode(answer).decode() if parsed.json else status_text(answer), flush=True)
    return Exit.OK


def _stop(path: Path, parsed: argparse.Namespace) -> int:
    # Opened before the daemon is asked: when it has gone there is no file to open any more.
    lock = open_lock(path)
    answer = ask(path, Stop(now=parsed.now))
    if not isinstance(answer, Stopping):
        return _refused(answer)
    if answer.requests and not parsed.now:
        seconds = answer.grace_seconds
        print(f"waiting up to {seconds} s for {answer.requests} running requests", file=sys.stderr, flush=True)
    if lock is not None:
        wait_released(lock)
    print("stopped", flush=True)
    return Exit.OK


def _refused(answer: object) -> int:
    return _fail(answer.message if isinstance(answer, Refused) else f"unexpected answer {answer!r}", REFUSED)


def _fail(reason: object, status: int) -> int:
    print(f"pumactl: {reason}", file=sys.stderr)
    return status


COMMANDS: dict[str, Callable[[Path, argparse.Namespace], int]] = {"status": _status, "config": _config, "stop": _stop}


if __name__ == "__main__":
    sys.exit(main())

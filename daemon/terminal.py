"""A conversation in the terminal."""

import sys
from typing import Any

from puma.actors.errors import RequestError
from puma.actors.messages import Sampling
from puma.daemon.exits import Exit
from puma.daemon.session import Session

HELP = "Ctrl-C stops an answer; /clear forgets the conversation; /bye or Ctrl-D leaves."

Messages = list[dict[str, Any]]


def answer_once(session: Session, prompt: str, sampling: Sampling) -> int:
    """Answer one prompt on stdout; returns the exit status."""
    try:
        _answer(session, [{"role": "user", "content": prompt}], sampling)
    except RequestError as error:
        print(f"puma: {error.message}", file=sys.stderr)
        return Exit.FAILED
    return Exit.OK


def converse(session: Session, name: str, sampling: Sampling) -> int:
    """Ask and answer until the user leaves; returns the exit status."""
    _enable_line_editing()
    print(f"{name}: {HELP}", flush=True)
    messages: Messages = []
    while True:
        try:
            line = input(">>> ").strip()
        except KeyboardInterrupt:
            print(f"\n{HELP}", flush=True)
            continue
        except EOFError:
            print(flush=True)
            return Exit.OK
        match line:
            case "":
                pass
            case "/bye":
                return Exit.OK
            case "/clear":
                messages.clear()
            case _ if line.startswith("/"):
                print(HELP, flush=True)
            case _:
                _turn(session, messages, line, sampling)


def _turn(session: Session, messages: Messages, line: str, sampling: Sampling) -> None:
    """One question with its answer; a broken answer stays in the history as far as it came."""
    messages.append({"role": "user", "content": line})
    parts: list[str] = []
    try:
        _answer(session, messages, sampling, parts)
    except KeyboardInterrupt:
        print(" [stopped]", flush=True)
    except RequestError as error:
        messages.pop()
        print(f"{error.message}\n(/clear forgets the conversation so far)", file=sys.stderr)
        return
    messages.append({"role": "assistant", "content": "".join(parts)})


def _answer(session: Session, messages: Messages, sampling: Sampling, parts: list[str] | None = None) -> None:
    for text in session.answer(messages, sampling):
        if parts is not None:
            parts.append(text)
        sys.stdout.write(text)
        sys.stdout.flush()
    print(flush=True)
    if session.finish == "length":
        print("[the limit of tokens was reached; --default-max-tokens raises it]", file=sys.stderr)


def _enable_line_editing() -> None:
    """Arrow keys and earlier lines, where Python was built with it."""
    try:
        import readline  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        return

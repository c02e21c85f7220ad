"""The client's side of the control socket: plain blocking calls, so that `pumactl` starts fast."""

import socket
from pathlib import Path

import msgspec

from puma.daemon.control.lock import is_held, open_lock
from puma.daemon.control.messages import HEADER_BYTES, PROTOCOL, Answer, Ask, Greeting, frame, length_of

TIMEOUT_SECONDS = 15.0

_ANSWERS = msgspec.msgpack.Decoder(Answer)


class NotRunning(Exception):
    """No daemon lives here."""


class NotReady(Exception):
    """A daemon lives here but does not answer: it is still loading, or about to end."""


class CannotTalk(Exception):
    """What answers is not a daemon of this version, or may not be talked to."""


def ask(path: Path, question: Ask) -> Answer:
    """Ask the daemon one thing. Raises NotRunning, NotReady or CannotTalk."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_SECONDS)
        try:
            connection.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            raise _absent(path) from None
        except OSError as error:
            raise CannotTalk(f"{path}: {error.strerror or error}") from None
        try:
            return _converse(connection, question)
        except (OSError, EOFError) as error:
            raise NotReady(f"the daemon at {path} ended the conversation: {error}") from None
        except (ValueError, msgspec.MsgspecError) as error:
            raise CannotTalk(f"what answers at {path} is not understood: {error}") from None


def _converse(connection: socket.socket, question: Ask) -> Answer:
    greeting = msgspec.msgpack.decode(_payload(connection), type=Greeting)
    if greeting.protocol != PROTOCOL:
        raise CannotTalk(
            f"the daemon (Puma {greeting.version}, process {greeting.pid}) speaks version {greeting.protocol} of "
            f"the control protocol, this pumactl version {PROTOCOL}: use the pumactl that came with it"
        )
    connection.sendall(frame(question))
    return _ANSWERS.decode(_payload(connection))


def _payload(connection: socket.socket) -> bytes:
    length = length_of(_exactly(connection, HEADER_BYTES))
    return _exactly(connection, length)


def _exactly(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError("it closed the connection")
        data += more
    return bytes(data)


def _absent(path: Path) -> Exception:
    descriptor = open_lock(path)
    if descriptor is not None and is_held(descriptor):
        return NotReady(f"a daemon is starting and does not answer yet (its socket will be {path})")
    if path.exists():
        return NotRunning(f"no daemon is running: it left {path} behind, which the next one replaces")
    return NotRunning(f"no daemon is running (nothing at {path})")

"""The TCP port: taken before anything else is done, opened when there is someone to answer."""

import errno
import socket

from puma.daemon.exits import Exit


class CannotListen(Exception):
    """The address cannot be had; `status` is the exit status that says why."""

    def __init__(self, message: str, status: Exit) -> None:
        super().__init__(message)
        self.status = status


def take_port(host: str, port: int) -> socket.socket:
    """A bound socket that does not listen yet; port 0 takes any free port. Raises CannotListen."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise CannotListen(f"--host {host!r} is no address or known name: {error}", Exit.USAGE) from None
    # A name often has addresses of both families; most clients try IPv4 as well.
    family, kind, protocol, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    taken = socket.socket(family, kind, protocol)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
    except OSError as error:
        taken.close()
        raise _reason(host, port, error) from None
    # Reuse is wanted over connections that have just ended, but not by a second process while this one still loads.
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
    return taken


def open_port(taken: socket.socket, backlog: int = 512) -> None:
    """Begin to listen. Connections inherit the right to reuse, so that a restart is never kept waiting."""
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.listen(backlog)


def url_of(taken: socket.socket) -> str:
    """http://host:port, with the port that was really taken."""
    host, port = taken.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _reason(host: str, port: int, error: OSError) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        return CannotListen(
            f"{host}:{port} is in use by another process: stop it, or choose another --port", Exit.IN_USE
        )
    if error.errno == errno.EACCES:
        return CannotListen(f"this user may not listen on port {port}: choose one from 1024 up", Exit.USAGE)
    return CannotListen(f"cannot listen on {host}:{port}: {error.strerror}", Exit.USAGE)

"""A port that is taken early and opened late."""

import socket

import pytest

from puma.daemon.exits import Exit
from puma.daemon.listener import CannotListen, open_port, take_port, url_of


def test_taken_is_taken_before_it_is_open():
    with take_port("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        assert url_of(first) == f"http://127.0.0.1:{port}"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), 1)
        for _ in range(2):
            with pytest.raises(CannotListen, match=f"127.0.0.1:{port} is in use") as caught:
                take_port("127.0.0.1", port)
            assert caught.value.status == Exit.IN_USE
            open_port(first)


def test_restart_need_not_wait_for_old_connections():
    with take_port("127.0.0.1", 0) as first:
        open_port(first)
        address = first.getsockname()
        with socket.create_connection(address) as client:
            served, _ = first.accept()
            # The side that closes first keeps the address for a while.
            served.close()
            assert client.recv(1) == b""
    with take_port(*address) as second:
        open_port(second)


def test_other_addresses():
    with take_port("localhost", 0) as taken:
        assert url_of(taken).startswith("http://127.0.0.1:")
    if socket.has_ipv6:
        try:
            taken = take_port("::1", 0)
        except CannotListen:
            pytest.skip("no IPv6 here")
        with taken:
            assert url_of(taken).startswith("http://[::1]:")


def test_unusable_addresses():
    for host in ("no such host", "203.0.113.1"):
        with pytest.raises(CannotListen) as caught:
            take_port(host, 0)
        assert caught.value.status == Exit.USAGE

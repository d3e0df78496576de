"""The fault tools themselves: a proxy that does not cut would make every row hold."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from support.eventually import eventually
from support.faults.proxy import TcpProxy


class Echo:
    """A server that sends back what it gets."""

    def __init__(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self._echo, args=(client,), daemon=True).start()

    @staticmethod
    def _echo(client: socket.socket) -> None:
        with client:
            while data := client.recv(4096):
                client.sendall(data)


@pytest.fixture
def proxy() -> Iterator[TcpProxy]:
    echo = Echo()
    with TcpProxy(echo.port) as made:
        yield made
    echo.server.close()


def connected(proxy: TcpProxy) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", proxy.port), timeout=10)
    assert said_back(client, b"hello") == b"hello"
    return client


def said_back(client: socket.socket, data: bytes) -> bytes:
    client.sendall(data)
    return client.recv(4096)


def test_a_cut_swallows_what_is_sent_and_restoring_delivers_it(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        proxy.cut()
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            said_back(client, b"late")
        client.settimeout(10)
        proxy.restore()
        assert client.recv(4096) == b"late"
        assert said_back(client, b"again") == b"again"


def test_new_connections_during_a_cut_are_accepted_and_hear_nothing_until_it_ends(proxy: TcpProxy) -> None:
    proxy.cut()
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            said_back(client, b"first")
        client.settimeout(10)
        proxy.restore()
        assert client.recv(4096) == b"first"


def test_a_drop_ends_open_connections_and_refuses_new_ones_until_it_is_restored(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        proxy.drop()
        assert not open_still(client)
        assert refused(proxy)
        proxy.restore()
    with connected(proxy):
        pass


def test_a_drop_during_a_cut_ends_connections_too(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        proxy.cut()
        client.sendall(b"x")
        proxy.drop()
        assert not open_still(client)


def open_still(client: socket.socket) -> bool:
    try:
        return client.recv(1) != b""
    except ConnectionError:
        return False


def refused(proxy: TcpProxy) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
            return not open_still(client)
    except ConnectionError:  # it may be reset before the connecting side has looked
        return True


def test_a_delay_slows_both_directions(proxy: TcpProxy) -> None:
    with connected(proxy) as client:
        proxy.delay = 0.1
        started = time.monotonic()
        assert said_back(client, b"slow") == b"slow"
        assert time.monotonic() - started >= 0.2


def test_the_end_of_a_connection_passes_and_nothing_is_left(proxy: TcpProxy) -> None:
    connected(proxy).close()
    eventually(lambda: proxy.connections == 0, what="both sockets closed")
    assert proxy.passed == 2 * len(b"hello")


def test_a_server_that_is_away_ends_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with TcpProxy(port) as proxy:
        assert refused(proxy)

"""A TCP proxy on this machine that can be cut, restored and slowed down."""

from __future__ import annotations

import contextlib
import functools
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType

_CHUNK = 1 << 16
_HOST = "127.0.0.1"


class TcpProxy:
    """Forwards connections from ``port`` to ``target``, with a thread per direction. Use it as a context manager.

    ``cut`` is a network that swallows: connections stay open, new ones are accepted, nothing passes until ``restore``, and then
    what was sent meanwhile does, as TCP would send it again. ``drop`` is a peer that is gone: connections are reset and new
    ones closed at once, until ``restore``.
    """

    def __init__(self, target: int, port: int = 0) -> None:
        self.target = target
        self.delay = 0.0
        """Seconds that each chunk waits, in both directions."""
        self.passed = 0
        """Bytes passed on so far, in both directions."""
        self._server = socket.create_server((_HOST, port))
        self.port: int = self._server.getsockname()[1]
        self._flowing = threading.Event()
        self._flowing.set()
        self._refusing = False
        self._closed = False
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._thread("accept", self._accept)

    @property
    def connections(self) -> int:
        """The number of open sockets, two for each connection."""
        with self._lock:
            return len(self._sockets)

    def cut(self) -> None:
        """Stop forwarding, without closing connections."""
        self._flowing.clear()

    def drop(self) -> None:
        """Reset all connections and refuse new ones."""
        self._refusing = True
        self._flowing.set()
        self._reset_all()

    def restore(self) -> None:
        """Forward again."""
        self._refusing = False
        self._flowing.set()

    def close(self) -> None:
        """Close the proxy."""
        self._closed = True
        self._server.close()
        self._flowing.set()
        self._reset_all()

    def __enter__(self) -> TcpProxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            if self._refusing or self._closed:
                _reset(client)
                continue
            self._thread("connect", functools.partial(self._connect, client))

    def _connect(self, client: socket.socket) -> None:
        self._flowing.wait()
        try:
            server = socket.create_connection((_HOST, self.target), timeout=10)
        except OSError:
            _reset(client)
            return
        server.settimeout(None)
        with self._lock:
            self._sockets |= {client, server}
        if self._refusing or self._closed:
            self._end(client, server)
            return
        for one in (client, server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._thread("pass", functools.partial(self._pass, client, server))
        self._thread("pass", functools.partial(self._pass, server, client))

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(_CHUNK):
                if self.delay:
                    time.sleep(self.delay)
                self._flowing.wait()
                if self._refusing:
                    break
                with self._lock:
                    self.passed += len(chunk)
                target.sendall(chunk)
            self._flowing.wait()  # the end of a connection is not forwarded during a cut either
        self._end(source, target)

    def _end(self, *sockets: socket.socket) -> None:
        with self._lock:
            self._sockets.difference_update(sockets)
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _reset_all(self) -> None:
        with self._lock:
            sockets, self._sockets = self._sockets, set()
        for one in sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)  # wakes threads that read from it, unlike close
            _reset(one)

    @staticmethod
    def _thread(what: str, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name=f"proxy-{what}", daemon=True).start()


def _reset(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    one.close()

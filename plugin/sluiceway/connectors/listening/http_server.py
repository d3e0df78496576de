"""The HTTP server of sources that listen: a thread for each connection, with limits. Runs on executors."""

from __future__ import annotations

import logging
import socket
import ssl
import sys
import threading
import time
import zlib
from collections.abc import Sequence
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Protocol

from sluiceway.connectors.listening.keys import Listening, bound_socket

log = logging.getLogger(__name__)

_BODY_SECONDS = 30.0
_DISCARD_SECONDS = 5.0
_MOST_CHUNK_LINE = 1024
_MOST_TRAILERS = 100
_STOP_SECONDS = 5.0
_GZIP = 31  # zlib's window bits for gzip
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Request(NamedTuple):
    """The head of a request. ``target`` is the path with the query."""

    method: str
    target: str
    headers: Message


class Answer(NamedTuple):
    """The answer to a request: an HTTP status, and a body of a content type."""

    status: int
    body: bytes = b""
    type: str = "text/plain"


class RefusedError(Exception):
    """A request that is answered with an error. ``headers`` are more of the answer's."""

    def __init__(self, status: int, reason: str, *headers: tuple[str, str]) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers


class Exchange(Protocol):
    """Answers requests, on the threads of their connections. ``noun`` is what is sent, in errors."""

    noun: str

    def check(self, request: Request) -> None:
        """Check a request before its body is read. Raises RefusedError."""

    def answer(self, request: Request, body: bytes) -> Answer:
        """Answer a request with its body. Raises RefusedError."""

    def explain(self, request: Request, error: RefusedError) -> Answer:
        """Return the answer of an error."""


class Limits(NamedTuple):
    """The most bytes of a body, packed and unpacked, and the config keys of that and of the port."""

    body_bytes: int
    body_key: str
    port_key: str


class HttpListener(ThreadingHTTPServer):
    """Listens from its creation on; answers from ``start`` to ``stop``. Raises ConnectError for a port that is in use.

    Attributes:
        failure: the error that has ended its thread; None if none has.
        refused: connections that were above the limit.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, own: Listening, limits: Limits, exchange: Exchange, tls: ssl.SSLContext | None = None) -> None:
        self.limits = limits
        self.exchange = exchange
        self.failure: BaseException | None = None
        self.refused = 0
        self._tls = tls
        bound = bound_socket(own.host, own.port, socket.SOCK_STREAM, limits.port_key)
        super().__init__((own.host, own.port), _Handler, bind_and_activate=False)
        self.socket.close()  # its own, which is not bound
        if self._tls is not None:  # a handshake at the first read: not on the thread that accepts
            bound = self._tls.wrap_socket(bound, server_side=True, do_handshake_on_connect=False)
        self.socket = bound
        self.server_address = bound.getsockname()
        self._slots = threading.BoundedSemaphore(own.connections)
        self._open: dict[Any, threading.Thread] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="http-listener", daemon=True)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Accept no more connections, let running requests end, and close all. Takes some seconds at most."""
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()
        with self._lock:
            running = dict(self._open)
        for connection in running:
            try:
                socket.socket.shutdown(connection, socket.SHUT_RD)  # not that of TLS, which would end answers too
            except OSError:
                log.debug("A connection has ended already")
        until = time.monotonic() + _STOP_SECONDS
        for thread in running.values():
            thread.join(max(0.0, until - time.monotonic()))

    def _serve(self) -> None:
        try:
            self.serve_forever(0.25)
        except Exception as error:  # the thread's outermost call: poll raises it
            log.exception("The listener has ended")
            self.failure = error

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._slots.acquire(blocking=False):
            self.refused += 1
            self._refuse(request)
            return
        thread = threading.Thread(target=self._process, args=(request, client_address), name="http-request", daemon=True)
        with self._lock:
            self._open[request] = thread
        thread.start()

    def _refuse(self, request: Any) -> None:
        if self._tls is None:  # TLS would need a handshake before
            try:
                request.settimeout(0)
                request.send(_BUSY)
            except OSError:
                log.debug("A client that is one too many has gone")
        self.shutdown_request(request)

    def _process(self, request: Any, client_address: Any) -> None:
        try:
            self.process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open.pop(request, None)
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("A connection of %s has failed", client_address, exc_info=sys.exc_info())


class _Handler(BaseHTTPRequestHandler):
    """Reads requests of one connection: checks their heads, reads and unpacks their bodies, and writes the answers."""

    server: HttpListener
    protocol_version = "HTTP/1.1"
    server_version = "sluiceway"
    sys_version = ""
    timeout = _BODY_SECONDS
    disable_nagle_algorithm = True
    _left: int | None = 0
    """The bytes of the body that are not read yet; None for a body in chunks."""

    def do_POST(self) -> None:
        request = Request("POST", self.path, self.headers)
        self._left = 0
        try:
            self._check_head(request)
            answer = self.server.exchange.answer(request, self._unpacked(self._body()))
        except RefusedError as error:
            self._refuse(request, error)
        else:
            self._answer(answer)

    def do_GET(self) -> None:
        self._left = None
        refusal = RefusedError(405, f"{self.server.exchange.noun} are sent with POST", ("Allow", "POST"))
        self._refuse(Request("GET", self.path, self.headers), refusal)

    def _check_head(self, request: Request) -> None:
        length, encoding = self.headers.get_all("Content-Length", []), self.headers.get("Transfer-Encoding")
        if encoding is not None:
            self._left = None
            if encoding.strip().lower() != "chunked" or length:
                raise RefusedError(400, "a body must have either a Content-Length or the Transfer-Encoding chunked")
        elif len(length) != 1:
            self._left = None
            raise RefusedError(411, "a body must have one Content-Length")
        elif not (length[0].isascii() and length[0].isdigit()):
            self._left = None
            raise RefusedError(400, "Content-Length is not a number")
        else:
            self._left = int(length[0][:20])
        self.server.exchange.check(request)
        if self._encoding() not in ("", "identity", "gzip"):
            raise RefusedError(415, "Content-Encoding must be gzip, or none")

    def _encoding(self) -> str:
        return str(self.headers.get("Content-Encoding", "")).strip().lower()

    def _body(self) -> bytes:
        most = self.server.limits.body_bytes
        until = time.monotonic() + _BODY_SECONDS
        if self._left is None:
            return self._chunks(most, until)
        if self._left > most:
            raise RefusedError(413, f"the body has more than {most} bytes ({self.server.limits.body_key})")
        body = self._exactly(self._left, until)
        self._left = 0
        return body

    def _exactly(self, size: int, until: float) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self.rfile.read1(min(size, 65536))
            if not part or time.monotonic() > until:
                self._left = None
                raise RefusedError(400 if not part else 408, "the body did not come as a whole")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _chunks(self, most: int, until: float) -> bytes:
        parts: list[bytes] = []
        total = 0
        while True:
            line = self.rfile.readline(_MOST_CHUNK_LINE)
            digits = line.partition(b";")[0].strip()
            if not line.endswith(b"\n") or not digits or digits.strip(b"0123456789abcdefABCDEF"):
                raise RefusedError(400, "the body's chunks cannot be read")
            size = int(digits, 16)
            if not size:
                break
            total += size
            if total > most:
                raise RefusedError(413, f"the body has more than {most} bytes ({self.server.limits.body_key})")
            parts.append(self._exactly(size, until))
            if self.rfile.readline(3) not in (b"\r\n", b"\n"):
                raise RefusedError(400, "the body's chunks cannot be read")
        for _ in range(_MOST_TRAILERS):
            if self.rfile.readline(_MOST_CHUNK_LINE) in (b"\r\n", b"\n", b""):
                self._left = 0
                return b"".join(parts)
        raise RefusedError(400, "the body has too many trailers")

    def _unpacked(self, body: bytes) -> bytes:
        """Return a body without gzip. Raises RefusedError for one that is larger than allowed, before all of it is unpacked."""
        if self._encoding() != "gzip":
            return body
        most = self.server.limits.body_bytes
        parts: list[bytes] = []
        total = 0
        try:
            while True:  # gzip allows several members
                unpacker = zlib.decompressobj(_GZIP)
                parts.append(unpacker.decompress(body, most - total + 1))
                total += len(parts[-1])
                if total > most:
                    raise RefusedError(413, f"the body has more than {most} bytes when unpacked ({self.server.limits.body_key})")
                if not unpacker.eof:
                    raise RefusedError(400, "the body's gzip ends too early")
                body = unpacker.unused_data
                if not body:
                    return b"".join(parts)
        except zlib.error as error:
            raise RefusedError(400, f"the body is not gzip: {error}") from error

    def _refuse(self, request: Request, error: RefusedError) -> None:
        if self._left != 0:  # the next request would begin in this one's body
            self.close_connection = True
        self._answer(self.server.exchange.explain(request, error), error.headers)
        self._discard()

    def _answer(self, answer: Answer, headers: Sequence[tuple[str, str]] = ()) -> None:
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in headers:
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)

    def _discard(self) -> None:
        """Read what a client may still send of a body that was refused: closed at once, it might not read the answer."""
        until = time.monotonic() + _DISCARD_SECONDS
        most = 16 * self.server.limits.body_bytes
        left = most if self._left is None else min(self._left, most)
        try:
            self.connection.settimeout(_DISCARD_SECONDS if left else self.timeout)
            while left > 0 and time.monotonic() < until:
                part = self.rfile.read1(min(left, 65536))
                if not part:
                    break
                left -= len(part)
        except (OSError, ValueError):
            log.debug("A client that was refused has gone")

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 (the base class's name)
        log.debug("%s: %s", self.address_string(), format % arguments)

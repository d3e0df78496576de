"""An HTTP server for tests that answers as a test says, with faults: it loses connections, is slow, full, or away."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sluiceway.stack.ports import free_port

HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, or a fault. ``body`` is bytes, or is sent as JSON. ``reset``: the connection is reset instead."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    reset: bool = False
    until: threading.Event | None = None
    """It is sent when this is set."""

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


RESET = Answer(reset=True)
Work = Callable[[Request], Answer]


class HttpServer:
    """A server on a port that stays its own. ``faults`` are answered first; then ``work`` answers."""

    def __init__(self, work: Work = lambda _request: Answer(), tls: ssl.SSLContext | None = None) -> None:
        self.work = work
        self.faults: deque[Answer] = deque()
        self.requests: list[Request] = []
        self.running = self.most_running = 0
        self.lock = threading.Lock()
        self.port = free_port(HOST)
        self.url = f"http{'' if tls is None else 's'}://{HOST}:{self.port}"
        self._tls = tls
        self._server: _Server | None = None

    def start(self) -> None:
        """Listen; a server that was stopped has what it had."""
        outer = self

        class Handler(_Handler):
            owner = outer

        self._server = server = _Server((HOST, self.port), Handler)
        if self._tls is not None:
            server.socket = self._tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        self._thread.start()

    def stop(self) -> None:
        """Refuse connections, and close all."""
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            self._thread.join()
            server.server_close()
            server.close_all()

    def __enter__(self) -> HttpServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._open: set[Any] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def close_all(self) -> None:
        for each in list(self._open):
            _reset(each)

    def handle_error(self, *_: object) -> None: ...


def _reset(connection: Any) -> None:
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.shutdown(socket.SHUT_RDWR)
        connection.close()
    except OSError:
        return


class _Handler(BaseHTTPRequestHandler):
    owner: HttpServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _handle(self) -> None:
        owner = self.owner
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:  # its sender was killed
            self.close_connection = True
            return
        request = Request(self.command, self.path, dict(self.headers), body)
        with owner.lock:
            owner.requests.append(request)
            owner.running += 1
            owner.most_running = max(owner.most_running, owner.running)
            fault = owner.faults.popleft() if owner.faults else None
        try:
            answer = owner.work(request) if fault is None else fault
            if answer.until is not None:
                answer.until.wait(60)
        finally:
            with owner.lock:
                owner.running -= 1
        if answer.reset:
            self.close_connection = True
            _reset(self.connection)
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if "Content-Length" not in answer.headers:
            self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def __getattr__(self, name: str) -> Any:
        """Return what handles a method, whichever it is."""
        if name.startswith("do_"):
            return self._handle
        raise AttributeError(name)

    def log_message(self, *_: object) -> None: ...


class Collector:
    """Work that keeps bodies in order, those with a known idempotency key once. ``seen`` counts them all."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.seen = 0
        self._keys: set[str] = set()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self.seen += 1
            key = request.headers.get("Idempotency-Key")
            if key is None or key not in self._keys:
                self._keys.add(key or "")
                self.bodies.append(request.body)
            return Answer()


class TokenServer:
    """Work that gives tokens of OAuth 2 at ``/token``, and answers others with 401 unless they have a valid one."""

    def __init__(self, work: Work, life: object = 3600) -> None:
        self._work, self._life = work, life
        self.given = 0
        self.valid: set[str] = set()
        self.forms: list[Request] = []

    def __call__(self, request: Request) -> Answer:
        if request.path == "/token":
            self.forms.append(request)
            self.given += 1
            self.valid.add(f"Bearer token-{self.given}")
            return Answer(body={"access_token": f"token-{self.given}", "expires_in": self._life})
        return self._work(request) if request.headers.get("Authorization") in self.valid else Answer(401, b"who are you?")


class ItemList:
    """Work that gives items by pages of ``size``, those with ``updated`` from ``since`` on. ``path`` chooses how pages are found.

    ``/none`` has all, ``/page`` and ``/offset`` have what their parameters say, ``/cursor`` has ``next``, and ``/next`` and
    ``/link`` have a URL. ``newest_first`` turns the list around.
    """

    def __init__(self, count: int = 0, size: int = 10, *, newest_first: bool = False) -> None:
        self.items: list[dict[str, Any]] = []
        self.size, self.newest_first = size, newest_first
        self.add(count)

    def add(self, count: int) -> None:
        first = len(self.items)
        self.items += [{"id": number, "updated": moment(number)} for number in range(first, first + count)]

    def __call__(self, request: Request) -> Answer:
        query = request.query
        items = [each for each in list(self.items) if each["updated"] >= query.get("since", "")]
        items.sort(key=lambda each: each["updated"], reverse=self.newest_first)
        if request.path == "/none":
            return Answer(body={"items": items})
        first = int(query.get("page", 1)) * self.size - self.size if request.path == "/page" else 0
        first = int(query.get("offset") or query.get("cursor") or first)
        page, rest = items[first : first + self.size], first + self.size < len(items)
        follows = str(first + self.size) if rest else None
        target = None if follows is None else f"{request.path}?since={query.get('since', '')}&cursor={follows}"
        if request.path == "/cursor":
            return Answer(body={"items": page, "next": follows})
        if request.path == "/next":
            return Answer(body={"items": page, "next": target})
        headers = {} if request.path != "/link" or target is None else {"Link": f'<{target}>; rel="next", </>; rel="first"'}
        return Answer(body={"items": page}, headers=headers)


def moment(number: int) -> str:
    """Return a time; three items have the same one."""
    seconds = number // 3
    return f"2026-01-{1 + seconds // 86400:02d}T{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}Z"

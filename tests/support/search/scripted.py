"""HTTP servers with scripted answers, for what a real search server does rarely, and for Elasticsearch."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

ABOUT = b'{"version": {"number": "2.19.6"}}'


class Request(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@contextmanager
def answering(answer: Callable[[Request], tuple[int, bytes]], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run an HTTP server that answers with a status and a body of JSON, and yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, content = answer(Request(self.command, self.path, dict(self.headers), body))
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Location", "http://elsewhere/")
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 (http.server's names)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def serving(
    status: int = 200,
    body: bytes = ABOUT,
    login: str | None = None,
    tls: ssl.SSLContext | None = None,
    path: str = "/",
    seen: list[str] | None = None,
) -> Iterator[str]:
    """Run an HTTP server that always answers the same, to the right login and for paths that begin so, and yield its URL.

    Whatever else is asked for exists and is empty. ``seen`` gets the paths of the requests.
    """
    wanted = None if login is None else f"Basic {base64.b64encode(login.encode()).decode()}"

    def answer(request: Request) -> tuple[int, bytes]:
        if seen is not None:
            seen.append(request.path)
        if wanted is not None and request.headers.get("Authorization") != wanted:
            return 401, b'{"error": "no such user"}'
        return (status, body) if request.path.startswith(path) else (200, b"{}")

    with answering(answer, tls) as url:
        yield url

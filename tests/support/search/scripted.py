"""An HTTP server that always answers the same, for what a real search server does rarely."""

from __future__ import annotations

import base64
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ABOUT = b'{"version": {"number": "2.19.6"}}'


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

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if seen is not None:
                seen.append(self.path)
            given = self.headers.get("Authorization")
            wanted = None if login is None else f"Basic {base64.b64encode(login.encode()).decode()}"
            allowed = wanted is None or given == wanted
            answer, content = (status, body) if self.path.startswith(path) else (200, b"{}")
            if not allowed:
                answer, content = 401, b'{"error": "no such user"}'
            self.send_response(answer)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Location", "http://elsewhere/")
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_PUT = do_GET  # noqa: N815 (http.server's names)

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

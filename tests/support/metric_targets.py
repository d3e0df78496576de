"""Real HTTP servers that expose metrics: prometheus_client's, and ones that answer what a test says."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Gauge, MetricsHandler

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
TEXT = "text/plain; version=0.0.4; charset=utf-8"


class Answer(NamedTuple):
    body: str | bytes
    status: int = 200
    type: str = TEXT


@contextmanager
def exposing(registry: CollectorRegistry) -> Iterator[str]:
    """Serve a registry as prometheus_client does; yield the address."""

    class Handler(MetricsHandler):
        def log_message(self, *_: object) -> None: ...

    Handler.registry = registry
    with _serving(Handler) as port:
        yield f"127.0.0.1:{port}"


@contextmanager
def answering(
    answer: Callable[[BaseHTTPRequestHandler], Answer], *, port: int = 0, tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Serve what a function answers to each request; yield the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body, status, type_ = answer(self)
            content = body.encode() if isinstance(body, str) else body
            self.send_response(status)
            self.send_header("Content-Type", type_)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    with _serving(Handler, port, tls) as number:
        yield f"127.0.0.1:{number}"


@contextmanager
def _serving(handler: type[BaseHTTPRequestHandler], port: int = 0, tls: ssl.SSLContext | None = None) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def large_registry(series: int) -> CollectorRegistry:
    """Return a registry with this many series of a gauge."""
    registry = CollectorRegistry()
    requests = Gauge("http_requests_in_progress", "Requests.", ["path", "method", "status"], registry=registry)
    for number in range(series):
        requests.labels(f"/api/v1/orders/{number}", "GET", "200").set(number + 0.5)
    return registry

"""The driver's HTTP server: takes the metrics of its tasks' processes in and serves all of them.

Uses the standard library, because the small Python environments of drivers on clusters have no web server.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import socket
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

from sluiceway.errors import ConfigError, DataError
from sluiceway.metrics.beans import Bean, decode_beans, encode_beans
from sluiceway.metrics.collector import MetricsCollector
from sluiceway.metrics.naming import Naming
from sluiceway.metrics.publisher import PROCESS_HEADER, MetricsTarget

log = logging.getLogger(__name__)

LISTENER = "sluiceway.metrics.listener"
_PUBLISH, _BEANS, _METRICS = "/publish", "/metrics/beans", "/metrics"
_LARGEST_BODY = 64 * 1024 * 1024
_MOST_DIGITS = 12
_TIMEOUT_SECONDS = 10.0


class MetricsServer:
    """Serves ``GET /metrics``, the same as JSON for the REST API, and what tasks send.

    Args:
        host: the address to listen on; empty for all interfaces.
        port: 0 for any free port.
        beans: adds the driver's own metrics to those that its tasks have sent.
    """

    def __init__(self, host: str, port: int, collector: MetricsCollector, beans: Callable[[list[Bean]], list[Bean]]) -> None:
        self._token = secrets.token_hex(16)
        self._collector = collector
        self._own = beans
        try:
            self._server = _Server((host, port), _Handler)
        except OSError as error:
            raise ConfigError(LISTENER, f"http://{host}:{port}", f"Cannot listen there: {error.strerror}") from error
        self._server.metrics = self
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics-server", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def target(self, host: str) -> MetricsTarget:
        """Return where tasks send metrics. ``host`` is the driver's name or address in their network."""
        return MetricsTarget(f"{self.url(host)}{_PUBLISH}", self._token)

    def url(self, host: str) -> str:
        """Return the server's URL for others that reach the driver as ``host``."""
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def accepts(self, token: str) -> bool:
        """Return whether a token is that of this driver's tasks."""
        return hmac.compare_digest(token.encode(errors="replace"), self._token.encode())

    def receive(self, process: str, body: bytes) -> float:
        """Take metrics in. Return the seconds until the process should send others. Raises DataError."""
        return self._collector.receive(process, decode_beans(body))

    def beans(self) -> list[Bean]:
        """Return the metrics of the driver and its tasks."""
        return self._own(self._collector.beans())

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    metrics: MetricsServer

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = _TIMEOUT_SECONDS

    def do_GET(self) -> None:
        path, query = urlsplit(self.path)[2:4]
        if path == _BEANS:
            self._answer(HTTPStatus.OK, encode_beans(self.server.metrics.beans()), "application/json")
        elif path == _METRICS:
            self._render(parse_qs(query).get("names", ["strimzi"])[0])
        else:
            self._answer(HTTPStatus.NOT_FOUND, b"See /metrics\n")

    def _render(self, names: str) -> None:
        try:
            from sluiceway.metrics.exposition import render
        except ImportError:
            text = b"This driver's Python environment has no prometheus-client. The REST API's /metrics has these metrics too.\n"
            self._answer(HTTPStatus.NOT_IMPLEMENTED, text)
            return
        naming = Naming.named(names)
        if naming is None:
            self._answer(HTTPStatus.BAD_REQUEST, b"names must be strimzi or jmx\n")
            return
        body, content_type = render(self.server.metrics.beans(), self.headers.get("Accept", ""), naming)
        self._answer(HTTPStatus.OK, body, content_type)

    def do_POST(self) -> None:
        self.close_connection = True  # a body that is not read would be taken for the next request
        text = self.headers.get("Content-Length") or ""
        length = int(text) if text.isdecimal() and len(text) < _MOST_DIGITS else 0
        if self.path != _PUBLISH or not 0 < length <= _LARGEST_BODY:
            self._answer(HTTPStatus.NOT_FOUND, b"")
            return
        if not self.server.metrics.accepts(self.headers.get("Authorization", "").removeprefix("Bearer ")):
            self._answer(HTTPStatus.FORBIDDEN, b"")  # before the body: anyone may send one
            return
        try:
            seconds = self.server.metrics.receive(self.headers.get(PROCESS_HEADER, ""), self.rfile.read(length))
        except DataError as error:
            self._answer(HTTPStatus.BAD_REQUEST, f"{error}\n".encode())
        else:
            self._answer(HTTPStatus.OK, f"{seconds:g}".encode())

    def _answer(self, status: HTTPStatus, body: bytes, content_type: str = "text/plain; charset=utf-8") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the standard library's name)
        log.debug(format, *args)

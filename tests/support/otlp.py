"""A receiver of OpenTelemetry's protocol over HTTP, for tests."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

_REQUESTS = {"/v1/metrics": ExportMetricsServiceRequest, "/v1/traces": ExportTraceServiceRequest}


class Answer(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


class OtlpReceiver:
    """Takes what is exported to ``url``, and answers with success, or what ``answer`` returns for a request. A context manager.

    Attributes:
        requests: decoded, in the order of their arrival.
        headers: of each request, by their names in lower case, with its ``path``.
    """

    def __init__(self, answer: Callable[[Any], Answer] = lambda _request: Answer(), *, port: int = 0) -> None:
        self.requests: list[Any] = []
        self.headers: list[Mapping[str, str]] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver.headers.append({"path": self.path, **{name.lower(): value for name, value in self.headers.items()}})
                request = _REQUESTS[self.path].FromString(body)  # type: ignore[attr-defined]
                receiver.requests.append(request)
                status, content, headers = answer(request)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base class's name)
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def spans(self) -> list[Span]:
        """Return the spans that have arrived, in the order of their begin."""
        requests = [each for each in list(self.requests) if isinstance(each, ExportTraceServiceRequest)]
        found = [
            span
            for request in requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        return sorted(found, key=lambda span: span.start_time_unix_nano)

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> OtlpReceiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def attributes(holder: Any) -> dict[str, Any]:
    """Return the attributes of a span, a data point, or a resource."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in holder.attributes}

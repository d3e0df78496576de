"""Sends requests of OTLP over HTTP, and tells what their answers mean. Runs on executors."""

from __future__ import annotations

import gzip
import logging
from typing import Any, NamedTuple

import httpx

from sluiceway import __version__
from sluiceway.connectors.errors import LoginError, UnreachableError
from sluiceway.connectors.https import lasting_failure, retry_after_seconds, tls_context
from sluiceway.connectors.observability.otlp_config import PROTOBUF
from sluiceway.connectors.observability.otlp_sink_config import COMPRESSION, ENDPOINTS, HEADERS, PREFIX, TIMEOUT_MS, SinkOptions
from sluiceway.errors import ConfigError, ConnectError, shortened

_BAD_REQUEST, _UNAUTHORIZED, _FORBIDDEN, _TIMEOUT, _TOO_LARGE, _UNPROCESSABLE = 400, 401, 403, 408, 413, 422
_TOO_MANY, _SERVER_ERROR = 429, 500
_OF_CONTENT = (_BAD_REQUEST, _TOO_LARGE, _UNPROCESSABLE)
_MOST_TEXT = 500
_ADVICE = {
    _UNAUTHORIZED: f"Check {HEADERS}.",
    _FORBIDDEN: f"What {HEADERS} logs in as needs the right to write metrics.",
    404: f"Check the path in {ENDPOINTS}, and that the receiver's OTLP over HTTP is enabled.",
    405: f"Check the path in {ENDPOINTS}.",
    415: f"It must read protobuf, and gzip unless {COMPRESSION}=none.",
}

logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log each request


class BusyError(ConnectError):
    """The receiver takes the request later: HTTP 429."""


class RefusedError(ConnectError):
    """The receiver refuses a request for what it has, such as one point that it cannot read."""

    def __init__(self, message: str, *, too_large: bool = False) -> None:
        super().__init__(message)
        self.too_large = too_large

    def __reduce__(self) -> tuple[Any, ...]:
        return RefusedError, (str(self),), {"too_large": self.too_large}


class Taken(NamedTuple):
    """A success, which may be partial. ``reason`` may also be a warning, with nothing rejected."""

    rejected: int = 0
    reason: str = ""


class OtlpClient:
    """A client of the receivers of one system; it stays with one that answers. Not thread-safe.

    Attributes:
        retry_after: seconds that the receiver asked for in its last answer before the next request.
    """

    def __init__(self, options: SinkOptions) -> None:
        from google.rpc import status_pb2
        from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2

        self._status, self._service = status_pb2, metrics_service_pb2
        self._urls = list(options.endpoints)
        self._compressed = options.compressed
        self.retry_after = 0.0
        own = {"Content-Type": PROTOBUF, **({"Content-Encoding": "gzip"} if options.compressed else {})}
        self._http = httpx.Client(
            headers={"User-Agent": f"sluiceway/{__version__}", **options.headers, **own},
            timeout=options.timeout,
            trust_env=False,
            verify=tls_context(options.tls) if any(url.startswith("https:") for url in self._urls) else False,
        )

    def close(self) -> None:
        self._http.close()

    def send(self, body: bytes) -> Taken:
        """Send a request. Raises UnreachableError, BusyError, RefusedError, and ConnectError for what waiting does not end."""
        content = gzip.compress(body, 1) if self._compressed else body
        self.retry_after = 0.0
        problem = ""
        for _ in self._urls:
            url = self._urls[0]
            try:
                answer = self._http.post(url, content=content)
            except (httpx.InvalidURL, UnicodeError) as error:
                raise ConfigError(ENDPOINTS, url, f"cannot be used: {error}") from error
            except httpx.RequestError as error:
                advice = lasting_failure(error, f"{PREFIX}ssl.truststore.location", ENDPOINTS)
                if advice is not None:
                    raise ConnectError(f"{url} cannot be used: {error}. {advice}") from error
                problem = f"{url} does not answer: {type(error).__name__}: {error}"
                if isinstance(error, httpx.ReadTimeout):
                    problem = f"{problem}. Raise {TIMEOUT_MS} if it needs longer for a request."
            else:
                self.retry_after = retry_after_seconds(answer.headers)
                if answer.status_code < _SERVER_ERROR and answer.status_code != _TIMEOUT:
                    return self._taken(url, answer)
                problem = f"{url} is not ready: HTTP {answer.status_code}: {self._text(answer)}"
            self._urls.append(self._urls.pop(0))
        raise UnreachableError(problem if len(self._urls) == 1 else f"No answer from {', '.join(sorted(self._urls))}: {problem}")

    def _taken(self, url: str, answer: httpx.Response) -> Taken:
        from google.protobuf.message import DecodeError

        if not answer.is_success:
            raise self._refusal(url, answer)
        if answer.headers.get("Content-Type", "").partition(";")[0].strip() != PROTOBUF:  # such as an empty one
            return Taken()
        try:
            found = self._service.ExportMetricsServiceResponse.FromString(answer.content).partial_success
        except DecodeError as error:
            raise ConnectError(f"{url} is no receiver of OTLP: its answer cannot be read. Check {ENDPOINTS}.") from error
        return Taken(found.rejected_data_points, shortened(found.error_message, _MOST_TEXT))

    def _refusal(self, url: str, answer: httpx.Response) -> ConnectError:
        status = answer.status_code
        told = f"{url} answered with HTTP {status}: {self._text(answer)}"
        if status == _TOO_MANY:
            return BusyError(told)
        if status in _OF_CONTENT:
            return RefusedError(told, too_large=status == _TOO_LARGE)
        if answer.is_redirect:
            return ConnectError(f"{told}. It points to {answer.headers.get('location')}. Name that in {ENDPOINTS}.")
        told = f"{told}. {_ADVICE.get(status, f'Check {ENDPOINTS}.')}"
        return LoginError(told, HEADERS) if status in (_UNAUTHORIZED, _FORBIDDEN) else ConnectError(told)

    def _text(self, answer: httpx.Response) -> str:
        """Return what an error says: the message of a google.rpc.Status, or the text of the body."""
        from google.protobuf.message import DecodeError

        text = ""
        if answer.headers.get("Content-Type", "").partition(";")[0].strip() == PROTOBUF:
            try:
                text = self._status.Status.FromString(answer.content).message
            except DecodeError:
                text = ""
        else:
            text = " ".join(answer.text.split())
        return shortened(text or answer.reason_phrase, _MOST_TEXT)

"""OtlpSourceConnector and its task: produce a record for each point that applications send by OTLP over HTTP."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import urlsplit

from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.listening.buffer import Buffer, Losses
from sluiceway.connectors.listening.deliveries import Delivery, DeliveryRecord, DeliveryTask, not_now
from sluiceway.connectors.listening.http_server import Answer, HttpListener, Limits, RefusedError, Request
from sluiceway.connectors.listening.keys import ListeningConnector
from sluiceway.connectors.listening.login import has_login
from sluiceway.connectors.observability import otlp_config as keys
from sluiceway.connectors.observability.otlp_config import JSON, PROTOBUF, OtlpOptions, otlp_options
from sluiceway.connectors.observability.otlp_points import OtlpPoints, Received, TooLargeError
from sluiceway.connectors.observability.records import METRIC_SCHEMA
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import ConfigError, MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

log = logging.getLogger(__name__)

PATH = "/v1/metrics"
_CODES = {401: 16, 404: 5, 405: 12, 413: 8, 503: 14}
"""The codes of gRPC by HTTP statuses; others are of invalid arguments."""
_INVALID_ARGUMENT = 3
Points = Delivery[Received]
"""The points of a request."""
_TIMESTAMP = next(field.index for field in METRIC_SCHEMA.fields if field.name == "timestamp")


class OtlpReceiver:
    """Answers requests, on the threads of their connections: decodes them, and puts their points into the buffer."""

    noun = "metrics"

    def __init__(self, options: OtlpOptions, buffer: Buffer[Points], refusals: Losses, wake: Callable[[], None]) -> None:
        self._options = options
        self._buffer = buffer
        self._refusals = refusals
        self._wake = wake
        self._decoding = threading.Lock()
        self._messages = Messages()
        self.counts = {"requests": 0, "requests-refused": 0, "points-received": 0, "points-rejected": 0}

    def check(self, request: Request) -> None:
        """Check path, login, and type of a request. Raises RefusedError."""
        if urlsplit(request.target).path != PATH:
            raise RefusedError(404, f"nothing is at this path: metrics are posted to {PATH}")
        wanted, headers = self._options.authorization, request.headers
        if wanted is not None and not has_login(headers, *wanted):
            raise RefusedError(
                401, "the request's credentials are not those of this server", ("WWW-Authenticate", wanted[0].capitalize())
            )
        if headers.get_content_type() not in (PROTOBUF, JSON) or "Content-Type" not in headers:
            raise RefusedError(415, f"Content-Type must be {PROTOBUF} or {JSON}")

    def answer(self, request: Request, body: bytes) -> Answer:
        """Answer a body. Raises RefusedError for one that cannot be read, or not now."""
        at, kind = time.time_ns() // 1_000_000, _kind_of(request)
        with self._decoding:  # one at a time: the memory for it is many times the body
            self.counts["requests"] += 1
            points = self._points(self._messages.request(body, kind), at)
            number = len(points.items)
            delivery = Delivery(points.items, points.size, at)
            if number and not self._buffer.put(delivery):
                self._refuse(number, "the server is stopping" if self._buffer.closed else "the buffer is full")
            self.counts["points-rejected"] += points.rejected
        if number:
            self._wake()
            if self._options.delivered:
                self._await(delivery, number)
            with self._decoding:
                self.counts["points-received"] += number
        return Answer(200, self._messages.response(points.rejected, points.reason, kind), kind)

    def explain(self, request: Request, error: RefusedError) -> Answer:
        """Return the answer of an error: a google.rpc.Status."""
        kind = JSON if request.method == "GET" else _kind_of(request)
        body = self._messages.status(_CODES.get(error.status, _INVALID_ARGUMENT), error.reason, kind)
        return Answer(error.status, body, kind)

    def _points(self, request: ExportMetricsServiceRequest, at: int) -> OtlpPoints:
        buffer = self._buffer
        try:
            return OtlpPoints(
                request,
                at,
                with_help=self._options.with_help,
                most_points=buffer.most_items,
                most_bytes=buffer.most_bytes,
            )
        except TooLargeError as error:
            raise RefusedError(413, f"the request {error}") from error

    def _await(self, delivery: Points, number: int) -> None:
        if not delivery.ended.wait(self._options.timeout):
            self._buffer.withdraw(delivery)  # or the client's next attempt would be a second copy for certain
        if not delivery.delivered:
            with self._decoding:
                self._refuse(number, "Kafka has not acknowledged the points in time")

    def _refuse(self, points: int, why: str) -> NoReturn:
        self.counts["requests-refused"] += 1
        self._refusals.add(points)
        raise not_now(why)


def _kind_of(request: Request) -> str:
    return JSON if request.headers.get_content_type() == JSON else PROTOBUF


class Messages:
    """Reads and writes the messages of OTLP, as protobuf or JSON. Raises MissingToolError without their package."""

    def __init__(self) -> None:
        try:
            from google.protobuf import json_format
            from google.protobuf.message import DecodeError
            from google.rpc import status_pb2
            from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
        except ImportError as error:
            raise MissingToolError(
                f"OtlpSource needs a Python package that is not installed ({error}). Run: {install_command('otlp')} in the "
                "Python environment of the tasks."
            ) from error
        self._json = json_format
        self._service = metrics_service_pb2
        self._status = status_pb2
        self._bad = (DecodeError, json_format.ParseError, UnicodeDecodeError)

    def request(self, body: bytes, kind: str) -> ExportMetricsServiceRequest:
        """Return a request. Raises RefusedError."""
        try:
            if kind == JSON:
                return self._json.Parse(body, self._service.ExportMetricsServiceRequest(), ignore_unknown_fields=True)
            return self._service.ExportMetricsServiceRequest.FromString(body)
        except self._bad as error:
            raise RefusedError(400, f"the body is no ExportMetricsServiceRequest: {error}") from error

    def response(self, rejected: int, reason: str, kind: str) -> bytes:
        """Return the body of a success, which may be partial."""
        answer = self._service.ExportMetricsServiceResponse()
        if rejected:
            answer.partial_success.rejected_data_points = rejected
            answer.partial_success.error_message = reason
        return self._written(answer, kind)

    def status(self, code: int, reason: str, kind: str) -> bytes:
        """Return the body of an error."""
        return self._written(self._status.Status(code=code, message=reason), kind)

    def _written(self, message: Message, kind: str) -> bytes:
        return self._json.MessageToJson(message, indent=None).encode() if kind == JSON else message.SerializeToString()


class OtlpSourceTask(DeliveryTask[Received]):
    """Listens for points, and returns them as records without offsets."""

    def start(self, config: Mapping[str, str]) -> None:
        options = otlp_options(config)
        own = options.listening
        buffer: Buffer[Points] = Buffer(own.buffer_items, own.buffer_bytes)
        refusals = Losses(
            f"Clients were asked to send %d points again: the buffer was full ({keys.POINTS}, {keys.BYTES}), or Kafka did not "
            "acknowledge them in time"
        )
        self._topic = own.topic
        self._lost = 0
        self._receiver = receiver = OtlpReceiver(options, buffer, refusals, self.context.wake)
        limits = Limits(options.body_bytes, keys.BODY_BYTES, keys.PORT)
        server = HttpListener(own, limits, receiver, options.tls())
        self.listen(server, buffer, refusals, delivered=options.delivered)
        scheme = "http" if options.certificate is None else "https"
        log.info("Listening for OTLP on %s://%s:%d%s", scheme, own.host, server.port, PATH)

    def record(self, item: Received, delivery: Points) -> DeliveryRecord[Received]:
        key, value = item
        # Brokers refuse times that are far in the future: a client's clock must not fail the task.
        at = min(value.values_[_TIMESTAMP], delivery.at)
        return DeliveryRecord(None, None, self._topic, value, METRIC_SCHEMA, key, STRING_SCHEMA, timestamp=at)

    def dropped(self, items: int) -> None:
        self._lost += items
        log.warning(
            "%d points are lost: they were answered with success, and the task has ended. %s=%s loses none.",
            items,
            keys.ACKNOWLEDGE,
            keys.DELIVERED,
        )

    def metrics(self) -> Mapping[str, float]:
        """Return the numbers of requests and points, of those that were refused, and of those that wait in the buffer."""
        if self._server is None:
            return {}
        waiting, lost = self._buffer.items, self._lost
        return {
            **super().metrics(),
            **self._receiver.counts,
            "points-waiting": waiting,
            "points-refused": self._refusals.total,
            "points-lost": lost,
        }


class OtlpSourceConnector(ListeningConnector):
    """Listens for metrics that applications and collectors send by OTLP over HTTP: a record for each point. One task listens."""

    task_class = OtlpSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.OTLP

    @classmethod
    def check(cls, config: Mapping[str, str]) -> dict[str, ValidatedValue]:
        found = cls.config_def().validate(config)
        if not any(each.errors for each in found.values()):
            for name, message in keys.otlp_conflicts({name: each.value for name, each in found.items()}).items():
                found[name].errors.append(str(ConfigError(name, None, message)))
        return found

    def start(self, config: Mapping[str, str]) -> None:
        otlp_options(config)
        self._config = dict(config)

"""OtlpSourceConnector and its task: produce a record for each point that applications send by OTLP over HTTP."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from sluiceway.api import SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef, ValidatedValue
from sluiceway.connectors.observability import otlp_config as keys
from sluiceway.connectors.observability.buffer import Batch, Buffer, Losses
from sluiceway.connectors.observability.listening import ListeningConnector
from sluiceway.connectors.observability.otlp_config import OtlpOptions, otlp_options
from sluiceway.connectors.observability.otlp_points import OtlpPoints, Received, TooLargeError
from sluiceway.connectors.observability.otlp_server import JSON, PATH, Answer, OtlpServer, RefusedError
from sluiceway.connectors.observability.records import METRIC_SCHEMA
from sluiceway.data import STRING_SCHEMA
from sluiceway.errors import ConfigError, ConnectError, MissingToolError
from sluiceway.installation import install_command

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

log = logging.getLogger(__name__)

_WAIT_SECONDS = 1.0
_RETRY_SECONDS = 1
_CODES = {401: 16, 404: 5, 405: 12, 413: 8, 503: 14}
"""The codes of gRPC by HTTP statuses; others are of invalid arguments."""
_INVALID_ARGUMENT = 3
_TIMESTAMP = next(field.index for field in METRIC_SCHEMA.fields if field.name == "timestamp")


class Request(Batch[Received]):
    """The points of a request, until Kafka has them. ``ended`` is set then, or when the task stops, with ``delivered`` False."""

    __slots__ = ("delivered", "ended", "left")

    def __init__(self, items: Sequence[Received], size: int, at: int) -> None:
        super().__init__(items, size, at)
        self.left = len(items)
        self.ended = threading.Event()
        self.delivered = False

    def acknowledge(self) -> bool:
        """Count a record that Kafka has. Return True for the last one. Called by the task's thread."""
        self.left -= 1
        if self.left:
            return False
        self.delivered = True
        self.ended.set()
        return True


class PointRecord(SourceRecord):
    """A record that knows its request."""

    __slots__ = ("request",)

    request: Request


class OtlpReceiver:
    """Answers requests, on the threads of their connections: decodes them, and puts their points into the buffer."""

    def __init__(self, options: OtlpOptions, buffer: Buffer[Request], refusals: Losses, wake: Callable[[], None]) -> None:
        self._options = options
        self._buffer = buffer
        self._refusals = refusals
        self._wake = wake
        self._decoding = threading.Lock()
        self._messages = Messages()
        self.counts = {"requests": 0, "requests-refused": 0, "points-received": 0, "points-rejected": 0}

    def receive(self, body: bytes, kind: str) -> Answer:
        """Answer a body. Raises RefusedError for one that cannot be read, or not now."""
        at = time.time_ns() // 1_000_000
        with self._decoding:  # one at a time: the memory for it is many times the body
            self.counts["requests"] += 1
            points = self._points(self._messages.request(body, kind), at)
            request = Request(points.items, points.size, at)
            if request.items and not self._buffer.put(request):
                self._refuse(len(request.items), "the server is stopping" if self._buffer.closed else "the buffer is full")
            self.counts["points-rejected"] += points.rejected
        if request.items:
            self._wake()
            if self._options.delivered:
                self._await(request)
            with self._decoding:
                self.counts["points-received"] += len(request.items)
        return Answer(200, self._messages.response(points.rejected, points.reason, kind))

    def explain(self, status: int, reason: str, kind: str) -> bytes:
        """Return the body of an error: a google.rpc.Status."""
        return self._messages.status(_CODES.get(status, _INVALID_ARGUMENT), reason, kind)

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

    def _await(self, request: Request) -> None:
        if not request.ended.wait(self._options.timeout):
            self._buffer.withdraw(request)  # or the client's next attempt would be a second copy for certain
        if not request.delivered:
            with self._decoding:
                self._refuse(len(request.items), "Kafka has not acknowledged the points in time")

    def _refuse(self, points: int, why: str) -> NoReturn:
        self.counts["requests-refused"] += 1
        self._refusals.add(points)
        raise RefusedError(503, f"{why}: send the request again", ("Retry-After", str(_RETRY_SECONDS)))


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


class OtlpSourceTask(SourceTask):
    """Listens for points, and returns them as records without offsets."""

    _server: OtlpServer | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = otlp_options(config)
        own = options.listening
        self._buffer: Buffer[Request] = Buffer(own.buffer_items, own.buffer_bytes)
        self._refusals = Losses(
            f"Clients were asked to send %d points again: the buffer was full ({keys.POINTS}, {keys.BYTES}), or Kafka did not "
            "acknowledge them in time"
        )
        self._receiver = OtlpReceiver(options, self._buffer, self._refusals, self.context.wake)
        self._unacknowledged: set[Request] = set()
        self._lost = 0
        server = OtlpServer(options, self._receiver.receive, self._receiver.explain)
        server.start()
        self._server = server
        scheme = "http" if options.certificate is None else "https"
        log.info("Listening for OTLP on %s://%s:%d%s", scheme, own.host, server.port, PATH)

    @property
    def port(self) -> int:
        """The port that the task listens on."""
        return self._started().port

    def poll(self) -> Sequence[SourceRecord] | None:
        server = self._started()
        self._refusals.say()
        if server.failure is not None:
            raise ConnectError(f"The listener has ended: {server.failure!r}") from server.failure
        requests = self._buffer.take()
        if not requests and not self._unacknowledged:  # returning at once, the runtime waits for acknowledgements
            self.context.wait(_WAIT_SECONDS)
            requests = self._buffer.take()
        return self._taken(requests)

    def drain(self) -> Sequence[SourceRecord] | None:
        return self._taken(self._buffer.close())

    def _taken(self, requests: Sequence[Request]) -> list[SourceRecord] | None:
        if self._options.delivered:
            self._unacknowledged.update(requests)
        return [record for request in requests for record in self._records(request)] or None

    def _records(self, request: Request) -> list[SourceRecord]:
        topic, schema, key_schema = self._options.listening.topic, METRIC_SCHEMA, STRING_SCHEMA
        records: list[SourceRecord] = []
        for key, value in request.items:
            # Brokers refuse times that are far in the future: a client's clock must not fail the task.
            at = min(value.values_[_TIMESTAMP], request.at)
            record = PointRecord(None, None, topic, value, schema, key, key_schema, timestamp=at)
            record.request = request
            records.append(record)
        return records

    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        if isinstance(record, PointRecord) and record.request.acknowledge():
            self._unacknowledged.discard(record.request)

    def metrics(self) -> Mapping[str, float]:
        """Return the numbers of requests and points, of those that were refused, and of those that wait in the buffer."""
        server = self._server
        if server is None:
            return {}
        waiting, lost = self._buffer.items, self._lost
        return {
            **self._receiver.counts,
            "points-waiting": waiting,
            "points-refused": self._refusals.total,
            "points-lost": lost,
            "connections-refused": server.refused,
        }

    def stop(self) -> None:
        server = self._server
        if server is None:
            return
        left = self._buffer.close()
        for request in (*left, *self._unacknowledged):
            request.ended.set()
        self._unacknowledged.clear()
        if left and not self._options.delivered:
            lost = sum(len(request.items) for request in left)
            self._lost += lost
            log.warning(
                "%d points are lost: they were answered with success, and the task has ended. %s=%s loses none.",
                lost,
                keys.ACKNOWLEDGE,
                keys.DELIVERED,
            )
        server.stop()
        self._refusals.say(at_once=True)

    def _started(self) -> OtlpServer:
        if self._server is None:
            raise ConnectError("The task has not been started. Call start() first.")
        return self._server


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

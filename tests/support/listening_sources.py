"""Runs a task of a source that listens as the runtime does, and sends to it by HTTP, UDP, and TCP."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from sluiceway.api import SourceRecord
from sluiceway.connectors.http.webhook import WebhookSourceTask
from sluiceway.connectors.observability.otlp import OtlpSourceTask
from sluiceway.connectors.observability.statsd import StatsdSourceTask
from sluiceway.runtime.memory import MemorySourceContext
from support.eventually import LIMIT, eventually

HOST = "127.0.0.1"
PATH = "/v1/metrics"
PROTOBUF, JSON = "application/x-protobuf", "application/json"

Listener = OtlpSourceTask | StatsdSourceTask | WebhookSourceTask


class Running:
    """A task and its context. ``records`` are all that were polled, ``acknowledged`` those that Kafka has."""

    def __init__(self, task: Listener, config: Mapping[str, str]) -> None:
        self.context = MemorySourceContext(config)
        self.records: list[SourceRecord] = []
        self.acknowledged: list[SourceRecord] = []
        self.task = task
        self.task.initialize(self.context)
        self.task.start(config)

    @property
    def port(self) -> int:
        return self.task.port

    def poll(self) -> list[SourceRecord]:
        found = list(self.task.poll() or ())
        self.records += found
        return found

    def polled(self, number: int) -> list[dict[str, Any]]:
        """Poll until this many records were returned, and return the values of all."""

        def there() -> bool:
            if len(self.records) < number:
                self.poll()
            return len(self.records) >= number

        eventually(there, what=f"{number} records")
        assert len(self.records) == number
        return self.values()

    def values(self) -> list[dict[str, Any]]:
        for record in self.records:
            record.value.validate()
        return [dict(record.value) for record in self.records]

    def acknowledge(self, records: Sequence[SourceRecord]) -> None:
        """Say that Kafka has these records."""
        for offset, record in enumerate(records):
            self.acknowledged.append(record)
            self.task.commit_record(record, 0, offset)

    def metric(self, name: str) -> float:
        return self.task.metrics()[name]


@contextmanager
def otlp(**config: str) -> Iterator[Running]:
    """Run a task of OtlpSource, without acknowledgements of Kafka by default.

    ``_`` in a key stands for a dot, and ``otlp.`` comes before it.
    """
    yield from _running(OtlpSourceTask(), "otlp.", {"acknowledge": "received", **config})


@contextmanager
def statsd(**config: str) -> Iterator[Running]:
    """Run a task of StatsdSource, like ``otlp``."""
    yield from _running(StatsdSourceTask(), "statsd.", config)


@contextmanager
def webhook(**config: str) -> Iterator[Running]:
    """Run a task of WebhookSource, like ``otlp``."""
    yield from _running(WebhookSourceTask(), "webhook.", config)


def _running(task: Listener, prefix: str, config: Mapping[str, str]) -> Iterator[Running]:
    common = ("errors", "metric", "topic")
    keys = {key.replace("_", "."): value for key, value in config.items()}
    own = {key if key.startswith(common) else f"{prefix}{key}": value for key, value in keys.items()}
    made = Running(task, {"topic": "t", f"{prefix}port": "0", **own})
    try:
        yield made
    finally:
        made.task.stop()


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


def post(
    port: int,
    body: bytes | Sequence[bytes],
    kind: str | None = PROTOBUF,
    *,
    path: str = PATH,
    tls: ssl.SSLContext | None = None,
    method: str = "POST",
    **headers: str,
) -> Reply:
    """Send a request, in chunks if the body is a sequence; ``_`` in a header stands for a hyphen."""
    if tls is None:
        client = http.client.HTTPConnection(HOST, port, timeout=LIMIT)
    else:
        client = http.client.HTTPSConnection(HOST, port, timeout=LIMIT, context=tls)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        client.request(method, path, body, {**({} if kind is None else {"Content-Type": kind}), **named})
        answer = client.getresponse()
        return Reply(answer.status, dict(answer.headers), answer.read())
    finally:
        client.close()


class Posting:
    """Sends a request on a thread. ``reply`` waits for the answer."""

    def __init__(self, send: Callable[[], Any]) -> None:
        self._send = send
        self._result: list[Any] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result.append(self._send())
        except Exception as error:  # noqa: BLE001 (raised by ``reply``)
            self._result.append(error)

    @property
    def done(self) -> bool:
        return bool(self._result)

    def reply(self) -> Any:
        self._thread.join(LIMIT)
        [result] = self._result
        if isinstance(result, Exception):
            raise result
        return result


def packets(port: int, *sent: bytes) -> None:
    """Send packets by UDP."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        for each in sent:
            client.sendto(each, (HOST, port))

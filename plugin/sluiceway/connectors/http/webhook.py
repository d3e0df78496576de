"""WebhookSourceConnector and its task: produce a record for each request that is posted, and answer when Kafka has it."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

import orjson

from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.connectors.checked_connector import CheckedConnector
from sluiceway.connectors.http import webhook_config as keys
from sluiceway.connectors.http.pointers import found_at, is_scalar, text_of
from sluiceway.connectors.http.webhook_config import WebhookOptions, webhook_conflicts, webhook_options
from sluiceway.connectors.listening.buffer import Buffer, Losses
from sluiceway.connectors.listening.deliveries import Delivery, DeliveryRecord, DeliveryTask, not_now
from sluiceway.connectors.listening.http_server import Answer, HttpListener, Limits, RefusedError, Request
from sluiceway.connectors.listening.keys import ListeningConnector
from sluiceway.data import BYTES_SCHEMA, STRING_SCHEMA, Header, Schema

log = logging.getLogger(__name__)

_OVERHEAD = 1000  # bytes of memory of a request besides its body, about


class Hook(NamedTuple):
    """The parts of a record that a request makes."""

    topic: str
    key: str | None
    value: Any
    schema: Schema | None
    headers: tuple[Header, ...]


class WebhookReceiver:
    """Answers requests, on the threads of their connections: checks who sends, and waits until Kafka has the record."""

    noun = "webhooks"

    def __init__(
        self, options: WebhookOptions, buffer: Buffer[Delivery[Hook]], refusals: Losses, wake: Callable[[], None]
    ) -> None:
        self._options = options
        self._buffer = buffer
        self._refusals = refusals
        self._wake = wake
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Delivery[Hook]] = OrderedDict()
        self.pausing = False
        self.counts = {"requests": 0, "requests-denied": 0, "requests-refused": 0, "requests-repeated": 0}

    def check(self, request: Request) -> None:
        """Check path and login of a request. Raises RefusedError."""
        guard, headers = self._options.guard, request.headers
        if urlsplit(request.target).path not in self._options.topics:
            raise RefusedError(404, "nothing is at this path")
        if not guard.knows(headers):
            self._deny()
        if guard.signs and str(headers.get("Content-Encoding", "identity")).strip().lower() != "identity":
            raise RefusedError(415, "a body with a signature must not be compressed")
        if self.pausing:
            self._refuse("the connector is paused")

    def answer(self, request: Request, body: bytes) -> Answer:
        """Answer a body when Kafka has its record. Raises RefusedError for one that cannot be read, or not now."""
        if not self._options.guard.has_signed(request.headers, body):
            self._deny()
        hook = self._hook(request, body)
        delivery, repeats = self._taken(self._id_of(request), hook, len(body))
        if not repeats and not self._buffer.put(delivery):
            delivery.ended.set()
            self._refuse("the server is stopping" if self._buffer.closed else "the buffer is full")
        self._wake()
        waits = 0.0 if self.pausing else self._options.timeout  # it may have paused meanwhile
        if not delivery.ended.wait(waits) and self._buffer.withdraw(delivery):
            delivery.ended.set()  # the client's next attempt would be a second copy for certain
        if not delivery.delivered:
            self._refuse("Kafka has not acknowledged the record in time")
        return Answer(self._options.status)

    def explain(self, request: Request, error: RefusedError) -> Answer:
        """Return the answer of an error: a line of text."""
        return Answer(error.status, f"{error.reason}\n".encode(), "text/plain; charset=utf-8")

    def _taken(self, id_: str | None, hook: Hook, size: int) -> tuple[Delivery[Hook], bool]:
        """Return the delivery of a request, and whether it repeats one that was not refused."""
        with self._lock:
            self.counts["requests"] += 1
            known = None if id_ is None else self._known.get(id_)
            if known is not None and (known.delivered or not known.ended.is_set()):
                self.counts["requests-repeated"] += 1
                return known, True
            delivery = Delivery([hook], size + _OVERHEAD, time.time_ns() // 1_000_000)
            if id_ is not None:
                self._known[id_] = delivery
                self._known.move_to_end(id_)
                while len(self._known) > self._options.ids:
                    self._known.popitem(last=False)
            return delivery, False

    def _id_of(self, request: Request) -> str | None:
        header = self._options.id_header
        return None if header is None else request.headers.get(header)

    def _hook(self, request: Request, body: bytes) -> Hook:
        options, headers = self._options, request.headers
        value, schema = self._value(body)
        key = None if options.key_header is None else headers.get(options.key_header)
        if options.key_pointer is not None:
            found = found_at(options.key_pointer, value)
            key = text_of(found) if is_scalar(found) else None
        if key is None and (options.key_pointer or options.key_header) is not None:
            raise RefusedError(400, f"the request has no key at {options.key_pointer or options.key_header}")
        kept = tuple(
            Header(name, text, STRING_SCHEMA) for name in options.headers for text in map(str, headers.get_all(name, []))
        )
        return Hook(options.topics[urlsplit(request.target).path], key, value, schema, kept)

    def _value(self, body: bytes) -> tuple[Any, Schema | None]:
        try:
            if self._options.values == "json":
                return orjson.loads(body), None
            if self._options.values == "string":
                return body.decode(), STRING_SCHEMA
        except ValueError as error:  # of JSON and of UTF-8
            raise RefusedError(400, f"the body is no {self._options.values}: {error}") from error
        return body, BYTES_SCHEMA

    def _deny(self) -> NoReturn:
        with self._lock:
            self.counts["requests-denied"] += 1
        login = self._options.guard.login
        raise RefusedError(
            401,
            "the request does not show who sends it, as this server wants it",
            *(() if login is None else (("WWW-Authenticate", 'Basic realm="webhook"'),)),
        )

    def _refuse(self, why: str) -> NoReturn:
        with self._lock:
            self.counts["requests-refused"] += 1
        self._refusals.add(1)
        raise not_now(why)


class WebhookSourceTask(DeliveryTask[Hook]):
    """Listens for webhooks, and returns them as records without offsets."""

    def start(self, config: Mapping[str, str]) -> None:
        """Begin to listen. Raises ConfigError, and ConnectError for a port that is in use."""
        options = webhook_options(config)
        own = options.listening
        buffer: Buffer[Delivery[Hook]] = Buffer(own.buffer_items, own.buffer_bytes)
        refusals = Losses(
            "Clients were asked to send %d webhooks again: the connector is paused, the buffer was full "
            f"({keys.BUFFER}), or Kafka did not acknowledge them in time ({keys.TIMEOUT})"
        )
        self._receiver = receiver = WebhookReceiver(options, buffer, refusals, self.context.wake)
        limits = Limits(options.body_bytes, keys.BODY_BYTES, keys.PORT)
        server = HttpListener(own, limits, receiver, options.tls())
        self.listen(server, buffer, refusals, delivered=True)
        scheme = "http" if options.certificate is None else "https"
        log.info("Listening for webhooks on %s://%s:%d, at %s", scheme, own.host, server.port, ", ".join(options.topics))

    def record(self, item: Hook, delivery: Delivery[Hook]) -> DeliveryRecord[Hook]:
        key_schema = None if item.key is None else STRING_SCHEMA
        return DeliveryRecord(
            *(None, None, item.topic, item.value, item.schema, item.key, key_schema),
            timestamp=delivery.at,
            headers=item.headers,
        )

    def paused(self) -> None:
        """Let clients send again later what comes meanwhile, and what has not been polled."""
        self._receiver.pausing = True
        for delivery in self._buffer.take():
            delivery.ended.set()

    def resumed(self) -> None:
        self._receiver.pausing = False

    def metrics(self) -> Mapping[str, float]:
        """Return the numbers of requests, of those that were denied, refused, or repeated, and of those that wait."""
        if self._server is None:
            return {}
        return {**super().metrics(), **self._receiver.counts, "requests-waiting": self._buffer.items}


class WebhookSourceConnector(CheckedConnector, ListeningConnector):
    """Listens for webhooks: a record for each request that is posted, which is answered when Kafka has it. One task listens."""

    task_class = WebhookSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return keys.CONFIG

    @classmethod
    def conflicts(cls, values: Mapping[str, ConfigValue], config: Mapping[str, str]) -> Mapping[str, str]:
        return webhook_conflicts(values)

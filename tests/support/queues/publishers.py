"""Threads that send rising numbers to a queue's system, or to Kafka, while a test lets servers and tasks fail."""

from __future__ import annotations

import abc
import asyncio
import json
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from confluent_kafka import Producer

from support.database import HOST
from support.eventually import LIMIT
from support.http_server import Answer, ItemList, Request
from support.mqtt_server import MqttServer
from support.nats_server import NatsServer
from support.rabbitmq_server import RabbitServer

if TYPE_CHECKING:
    from typing_extensions import Self

    from sluiceway.connectors.nats.session import Session

_AGAIN_SECONDS = 0.1  # before a lost connection is opened again
_ANSWER_SECONDS = 10.0


class Publisher(abc.ABC):
    """A thread that sends rising numbers, each once. ``known`` has those that the system has confirmed.

    Whether the system has one that it has not confirmed, because it was killed, is not known. ``number`` is the next one.
    """

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.known: set[int] = set()
        self.number = 0
        self._works = threading.Event()
        self._works.set()
        self._thread = threading.Thread(target=self._run)

    @abc.abstractmethod
    def publish(self) -> None:
        """Connect, and publish until ``stopping`` is set. Raises OSError when the connection is lost."""

    def take(self, count: int) -> range:
        """Return the next numbers."""
        first, self.number = self.number, self.number + count
        return range(first, self.number)

    def rest(self) -> None:
        """Send no more until ``resume``."""
        self._works.clear()

    def resume(self) -> None:
        self._works.set()

    def waits(self, seconds: float) -> bool:
        """Wait between two sends. Return whether the thread must end."""
        self._works.wait()
        return self.stopping.wait(seconds)

    def _run(self) -> None:
        while not self.stopping.wait(_AGAIN_SECONDS):
            with suppress(OSError):
                self.publish()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._works.set()
        self._thread.join(LIMIT)


class RabbitPublisher(Publisher):
    """Publishes persistent messages to a queue of RabbitMQ, one after the other."""

    def __init__(self, server: RabbitServer, queue: str) -> None:
        super().__init__()
        self._server, self._queue = server, queue

    def publish(self) -> None:
        from pika import BasicProperties
        from pika.exceptions import AMQPError

        try:
            with closing(self._server.connect()) as connection:
                channel = connection.channel()
                channel.confirm_delivery()
                while not self.waits(0.001):
                    [number] = self.take(1)
                    channel.basic_publish("", self._queue, str(number), BasicProperties(delivery_mode=2), mandatory=True)
                    self.known.add(number)
        except AMQPError as error:
            raise ConnectionError(str(error)) from error


class RedisPublisher(Publisher):
    """Adds entries to a stream of Redis."""

    def __init__(self, url: str, stream: str) -> None:
        super().__init__()
        self._url, self._stream = url, stream

    def publish(self) -> None:
        from redis import Redis, RedisError

        try:
            with closing(Redis.from_url(self._url, retry=None)) as client:
                while not self.waits(0.02):
                    numbers = self.take(10)
                    with client.pipeline() as pipeline:
                        for each in numbers:
                            pipeline.xadd(self._stream, {"n": each})
                        pipeline.execute()
                    self.known.update(numbers)
        except RedisError as error:
            raise ConnectionError(str(error)) from error


class NatsPublisher(Publisher):
    """Publishes messages to a stream of NATS."""

    def __init__(self, server: NatsServer, stream: str) -> None:
        super().__init__()
        self._server, self._stream = server, stream

    def publish(self) -> None:
        with closing(self._server.connect()) as session:
            while not self.waits(0.02):
                self.known.update(session.call(self._acknowledged(session, self.take(20)), _ANSWER_SECONDS))

    async def _acknowledged(self, session: Session, numbers: range) -> list[int]:
        made = [session.client.request(self._stream, str(number).encode(), timeout=5.0) for number in numbers]
        answers = await asyncio.gather(*made, return_exceptions=True)
        return [
            number
            for number, answer in zip(numbers, answers, strict=True)
            if not isinstance(answer, BaseException) and "error" not in json.loads(answer.data)
        ]


class MqttPublisher(Publisher):
    """Publishes messages to a topic of MQTT with quality of service 1."""

    def __init__(self, server: MqttServer, topic: str) -> None:
        super().__init__()
        self._server, self._topic = server, topic

    def publish(self) -> None:
        from paho.mqtt.client import Client
        from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion

        kind = CallbackAPIVersion.VERSION2
        client = Client(kind, "publisher", protocol=MQTTProtocolVersion.MQTTv5, reconnect_on_failure=False)
        client.connect(HOST, self._server.port)
        client.loop_start()
        try:
            self._wait(client.is_connected, lambda: True)
            while not self.waits(0.05):
                sent = {number: client.publish(self._topic, b"%d" % number, 1) for number in self.take(20)}
                try:
                    self._wait(lambda: all(each.is_published() for each in sent.values()), client.is_connected)  # noqa: B023
                finally:
                    self.known.update(number for number, each in sent.items() if each.is_published())
        finally:
            client.disconnect()
            client.loop_stop()

    @staticmethod
    def _wait(condition: Callable[[], bool], may_come: Callable[[], bool]) -> None:
        """Wait for a condition. Raises ConnectionError when it cannot come any more."""
        ends = time.monotonic() + _ANSWER_SECONDS
        while not condition():
            if not may_come() or time.monotonic() > ends:
                raise ConnectionError("the connection to the broker is lost")
            time.sleep(0.005)


class Feeder(Publisher):
    """Calls a function with ten numbers after the other."""

    def __init__(self, send: Callable[[list[str]], object]) -> None:
        super().__init__()
        self._send = send

    def publish(self) -> None:
        while not self.waits(0.1):
            numbers = self.take(10)
            self._send(list(map(str, numbers)))
            self.known.update(numbers)


class KafkaFeeder(Publisher):
    """Produces records to the first partition of a topic of Kafka, whose keys and values two functions make of a number."""

    def __init__(self, bootstrap: str, topic: str, key_of: Callable[[int], str], value_of: Callable[[int], str]) -> None:
        super().__init__()
        self._bootstrap, self._topic, self._key_of, self._value_of = bootstrap, topic, key_of, value_of

    def publish(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap})
        while not self.waits(0.1):
            numbers = self.take(10)
            for each in numbers:
                producer.produce(self._topic, self._value_of(each), self._key_of(each), 0)
            assert producer.flush(LIMIT) == 0
            self.known.update(numbers)


class GrowingList(Publisher):
    """A list for an HTTP server that grows by itself, with pages that take a moment, so that a kill meets a run."""

    def __init__(self, *, size: int, newest_first: bool = False) -> None:
        super().__init__()
        self._items = ItemList(size=size, newest_first=newest_first)
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        self.stopping.wait(0.02)
        with self._lock:
            return self._items(request)

    def add(self, count: int) -> None:
        with self._lock:
            numbers = self.take(count)
            self._items.add(len(numbers))
            self.known.update(numbers)

    def publish(self) -> None:
        while not self.waits(0.05):
            self.add(10)

"""Sinks of queue connectors with their servers, for tests in which the server is away, or the sink is paused."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections import Counter
from contextlib import closing
from typing import Any, ClassVar

from support.eventually import eventually
from support.http_server import Collector
from support.mqtt_peer import Peer
from support.queues.systems import AwsSystem, HttpSystem, MqttSystem, NatsSystem, RabbitSystem, RedisSystem, System

WINDOW = 100
_BILLION = 1_000_000_000


class Sink(System):
    """A sink that writes the records of a topic, and its server."""

    most_doubled: ClassVar[int] = 0
    """The most records that are written twice when a connection is lost."""
    converter: ClassVar[str] = "StringConverter"

    @property
    @abstractmethod
    def config(self) -> dict[str, str]:
        """The connector's config but for its name, class, topics, and converters."""

    @abstractmethod
    def found(self) -> Counter[int]:
        """Return how often each number was written. Called once, at the end."""

    @staticmethod
    def key_of(number: int) -> str:
        return str(number % 20)

    @staticmethod
    def value_of(number: int) -> str:
        return str(number)


class RabbitSink(RabbitSystem, Sink):
    most_doubled = WINDOW

    def start(self) -> None:
        super().start()
        self.server.declare(self.topic)

    @property
    def config(self) -> dict[str, str]:
        return {**self.connection, "rabbitmq.publish.max.batch.size": str(WINDOW)}

    def found(self) -> Counter[int]:
        return Counter(int(body) for _properties, body in self.server.take(self.topic))


class RedisSink(RedisSystem, Sink):
    converter = "JsonConverter"

    @property
    def config(self) -> dict[str, str]:
        own = {"redis.key": "${topic}-${partition}", "redis.stream.ids": "offset", "batch.size": "50"}
        return {"redis.uri": self.server.url, **own, "value.converter.schemas.enable": "false"}

    def found(self) -> Counter[int]:
        entries: Any = self.client.xrange(f"{self.topic}-0")
        return Counter(int(fields[b"n"]) for _id, fields in entries)

    @staticmethod
    def value_of(number: int) -> str:
        return json.dumps({"n": number})


class NatsSink(NatsSystem, Sink):
    def start(self) -> None:
        super().start()
        self.server.create(self.topic, duplicate_window=3600 * _BILLION)

    @property
    def config(self) -> dict[str, str]:
        return {**self.connection, "nats.publish.window": str(WINDOW)}

    def found(self) -> Counter[int]:
        return Counter(int(message.data) for message in self.server.take(self.topic))


class MqttSink(MqttSystem, Sink):
    """Each record is retained in a topic of its own, so that the broker has it; a subscriber sees what comes twice."""

    most_doubled = WINDOW

    def start(self) -> None:
        super().start()
        self._subscriber = Peer(self.server, f"{self.topic}/#")

    @property
    def config(self) -> dict[str, str]:
        own = {"mqtt.topic": "${topic}/${key}", "mqtt.retained.enabled": "true", "batch.size": str(WINDOW)}
        return {**self.connection, **own}

    def found(self) -> Counter[int]:
        came = Counter(int(payload) for _topic, payload, retained in self._subscriber.received if not retained)
        with closing(Peer(self.server, f"{self.topic}/#", f"{self.topic}-end")) as peer:
            peer.send(f"{self.topic}-end", b"-1")  # comes behind what is retained
            eventually(lambda: any(payload == b"-1" for _topic, payload, _retained in peer.received))
            kept = {int(payload) for _topic, payload, _retained in peer.received} - {-1}
        return Counter({number: max(1, came[number]) for number in kept})

    @staticmethod
    def key_of(number: int) -> str:
        return str(number)

    def close(self) -> None:
        self._subscriber.close()
        super().close()


class SqsSink(AwsSystem, Sink):
    """A FIFO queue, which drops repeats."""

    service = "sqs"
    says = "Amazon SQS at"

    def start(self) -> None:
        super().start()
        self._queue = self.server.create_queue(f"{self.topic}.fifo")

    @property
    def config(self) -> dict[str, str]:
        return {**self.connection, "sqs.url": f"{self.topic}.fifo"}

    def found(self) -> Counter[int]:
        return Counter(int(each["Body"]) for each in self.server.take(self._queue))


class KinesisSink(AwsSystem, Sink):
    service = "kinesis"
    says = "Amazon Kinesis at"
    most_doubled = 500  # a request

    def start(self) -> None:
        super().start()
        self.server.create_stream(self.topic)

    @property
    def config(self) -> dict[str, str]:
        return {**self.connection, "kinesis.stream": self.topic}

    def found(self) -> Counter[int]:
        return Counter({int(value): count for value, count in self.server.counted(self.topic).items()})


class HttpSink(HttpSystem, Sink):
    """A server that knows idempotency keys."""

    def start(self) -> None:
        super().start()
        self.server.work = self._collector = Collector()

    @property
    def config(self) -> dict[str, str]:
        return {"http.url": f"{self.server.url}/items"}

    def found(self) -> Counter[int]:
        return Counter(int(body) for body in self._collector.bodies)


SINKS: dict[str, type[Sink]] = {
    each.__name__: each for each in (RabbitSink, RedisSink, NatsSink, MqttSink, SqsSink, KinesisSink, HttpSink)
}

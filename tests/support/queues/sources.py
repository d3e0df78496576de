"""Sources of queue connectors with their servers, for tests in which the server is away, or the source is paused."""

from __future__ import annotations

import json
import signal
from abc import abstractmethod
from collections import Counter
from contextlib import closing
from typing import Any, ClassVar

import pytest

from sluiceway.api import SourceConnector
from sluiceway.connectors.aws import KinesisSourceConnector, SqsSourceConnector
from sluiceway.connectors.http import HttpSourceConnector
from sluiceway.connectors.mqtt import MqttSourceConnector
from sluiceway.connectors.nats import NatsConsumerSourceConnector, NatsStreamSourceConnector, jetstream, stream_source
from sluiceway.connectors.rabbitmq import RabbitQueueSourceConnector, RabbitStreamSourceConnector
from sluiceway.connectors.redis import RedisGroupSourceConnector, RedisStreamSourceConnector
from support.eventually import LIMIT, eventually
from support.mqtt_peer import Peer
from support.queues.publishers import (
    Feeder,
    GrowingList,
    MqttPublisher,
    NatsPublisher,
    Publisher,
    RabbitPublisher,
    RedisPublisher,
)
from support.queues.systems import AwsSystem, HttpSystem, MqttSystem, NatsSystem, RabbitSystem, RedisSystem, System
from support.transactions import seen

BYTES = {"key.converter": "StringConverter", "value.converter": "ByteArrayConverter"}
STRINGS = {"key.converter": "StringConverter", "value.converter": "StringConverter"}
JSON = {"key.converter": "StringConverter", "value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
PREFETCH = 100


def numbers_in(bootstrap: str, topic: str, number_of: Any = int) -> Counter[int]:
    """Return how often each number is in a topic; ``number_of`` reads it from a value."""
    return Counter(number_of(message.value() or b"") for message in seen(bootstrap, topic))


class Source(System):
    """A source that reads into a topic of the name that it is given, and its server."""

    connector: ClassVar[type[SourceConnector]]
    once: ClassVar[bool] = False
    """Whether its position is in Kafka's offsets, so that it runs exactly once. Else it takes messages, at least once."""
    gives_back: ClassVar[bool] = True
    """Whether a paused task that takes messages gives back those that it holds."""

    @property
    @abstractmethod
    def config(self) -> dict[str, str]:
        """The connector's config but for its name and class."""

    @abstractmethod
    def publisher(self) -> Publisher: ...

    @abstractmethod
    def send(self, numbers: range) -> None:
        """Send messages, and wait until the server has them."""

    def shorten(self, patch: pytest.MonkeyPatch) -> None:
        """Shorten a deadline that is no key."""

    def is_ready(self) -> bool:
        """Return whether messages that are sent now reach the running task."""
        return True

    def taken(self, most: int) -> list[int]:
        """Receive up to so many messages as another client of the same queue, and acknowledge them."""
        raise NotImplementedError

    def before_resume(self) -> None:
        """Wait until what a paused task has left at the server is gone, or let it be."""

    @staticmethod
    def number_of(value: bytes) -> int:
        return int(value)


class RabbitQueueSource(RabbitSystem, Source):
    connector: ClassVar[type[SourceConnector]] = RabbitQueueSourceConnector
    deadline = 5.0
    kind: ClassVar[str] = "classic"
    # RabbitMQ 3.10 that is killed forgets the newest acknowledgements, and may find a new quorum queue or stream no more.
    crash = signal.SIGTERM

    def start(self) -> None:
        super().start()
        self.server.declare(self.topic, self.kind)

    @property
    def config(self) -> dict[str, str]:
        return {**self.connection, "rabbitmq.queue": self.topic, "rabbitmq.prefetch.count": str(PREFETCH), **BYTES}

    def publisher(self) -> Publisher:
        return RabbitPublisher(self.server, self.topic)

    def send(self, numbers: range) -> None:
        self.server.publish(self.topic, *map(str, numbers))

    def taken(self, most: int) -> list[int]:
        found: list[int] = []
        with closing(self.server.connect()) as connection:
            channel = connection.channel()
            while len(found) < most and (message := channel.basic_get(self.topic, auto_ack=True))[0] is not None:
                found.append(int(message[2]))
        return found


class RabbitQuorumSource(RabbitQueueSource):
    kind = "quorum"


class RabbitStreamSource(RabbitQueueSource):
    connector = RabbitStreamSourceConnector
    once = True
    kind = "stream"


class RedisStreamSource(RedisSystem, Source):
    connector: ClassVar[type[SourceConnector]] = RedisStreamSourceConnector
    once = True

    @property
    def config(self) -> dict[str, str]:
        return {"redis.uri": self.server.url, "redis.stream.name": self.topic, "batch.size": "50", **JSON}

    def publisher(self) -> Publisher:
        return RedisPublisher(self.server.url, self.topic)

    def send(self, numbers: range) -> None:
        with self.client.pipeline() as pipeline:
            for each in numbers:
                pipeline.xadd(self.topic, {"n": each})
            pipeline.execute()

    @staticmethod
    def number_of(value: bytes) -> int:
        return int(json.loads(value)["body"]["n"])


class RedisGroupSource(RedisStreamSource):
    connector = RedisGroupSourceConnector
    once = False

    @property
    def config(self) -> dict[str, str]:
        idle = {"redis.stream.min.idle.ms": str(int(self.deadline * 1000))} if self.hasty else {}
        return {**super().config, "redis.stream.held": str(PREFETCH), "redis.stream.consumer.group": "g", **idle}

    def taken(self, most: int) -> list[int]:
        found: Any = self.client.xautoclaim(self.topic, "g", "other", int(self.deadline * 1000), count=most)
        for id_, _fields in found[1]:
            self.client.xack(self.topic, "g", id_)
        return [int(fields[b"n"]) for _id, fields in found[1]]


class NatsStreamSource(NatsSystem, Source):
    connector: ClassVar[type[SourceConnector]] = NatsStreamSourceConnector
    once = True

    def start(self) -> None:
        super().start()
        self.server.create(self.topic)

    @property
    def config(self) -> dict[str, str]:
        return {**self.connection, "nats.streams": self.topic, "batch.size": "50", **BYTES}

    def shorten(self, patch: pytest.MonkeyPatch) -> None:
        for each in (jetstream, stream_source):  # the server forgets a consumer that was not used for so long
            patch.setattr(each, "KEPT_SECONDS", self.deadline)

    def publisher(self) -> Publisher:
        return NatsPublisher(self.server, self.topic)

    def send(self, numbers: range) -> None:
        self.server.publish(self.topic, *map(str, numbers))

    def before_resume(self) -> None:
        names = f"CONSUMER.NAMES.{self.topic}"
        eventually(lambda: not self.server.request(names)["consumers"], what="the end of the task's consumer")


class NatsConsumerSource(NatsStreamSource):
    connector = NatsConsumerSourceConnector
    once = False
    crash = signal.SIGTERM  # a server that is killed forgets acknowledgements that it has shown

    @property
    def config(self) -> dict[str, str]:
        own = {"nats.stream": self.topic, "nats.consumer": "c", "nats.held": str(PREFETCH)}
        wait = {"nats.consumer.ack.wait.ms": str(int(self.deadline * 1000))} if self.hasty else {}
        return {**self.connection, **own, **wait, **BYTES}

    def shorten(self, patch: pytest.MonkeyPatch) -> None: ...

    def before_resume(self) -> None: ...

    def taken(self, most: int) -> list[int]:
        with closing(self.server.connect()) as session:

            async def take() -> list[int]:
                consumer = await session.client.jetstream().pull_subscribe_bind("c", self.topic)
                messages = await consumer.fetch(most, timeout=10)
                for each in messages:
                    await each.ack_sync()
                return [int(each.data) for each in messages]

            return session.call(take(), LIMIT)


class MqttSource(MqttSystem, Source):
    connector = MqttSourceConnector
    gives_back = False  # MQTT has no way for that
    forgets = True  # Mosquitto 2.0.11 keeps none for a session before its client is there again

    @property
    def config(self) -> dict[str, str]:
        expiry = {"mqtt.session.expiry.seconds": str(int(self.deadline))} if self.hasty else {}
        own = {"mqtt.topics": self.topic, "kafka.topic": self.topic, "mqtt.held": str(PREFETCH)}
        return {**self.connection, **own, **expiry, **BYTES}

    def is_ready(self) -> bool:
        return self.server.has_subscriber(f"sluiceway-{self.topic}-0")

    def publisher(self) -> Publisher:
        return MqttPublisher(self.server, self.topic)

    def send(self, numbers: range) -> None:
        with closing(Peer(self.server)) as peer:
            peer.send(self.topic, *(b"%d" % each for each in numbers))


class SqsSource(AwsSystem, Source):
    connector = SqsSourceConnector
    service = "sqs"
    says = "Amazon SQS at"
    deadline = 10.0  # the shortest visibility timeout of a task

    def start(self) -> None:
        super().start()
        self.queue = self.server.create_queue(self.topic)

    @property
    def config(self) -> dict[str, str]:
        own = {"sqs.url": self.topic, "sqs.waittime.seconds": "1", "sqs.prefetch": str(PREFETCH), "kafka.topic": self.topic}
        visibility = {"sqs.visibility.timeout.seconds": str(int(self.deadline))} if self.hasty else {}
        return {**self.connection, **own, **visibility, **STRINGS}

    def publisher(self) -> Publisher:
        return Feeder(lambda numbers: self.server.send(self.queue, *numbers))

    def send(self, numbers: range) -> None:
        self.server.send(self.queue, *map(str, numbers))

    def taken(self, most: int) -> list[int]:
        found: list[int] = []
        while len(found) < most:
            messages = self.server.sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10).get("Messages", [])
            for each in messages:
                self.server.sqs.delete_message(QueueUrl=self.queue, ReceiptHandle=each["ReceiptHandle"])
                found.append(int(each["Body"]))
            if not messages:
                break
        return found


class KinesisSource(AwsSystem, Source):
    connector = KinesisSourceConnector
    service = "kinesis"
    says = "Amazon Kinesis at"
    once = True

    def start(self) -> None:
        super().start()
        self.server.create_stream(self.topic, 2)

    @property
    def config(self) -> dict[str, str]:
        own = {"kinesis.stream": self.topic, "kinesis.values": "string", "kinesis.empty.records.backoff.ms": "200"}
        return {**self.connection, "kafka.topic": self.topic, **own, **STRINGS}

    def publisher(self) -> Publisher:
        return Feeder(lambda numbers: self.server.put(self.topic, *numbers))

    def send(self, numbers: range) -> None:
        self.server.put(self.topic, *map(str, numbers))

    def before_resume(self) -> None:
        self.server.fail("GetRecords", "ExpiredIteratorException")  # Kinesis' iterators live for five minutes


class HttpSource(HttpSystem, Source):
    connector = HttpSourceConnector
    once = True

    def start(self) -> None:
        super().start()
        self.server.work = self.items = GrowingList(size=20)

    @property
    def config(self) -> dict[str, str]:
        return {
            "http.request.url": f"{self.server.url}/cursor",
            "http.request.params": "since=${offset.timestamp}&cursor=${page.cursor}",
            "http.paging": "cursor",
            "http.paging.pointer": "/next",
            "http.response.list.pointer": "/items",
            "http.response.record.offset.pointer": "key=/id, timestamp=/updated",
            "http.response.list.order.direction": "ASC",
            "http.timer.interval.millis": "50",
            "kafka.topic": self.topic,
            **JSON,
        }

    def publisher(self) -> Publisher:
        return self.items

    def send(self, numbers: range) -> None:
        self.items.add(len(numbers))

    def before_resume(self) -> None:
        self.away()  # it closes the connections that a paused task has left open
        self.back()

    @staticmethod
    def number_of(value: bytes) -> int:
        return int(json.loads(value)["id"])


SOURCES: dict[str, type[Source]] = {
    each.__name__: each
    for each in (
        *(RabbitQueueSource, RabbitQuorumSource, RabbitStreamSource, RedisStreamSource, RedisGroupSource),
        *(NatsStreamSource, NatsConsumerSource, MqttSource, SqsSource, KinesisSource, HttpSource),
    )
}

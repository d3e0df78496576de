"""The Kafka channel of signals, with a consumer that answers as told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sluiceway.connectors.cdc import signal_channels
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.signal_channels import KafkaChannel
from sluiceway.kafka.clients import OFFSET_STORED
from unit.connectors.cdc.test_incremental import CONFIG


class _Message:
    def __init__(self, value: bytes = b"", key: bytes = b"", offset: int = 0, error: str | None = None) -> None:
        self.value, self.key, self.offset = lambda: value, lambda: key, lambda: offset
        self.error = lambda: error
        self.topic = lambda: None if error == "group" else "t"


class _Consumer:
    """Replaces a consumer: notes the offsets of assignments, and returns ``waiting`` messages."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self.properties = properties
        self.starts: list[int] = []
        self.waiting: list[_Message] = []
        self.committed: list[int] = []

    def assign(self, partitions: list[Any]) -> None:
        [partition] = partitions
        assert (partition.topic, partition.partition) == ("own", 0)
        self.starts.append(partition.offset)

    def consume(self, _count: int, _timeout: float) -> list[_Message]:
        found, self.waiting = self.waiting, []
        return found

    def commit(self, offsets: list[Any], *, asynchronous: bool) -> None:
        assert asynchronous
        self.committed += [partition.offset for partition in offsets]


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> KafkaChannel:
    monkeypatch.setattr(signal_channels, "consumer", _Consumer)
    monkeypatch.setattr(signal_channels, "_KAFKA_SECONDS", 0.0)
    monkeypatch.setattr(signal_channels, "_ERROR_SECONDS", 0.0)
    keys = {"signal.enabled.channels": "kafka", "signal.kafka.topic": "own", "signal.kafka.bootstrap.servers": "k:1"}
    return KafkaChannel(postgres_config({**CONFIG, **keys, "signal.consumer.client.id": "me"}).common, {})


def test_the_consumer_has_the_configs_properties(channel: KafkaChannel) -> None:
    consumer: Any = channel._consumer
    assert {"bootstrap.servers": "k:1", "group.id": "kafka-signal", "client.id": "me"}.items() <= consumer.properties.items()


def test_records_of_other_connectors_are_skipped(channel: KafkaChannel) -> None:
    consumer: Any = channel._consumer
    key = CONFIG["topic.prefix"].encode()
    consumer.waiting = [_Message(b'{"type":"log"}', b"other", 4), _Message(b'{"id":"s1","type":"log"}', key, 5)]
    assert channel.read() == [("s1", "log", {})]


def test_a_committed_offset_that_was_not_got_is_asked_for_again(channel: KafkaChannel) -> None:
    """While the group has no coordinator, librdkafka returns one error and then never reads the topic."""
    consumer: Any = channel._consumer
    consumer.waiting = [_Message(error="group")]
    assert channel.read() == []
    assert consumer.starts == [OFFSET_STORED, OFFSET_STORED]
    consumer.waiting = [_Message(b"", b"other", 7), _Message(error="partition")]
    assert channel.read() == []
    consumer.waiting = [_Message(error="group")]
    assert channel.read() == []
    assert consumer.starts == [OFFSET_STORED, OFFSET_STORED, 8]


def test_an_offset_is_committed_once_a_source_offset_has_its_request(channel: KafkaChannel) -> None:
    consumer: Any = channel._consumer
    before = channel.state()
    consumer.waiting = [_Message(b'{"id":"s1","type":"log"}', CONFIG["topic.prefix"].encode(), 5)]
    channel.read()
    channel.commit(before)
    assert consumer.committed == []
    channel.commit(channel.state())
    channel.commit(channel.state())
    assert consumer.committed == [6]

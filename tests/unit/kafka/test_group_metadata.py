"""The membership in librdkafka's metadata of a consumer group."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer

from sluiceway.errors import ConnectError
from sluiceway.kafka.group_metadata import ConsumerGroup, consumer_group


@pytest.mark.parametrize("instance", [None, "static"])
def test_a_consumers_own_metadata_is_decoded(instance: str | None) -> None:
    config = {"bootstrap.servers": "127.0.0.1:1", "group.id": "connect-x", "log_level": 0}
    consumer = Consumer(config if instance is None else {**config, "group.instance.id": instance})
    try:
        assert consumer_group(consumer.consumer_group_metadata()) == ConsumerGroup("connect-x", -1, "", instance)
    finally:
        consumer.close()


def test_a_member_of_a_generation() -> None:
    metadata = b"CGMDv2:" + (7).to_bytes(4, "little") + b"g\0member-1\0\1"
    assert consumer_group(metadata) == ConsumerGroup("g", 7, "member-1", None)


def test_another_format_is_refused() -> None:
    with pytest.raises(ConnectError, match="unknown format"):
        consumer_group(b"CGMDv3:")

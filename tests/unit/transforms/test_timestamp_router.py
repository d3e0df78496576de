from __future__ import annotations

import pytest

from sluiceway.data import Header
from sluiceway.errors import DataError
from sluiceway.transforms.timestamp_router import TimestampRouter
from unit.transforms.transforming import configured, source_record, transformed


@pytest.mark.parametrize(
    ("options", "millis", "topic"),
    [
        ({}, 1700000000123, "orders-20231114"),
        ({}, -1, "orders-19691231"),
        ({}, -62135596800000, "orders-00010103"),
        ({"topic_format": "${timestamp}_${topic}_${timestamp}"}, 0, "19700101_orders_19700101"),
        ({"topic_format": "x$0\\"}, 0, "x$0\\"),
        ({"timestamp_format": "yyyy'Y'DDD"}, 0, "orders-1970Y001"),
    ],
)
def test_a_topic_is_made_of_topic_and_timestamp(options: dict[str, str], millis: int, topic: str) -> None:
    assert transformed(configured(TimestampRouter, **options), 1, timestamp=millis).topic == topic


def test_the_timestamp_also_goes_into_a_placeholder_in_the_topics_own_name() -> None:
    record = source_record(1).new_record(topic="${timestamp}", timestamp=0)
    assert configured(TimestampRouter, topic_format="${topic}").apply(record).topic == "19700101"  # type: ignore[union-attr]


def test_the_error_for_a_record_without_timestamp_shows_the_record() -> None:
    with pytest.raises(DataError) as caught:
        transformed(configured(TimestampRouter), {"a": 1}, key="k", headers=(Header("h", 5),))
    assert str(caught.value) == (
        "Timestamp missing on record: SinkRecord{kafkaOffset=42, timestampType=NoTimestampType, originalTopic=orders, "
        "originalKafkaPartition=3, originalKafkaOffset=42} ConnectRecord{topic='orders', kafkaPartition=3, key=k, "
        "keySchema=null, value={a=1}, valueSchema=null, timestamp=null, "
        "headers=ConnectHeaders(headers=[ConnectHeader(key=h, value=5, schema=null)])}"
    )
    with pytest.raises(DataError) as caught:
        configured(TimestampRouter).apply(source_record(None))
    assert str(caught.value) == (
        "Timestamp missing on record: SourceRecord{sourcePartition={file=f}, sourceOffset={position=1}} "
        "ConnectRecord{topic='orders', kafkaPartition=null, key=null, keySchema=null, value=null, valueSchema=null, "
        "timestamp=null, headers=ConnectHeaders(headers=)}"
    )


def test_a_bad_timestamp_format_fails_records_and_not_the_config() -> None:
    router = configured(TimestampRouter, timestamp_format="qqq")
    with pytest.raises(ValueError, match="Illegal pattern character 'q'"):
        transformed(router, 1, timestamp=0)

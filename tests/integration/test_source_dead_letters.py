"""Dead letter queue records of sources on a real broker, an extension of Connect."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import NewTopic

from sluiceway.api import SourceRecord
from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA
from support.bad_records import FLAKY, PREFIX, Flaky, headers, tolerant
from support.engine import Offsets, RunningTask
from support.engine_connectors import SOURCE, script
from support.eventually import LIMIT, eventually
from support.faults.proxy import TcpProxy
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]
PARTITION = {"file": "f"}


def record(topic: str, value: object, offset: int, **more: object) -> SourceRecord:
    return SourceRecord(PARTITION, {"position": offset}, topic, value, STRING_SCHEMA, **more)  # type: ignore[arg-type]


def test_dead_letter_queue_records_of_sources_have_the_source_offset(kafka: Kafka, unique: Names) -> None:
    topic, dlq, name = kafka.create(unique("errors")), unique("dlq"), unique("connector")
    bad = SourceRecord(PARTITION, {"position": 2}, topic, {"no": "string"}, INT32_SCHEMA, key="k", key_schema=STRING_SCHEMA)
    script(name, [record(topic, "a", 1), bad, record(topic, "c", 3)])
    config = {"name": name, "connector.class": SOURCE, "value.converter": "JsonConverter", **tolerant(dlq)}
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    assert len(kafka.read(topic, 2)) == 2
    assert task.offsets.get(name, [PARTITION]) == [{"position": 3}]
    (letter,) = kafka.read(dlq, 1)
    told = headers(letter)
    assert (letter.key(), letter.value()) == (b'"k"', b'{"no":"string"}')
    assert (told[f"{PREFIX}stage"], told[f"{PREFIX}topic"]) == ("VALUE_CONVERTER", topic)
    assert told["__sluiceway.errors.source.partition"] == '{"file":"f"}'
    assert told["__sluiceway.errors.source.offset"] == '{"position":2}'


def test_a_source_record_is_retried_in_order(kafka: Kafka, unique: Names) -> None:
    topic, name = kafka.create(unique("errors")), unique("connector")
    Flaky.failures = {"b": 6}
    script(name, [record(topic, "a", 1), record(topic, "b", 2), record(topic, "c", 3)])
    retry = {"errors.retry.timeout": "60000", "errors.retry.delay.max.ms": "20"}
    with RunningTask({"name": name, "connector.class": SOURCE, **FLAKY, **retry}, kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    assert kafka.values(topic, 3) == ["a!", "b!", "c!"]


def test_offsets_wait_for_earlier_dead_letter_queue_records(
    kafka: Kafka, unique: Names, caplog: pytest.LogCaptureFixture
) -> None:
    topic, dlq, name = kafka.create(unique("errors")), unique("dlq"), unique("connector")
    Flaky.failures = {"b": 1_000_000}
    script(name, [record(topic, "b", 2)])  # wait for a dead letter queue record only
    worker = kafka.worker(offset_flush_interval_ms="50", offset_flush_timeout_ms="200")
    with TcpProxy(int(kafka.bootstrap.rpartition(":")[2])) as proxy:
        proxy.drop()
        config = {"name": name, "connector.class": SOURCE, **FLAKY, **tolerant(dlq)}
        config["producer.override.bootstrap.servers"] = f"127.0.0.1:{proxy.port}"
        offsets = Offsets()
        with RunningTask(config, worker, offsets=offsets):
            eventually(lambda: caplog.text.count(f"dead letter queue records for topic {dlq}") >= 3)
            assert offsets.puts == []
            proxy.restore()
            eventually(lambda: offsets.get(name, [PARTITION]) == [{"position": 2}])
    assert kafka.values(dlq, 1) == ['"b"']


def test_only_rejected_records_of_a_rejected_batch_are_dropped(kafka: Kafka, unique: Names) -> None:
    topic, dlq, name = unique("errors"), unique("dlq"), unique("connector")
    small = NewTopic(topic, 1, 1, config={"max.message.bytes": "2000"})
    kafka.admin.create_topics([small])[topic].result(LIMIT)
    texts = [f"{number}:{'x' * 100}" for number in range(40)]  # together more than max.message.bytes
    texts[20] = "20:" + "y" * 5000
    script(name, [record(topic, text, number) for number, text in enumerate(texts)])
    config = {"name": name, "connector.class": SOURCE, "producer.override.linger.ms": "100", **tolerant(dlq)}
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    assert sorted(kafka.values(topic, 39)) == sorted(texts[:20] + texts[21:])
    assert task.offsets.get(name, [PARTITION]) == [{"position": 39}]
    (letter,) = kafka.read(dlq, 1)
    told = headers(letter)
    assert told[f"{PREFIX}stage"] == "KAFKA_PRODUCE"
    assert "MSG_SIZE_TOO_LARGE" in told[f"{PREFIX}exception.message"]
    assert letter.value() == f'"{texts[20]}"'.encode()

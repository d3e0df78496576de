"""Dead letter queue topics that reject records, are unreachable or are slow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import psutil
import pytest
from confluent_kafka.admin import NewTopic

from support.bad_records import JSON, committed, sink, tolerant
from support.engine import RunningTask
from support.engine_connectors import dotted, script
from support.eventually import LIMIT, eventually
from support.faults.proxy import TcpProxy
from support.kafka import Kafka

pytestmark = pytest.mark.kafka
Names = Callable[[str], str]


def test_rejected_dead_letter_queue_records_fail_the_task_and_nothing_is_committed(
    kafka: Kafka, topic: str, name: str, dlq: str
) -> None:
    kafka.admin.create_topics([NewTopic(dlq, 1, 1, config={"max.message.bytes": "100"})])[dlq].result(LIMIT)
    kafka.produce(topic, "1", "bad", "3")
    script(name)
    with RunningTask(sink(name, topic, JSON, tolerant(dlq)), kafka.worker(offset_flush_interval_ms="50")) as task:
        result = task.join()
    expected = "A dead letter queue record was not written, so no more offsets are committed: "
    assert f"{expected}Cannot write a dead letter queue record to topic {dlq}" in (result.trace or "")
    assert committed(kafka, name, topic) is None


@pytest.fixture
def dlq_proxy(kafka: Kafka) -> Iterator[TcpProxy]:
    """A proxy to the broker that only the dead letter queue's producer uses; closed at first."""
    with TcpProxy(int(kafka.bootstrap.rpartition(":")[2])) as proxy:
        proxy.drop()
        yield proxy


def through(dlq_proxy: TcpProxy, **more: str) -> dict[str, str]:
    settings = {"bootstrap.servers": f"127.0.0.1:{dlq_proxy.port}", **dotted(more)}
    return {f"producer.override.{key}": value for key, value in settings.items()}


def test_offsets_wait_for_an_unavailable_dead_letter_queue_topic(
    kafka: Kafka, topic: str, name: str, dlq: str, dlq_proxy: TcpProxy, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.produce(topic, "1", "bad", "3")
    made = script(name)
    worker = kafka.worker(offset_flush_interval_ms="50", offset_flush_timeout_ms="200")
    with RunningTask(sink(name, topic, JSON, tolerant(dlq), through(dlq_proxy)), worker) as task:
        eventually(lambda: caplog.text.count(f"dead letter queue records for topic {dlq}") >= 3)
        assert [record.value for record in made.taken] == [1, 3]
        assert committed(kafka, name, topic) is None
        assert task.result is None
        dlq_proxy.restore()
        eventually(lambda: committed(kafka, name, topic) == 3)
    assert kafka.values(dlq, 1) == ["bad"]


def test_an_unavailable_dead_letter_queue_topic_fails_the_task_after_the_delivery_timeout(
    kafka: Kafka, topic: str, name: str, dlq: str, dlq_proxy: TcpProxy
) -> None:
    kafka.produce(topic, "bad")
    script(name)
    config = sink(name, topic, JSON, tolerant(dlq), through(dlq_proxy, delivery_timeout_ms="2000"))
    with RunningTask(config, kafka.worker(offset_flush_interval_ms="50")) as task:
        assert "A dead letter queue record was not written" in (task.join().trace or "")
    assert committed(kafka, name, topic) is None


@pytest.mark.long
def test_only_bad_records_and_a_slow_dead_letter_queue_topic_do_not_exhaust_memory(
    kafka: Kafka, topic: str, name: str, dlq: str
) -> None:
    count, size = 60_000, 2000
    producer_value = b"x" * size
    kafka.produce(topic, *([producer_value] * count))
    script(name)
    small = {"consumer.override.queued.max.messages.kbytes": "4096"}
    process = psutil.Process(os.getpid())
    with RunningTask(sink(name, topic, JSON, tolerant(dlq), small), kafka.worker(offset_flush_interval_ms="500")) as task:
        eventually(lambda: kafka_end(kafka, dlq) > 1000)
        before = process.memory_info().rss
        most = 0

        def done() -> bool:
            nonlocal most
            most = max(most, process.memory_info().rss)
            return kafka_end(kafka, dlq) >= count

        eventually(done)
        eventually(lambda: committed(kafka, name, topic) == count)
        assert task.result is None
    assert kafka.end(dlq) == count
    assert most - before < 48 << 20, f"{(most - before) >> 20} MiB more for {count * size >> 20} MiB of bad records"


def kafka_end(kafka: Kafka, topic: str) -> int:
    return kafka.end(topic) if topic in kafka.admin.list_topics(timeout=10).topics else 0

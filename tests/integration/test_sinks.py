"""Sink tasks on a real broker: slow and failing targets, offsets stored in the target, rebalances, and offsets out of range."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions

from sluiceway.errors import RetriableError
from sluiceway.kafka import clients
from sluiceway.runtime.sink.consumer_settings import sink_consumer
from support.engine import RunningTask, spec_of
from support.engine_connectors import Script, script, scripted_sink
from support.eventually import LIMIT, eventually
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]
IMPATIENT = {"consumer.override.max.poll.interval.ms": "6000", "consumer.override.session.timeout.ms": "6000"}


def sink(name: str, topic: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
    return {**scripted_sink(name, topic), **(more or {})}


def values(made: Script) -> list[Any]:
    with made.lock:
        return [record.value for record in made.taken]


def commit(kafka: Kafka, name: str, topic: str, offset: int) -> None:
    """Commit an offset for a connector's group."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": f"connect-{name}", "enable.auto.commit": False})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def test_a_sink_of_five_records_a_second_stays_in_its_group_and_gets_each_record_once(
    kafka: Kafka, topic: str, name: str
) -> None:
    """One batch of all records would take twice max.poll.interval.ms."""
    count = 60
    kafka.produce(topic, *map(str, range(count)))
    made = script(name, on_put=lambda _task, records: time.sleep(0.2 * len(records)))
    with RunningTask(sink(name, topic, IMPATIENT), kafka.worker(offset_flush_interval_ms="500")) as task:
        eventually(lambda: len(values(made)) >= count)
        assert not task.stop().failed
    assert values(made) == list(map(str, range(count)))
    assert made.names().count("open") == made.names().count("close") == 1
    assert kafka.committed(f"connect-{name}") == {(topic, 0): count}


def test_an_outage_of_the_target_beyond_max_poll_interval_loses_neither_membership_nor_records(
    kafka: Kafka, topic: str, name: str
) -> None:
    kafka.produce(topic, "a", "b")
    tasks: list[Any] = []
    made = script(name, on_open=lambda task, _partitions: tasks.append(task))
    attempts = 0

    def step() -> Any:
        nonlocal attempts
        attempts += 1
        if attempts > 2:
            return None
        tasks[0].context.timeout(4000)  # twice this is beyond max.poll.interval.ms
        return RetriableError("away")

    made.step = step  # type: ignore[method-assign]
    with RunningTask(sink(name, topic, IMPATIENT), kafka.worker()) as task:
        eventually(lambda: values(made) == ["a", "b"])
        kafka.produce(topic, "c")
        eventually(lambda: values(made)[-1] == "c")
        assert not task.stop().failed
    assert values(made) == ["a", "b", "c"]
    assert made.names().count("open") == 1
    assert [call[1] for call in made.calls if call[0] == "put"] == [[0, 1], [0, 1], [0, 1], [2]]


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_starting_and_stopping_tasks_lose_and_repeat_nothing(kafka: Kafka, unique: Names, name: str, strategy: str) -> None:
    topic = kafka.create(unique("sinks"), partitions=4)
    made = script(name)
    config = sink(name, topic, {"consumer.override.partition.assignment.strategy": strategy})
    worker = kafka.worker(offset_flush_interval_ms="60000")
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for _ in range(count):
            kafka.produce(topic, str(sent), partition=sent % 4)
            sent += 1
        eventually(lambda: len(values(made)) >= sent)

    with RunningTask(config, worker, task=0):
        send(12)
        with RunningTask(config, worker, task=1) as second:
            eventually(lambda: _held(made)["partitions"] == 4 and made.names().count("open") >= 2)
            send(12)
            assert second.result is None
        send(12)
    assert Counter(values(made)) == Counter(map(str, range(sent)))
    assert _held(made) == {"partitions": 0, "most": 1}
    assert sum(kafka.committed(f"connect-{name}").values()) == sent


def _held(made: Script) -> dict[str, int]:
    """Return the number of open partitions, and the most tasks that had one partition open at the same time."""
    held: Counter[Any] = Counter()
    most = 0
    with made.lock:
        for call in made.calls:
            if call[0] in ("open", "close"):
                held.update(dict.fromkeys(call[1], 1 if call[0] == "open" else -1))
                most = max(most, *held.values()) if held else most
    return {"partitions": sum(held.values()), "most": most}


MEMBER = """
import json, sys
from confluent_kafka import Consumer
consumer = Consumer(json.loads(sys.argv[1]))
consumer.subscribe([sys.argv[2]])
while not consumer.assignment():
    consumer.poll(0.1)
print("assigned", flush=True)
while True:
    consumer.poll(0.1)
"""


def test_a_task_takes_over_from_a_killed_one(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a", "b")
    made = script(name)
    settings, _ = sink_consumer(spec_of(sink(name, topic), kafka.worker()))
    with subprocess.Popen(
        [sys.executable, "-c", MEMBER, json.dumps(settings), topic], stdout=subprocess.PIPE, text=True
    ) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "assigned\n"
        killed.kill()
    with RunningTask(sink(name, topic), kafka.worker()):
        eventually(lambda: values(made) == ["a", "b"], what="the records")


@pytest.mark.parametrize(
    ("own", "session"),
    [
        ({}, "10000"),
        ({"consumer.override.session.timeout.ms": "45000"}, "45000"),
        ({"consumer.override.heartbeat.interval.ms": "10000"}, "30000"),
        ({"consumer.override.max.poll.interval.ms": "8000"}, "8000"),
        ({"consumer.override.group.protocol": "consumer"}, None),
    ],
)
def test_the_session_timeout_decides_when_a_killed_task_is_replaced(own: Mapping[str, str], session: str | None) -> None:
    settings, _ = sink_consumer(spec_of({**sink("c", "t"), **own}, {"bootstrap.servers": "b:9092"}))
    assert settings.get("session.timeout.ms") == session
    clients.consumer(settings).close()


def test_a_sink_with_offsets_in_its_target_gets_each_record_once_whatever_kafka_has_stored(
    kafka: Kafka, topic: str, name: str
) -> None:
    store: dict[tuple[str, int], int] = {}
    data: list[str] = []

    def write(_task: Any, records: Any) -> None:
        for record in records:
            data.append(record.value)
            store[topic, 0] = record.kafka_offset + 1

    def rewind(task: Any, partitions: Any) -> None:
        task.context.offset({partition: store.get(tuple(partition), 0) for partition in partitions})

    for step, wrong in enumerate([None, 0, 5, 1]):
        kafka.produce(topic, f"{step}a", f"{step}b")
        if wrong is not None:
            commit(kafka, name, topic, wrong)
        script(name, on_put=write, on_open=rewind, pre_commit=lambda _offsets: {})
        with RunningTask(sink(name, topic), kafka.worker(), bounded=True) as task:
            assert not task.join().failed
    assert data == [f"{step}{letter}" for step in range(4) for letter in "ab"]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 1}, "what the task calls not safe was committed"


def transaction(kafka: Kafka, topic: str, values: list[str], *, abort: bool) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{topic}-tx"})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    producer.flush(30)
    if abort:
        producer.abort_transaction(30)
    else:
        producer.commit_transaction(30)


@pytest.mark.parametrize(
    ("isolation", "seen"),
    [
        ("read_committed", ["a", "d", "e"]),
        ("read_uncommitted", ["a", "b", "c", "d", "e"]),
    ],
)
def test_aborted_transactions_and_markers_are_skipped_up_to_the_end(
    kafka: Kafka, topic: str, name: str, isolation: str, seen: list[str]
) -> None:
    transaction(kafka, topic, ["a"], abort=False)
    transaction(kafka, topic, ["b", "c"], abort=True)
    kafka.produce(topic, "d")
    transaction(kafka, topic, ["e"], abort=False)
    config = sink(name, topic, {"consumer.override.isolation.level": isolation})
    made = script(name)
    for _ in range(2):
        with RunningTask(config, kafka.worker(), bounded=True) as task:
            assert not task.join().failed
    assert values(made) == seen
    assert kafka.committed(f"connect-{name}")[topic, 0] >= 7, "the last record's offset is 6"


def test_partitions_added_to_a_running_sinks_topic_are_read_from_their_beginning(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    made = script(name)
    soon = {"consumer.override.metadata.max.age.ms": "500"}
    with RunningTask(sink(name, topic, soon), kafka.worker()):
        eventually(lambda: values(made) == ["a"])
        kafka.admin.create_partitions([NewPartitions(topic, 3)])[topic].result(LIMIT)
        eventually(lambda: len(kafka.admin.list_topics(topic, timeout=10).topics[topic].partitions) == 3)
        kafka.produce(topic, "b", partition=2)
        eventually(lambda: sorted(values(made)) == ["a", "b"])


def test_an_offset_beyond_the_end_is_logged_with_the_number_of_repeated_records(
    kafka: Kafka, topic: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.produce(topic, "a", "b")
    commit(kafka, name, topic, 50)
    made = script(name)
    with RunningTask(sink(name, topic), kafka.worker()):
        eventually(lambda: values(made) == ["a", "b"])
    assert f"Offset 50 of {topic}-0, the next to read, does not exist" in caplog.text
    assert "up to 50 records may be repeated" in caplog.text


def test_records_deleted_before_they_were_read_are_logged_and_counted(
    kafka: Kafka, topic: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.produce(topic, *"abcdefgh")
    commit(kafka, name, topic, 2)
    kafka.admin.delete_records([TopicPartition(topic, 0, 5)])[TopicPartition(topic, 0, 5)].result(LIMIT)
    made = script(name)
    with RunningTask(sink(name, topic), kafka.worker()):
        eventually(lambda: values(made) == ["f", "g", "h"])
    assert f"Offset 2 of {topic}-0" in caplog.text
    assert "3 offsets were deleted before they were read" in caplog.text


def test_an_offset_out_of_range_fails_the_task_with_auto_offset_reset_none(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    commit(kafka, name, topic, 50)
    made = script(name)
    with RunningTask(sink(name, topic, {"consumer.override.auto.offset.reset": "none"}), kafka.worker()) as task:
        assert task.join().failed
    assert values(made) == []
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 50}


def test_a_task_can_pause_one_partition_and_consume_the_others(kafka: Kafka, unique: Names, name: str) -> None:
    topic = kafka.create(unique("sinks"), partitions=2)
    held = (topic, 1)
    go = threading.Event()

    def hold(task: Any, partitions: Any) -> None:
        task.context.pause(*(partition for partition in partitions if tuple(partition) == held))

    first = threading.Event()

    def on_put(task: Any, _records: Any) -> None:
        if not first.is_set():
            hold(task, task.context.assignment)
            first.set()
        if go.is_set():
            go.clear()
            task.context.resume(*(partition for partition in task.context.assignment if tuple(partition) == held))

    kafka.produce(topic, "-1")  # so that the assignment precedes the first put()
    made = script(name, on_put=lambda task, records: on_put(task, records) if task.context.assignment else None)
    with RunningTask(sink(name, topic), kafka.worker()) as task:
        eventually(first.is_set)
        eventually(lambda: values(made) == ["-1"])
        kafka.produce(topic, "held", partition=1)
        for number in range(3):
            kafka.produce(topic, str(number), partition=0)
            eventually(lambda number=number: str(number) in values(made))
        assert values(made) == ["-1", "0", "1", "2"]
        go.set()
        eventually(lambda: values(made) == ["-1", "0", "1", "2", "held"])
        assert not task.stop().failed


def test_a_task_can_request_a_commit_before_the_interval_ends(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    script(name, on_put=lambda task, records: task.context.request_commit() if records else None)
    with RunningTask(sink(name, topic), kafka.worker(offset_flush_interval_ms="600000")):
        eventually(lambda: kafka.committed(f"connect-{name}") == {(topic, 0): 1})

"""Sink tasks on a real broker: committed offsets, rebalances, pauses, retries, failures and bounded runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.runtime.sink import subscription
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.engine import RunningTask
from support.engine_connectors import SINK, file_sink, lines, script, scripted_sink
from support.eventually import LIMIT, eventually
from support.kafka import Kafka

pytestmark = pytest.mark.kafka
Names = Callable[[str], str]


def test_a_restarted_sink_continues_at_its_committed_offset(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    copy = tmp_path / "out"
    for number in range(3):
        kafka.produce(topic, str(number))
        with RunningTask(file_sink(name, topic, copy), kafka.worker(), bounded=True) as task:
            assert task.join().records == 1
    assert lines(copy) == ["0", "1", "2"]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 3}


def test_a_rebalance_between_two_tasks_of_a_sink_loses_nothing(kafka: Kafka, unique: Names, name: str) -> None:
    topic = kafka.create(unique("engine"), partitions=4)
    made = script(name)
    worker = kafka.worker(offset_flush_interval_ms="100")
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for _ in range(count):
            kafka.produce(topic, str(sent), partition=sent % 4)
            sent += 1

    def taken() -> set[str]:
        with made.lock:
            return {record.value for record in made.taken}

    send(20)
    with RunningTask(scripted_sink(name, topic), worker, task=0):
        eventually(lambda: len(taken()) == 20)
        with RunningTask(scripted_sink(name, topic), worker, task=1) as second:
            eventually(lambda: made.names().count("open") >= 3, what="the second task's assignment")
            send(20)
            eventually(lambda: len(taken()) == 40)
            assert second.result is None
        send(20)
        eventually(lambda: len(taken()) == 60)
    assert taken() == {str(number) for number in range(60)}
    assert len(made.taken) == 60, "a clean rebalance repeats nothing"
    assert sum(kafka.committed(f"connect-{name}").values()) == 60
    held: Counter[Any] = Counter()
    for call in made.calls:
        if call[0] in ("open", "close"):
            held.update(dict.fromkeys(call[1], 1 if call[0] == "open" else -1))
            assert set(held.values()) <= {0, 1}, "a partition was with two tasks at once"


def test_topics_regex_finds_topics_that_come_later(
    kafka: Kafka, unique: Names, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "_REFRESH_SECONDS", 0.1)
    base = unique("regex")
    made = script(name)
    config = {"name": name, "connector.class": SINK, "topics.regex": f"{base}-.*"}
    with RunningTask(config, kafka.worker()):
        for number, suffix in enumerate(("a", "b")):
            kafka.produce(kafka.create(f"{base}-{suffix}"), suffix)
            eventually(lambda number=number: len(made.taken) > number)
    assert [record.topic for record in made.taken] == [f"{base}-a", f"{base}-b"]


def test_a_bounded_sink_without_any_topic_ends(kafka: Kafka, unique: Names, name: str) -> None:
    script(name)
    config = {"name": name, "connector.class": SINK, "topics.regex": unique("none")}
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        assert not task.join().failed


def test_a_paused_sink_consumes_nothing_stays_in_its_group_and_resumes(
    kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    copy = tmp_path / "out"
    kafka.produce(topic, "a")
    session = {"consumer_override_session_timeout_ms": "6000"}
    with RunningTask(file_sink(name, topic, copy, **session), kafka.worker()) as task:
        eventually(lambda: lines(copy) == ["a"])
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        assert kafka.committed(f"connect-{name}") == {(topic, 0): 1}
        kafka.produce(topic, "b")
        asked = task.commands._asked
        eventually(lambda: task.commands._asked > asked + 5)
        group = kafka.admin.describe_consumer_groups([f"connect-{name}"])[f"connect-{name}"].result(LIMIT)
        assert [member.client_id for member in group.members] == [f"connector-consumer-{name}-0"]
        assert lines(copy) == ["a"]
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: lines(copy) == ["a", "b"])
    assert task.reports.states == [State.RUNNING, State.PAUSED, State.RUNNING]


def test_partitions_that_a_paused_task_is_assigned_are_read_after_the_resume(kafka: Kafka, unique: Names, name: str) -> None:
    topic = kafka.create(unique("engine"), partitions=8)
    made = script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker(), task=0) as task:
        eventually(lambda: "open" in made.names())
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        with RunningTask(scripted_sink(name, topic), kafka.worker(), task=1):
            eventually(lambda: made.names().count("open") == 3, what="the assignment of half of the partitions")
        eventually(lambda: made.names().count("open") == 4, what="the assignment of all partitions")
        for number in range(8):
            kafka.produce(topic, str(number), partition=number)
        asked = task.commands._asked
        eventually(lambda: task.commands._asked > asked + 5)
        assert made.taken == []
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: len(made.taken) == 8)
    assert {record.value for record in made.taken} == {str(number) for number in range(8)}


def test_a_sink_with_a_retriable_error_gets_the_same_records_again(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a", "b")
    made = script(name, RetriableError("not now"), RetriableError("not yet"))
    with RunningTask(scripted_sink(name, topic), kafka.worker()) as task:
        eventually(lambda: len(made.taken) == 2)
        kafka.produce(topic, "c")
        eventually(lambda: len(made.taken) == 3)
        assert not task.stop().failed
    puts = [call[1] for call in made.calls if call[0] == "put"]
    assert puts[:3] == [puts[0]] * 3
    assert [record.value for record in made.taken] == ["a", "b", "c"]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 3}


def test_a_stop_during_retries_commits_only_accepted_records(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    made = script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker()) as task:
        eventually(lambda: len(made.taken) == 1)
        made.steps += [RetriableError("never")] * 100
        kafka.produce(topic, "b")
        eventually(lambda: len(made.steps) < 99)
        assert not task.stop().failed
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 1}


def test_records_not_accepted_before_a_pause_are_put_again_after_it(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    made = script(name, *[RetriableError("not now")] * 1000)
    with RunningTask(scripted_sink(name, topic), kafka.worker()) as task:
        eventually(lambda: len(made.steps) < 999)
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        made.steps.clear()
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: [record.value for record in made.taken] == ["a"])


def test_an_unreadable_record_fails_the_task_at_its_offset(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "1", "2", "not json", "4")
    made = script(name)
    worker = kafka.worker(value_converter="JsonConverter", value_converter_schemas_enable="false")
    for _ in range(2):
        with RunningTask(scripted_sink(name, topic), worker) as task:
            result = task.join()
        assert result.failed
        assert f"the record at offset 2 of {topic}-0 cannot be converted" in (result.trace or "").splitlines()[0]
        assert task.reports.states == [State.RUNNING, State.FAILED]
        assert kafka.committed(f"connect-{name}") == {(topic, 0): 2}
    assert [record.value for record in made.taken] == [1, 2]


def test_a_failed_sink_commits_the_records_accepted_before(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    made = script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker()) as task:
        eventually(lambda: len(made.taken) == 1)
        made.steps.append(OSError("disk full"))
        kafka.produce(topic, "b")
        result = task.join()
    assert (result.trace or "").startswith("builtins.OSError: disk full")
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 1}
    assert made.names()[-2:] == ["close", "stop"]


def test_an_abandoned_sink_commits_nothing(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    made = script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker()) as task:
        eventually(lambda: len(made.taken) == 1)
        task.stop(TaskCommand.ABANDON)
    assert "pre_commit" not in made.names()
    assert kafka.committed(f"connect-{name}") == {}


def test_a_sink_can_choose_its_start_offset_and_rewind(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, *"abcdef")
    went_back: list[bool] = []

    def start_at_three(task: Any, partitions: Any) -> None:
        task.context.offset(dict.fromkeys(partitions, 3))

    def go_back_once(task: Any, records: Any) -> None:
        if records and not went_back and records[-1].kafka_offset == 5:
            went_back.append(True)
            task.context.offset({(topic, 0): 4})

    made = script(name, on_open=start_at_three, on_put=go_back_once)
    with RunningTask(scripted_sink(name, topic), kafka.worker()):
        eventually(lambda: len(made.taken) >= 5)
    assert [record.value for record in made.taken] == ["d", "e", "f", "e", "f"]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 6}


def test_a_sink_can_rewind_before_its_partitions_are_fetched(kafka: Kafka, unique: Names, name: str) -> None:
    topic = kafka.create(unique("engine"), partitions=4)
    for number in range(4):
        kafka.produce(topic, "a", "b", "c", partition=number)
    before: list[int] = []

    def skip_two(task: Any, records: Any) -> None:
        if not before:
            before.append(len(records))  # of the partition that was fetched first
            task.context.offset({(topic, number): 2 for number in range(4)})

    made = script(name, on_put=skip_two)
    with RunningTask(scripted_sink(name, topic), kafka.worker()) as task:
        eventually(lambda: before and len(made.taken) >= before[0] + 4)
        assert not task.stop().failed
    assert [record.value for record in made.taken[before[0] :]] == ["c"] * 4
    assert kafka.committed(f"connect-{name}") == {(topic, number): 3 for number in range(4)}


def test_a_sink_can_pause_and_resume_a_partition(kafka: Kafka, unique: Names, name: str) -> None:
    topic = kafka.create(unique("engine"), partitions=2)
    made = script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker()):
        eventually(lambda: "open" in made.names())
        told: list[str] = []

        def hold(task: Any, _records: Any) -> None:
            if not told:
                task.context.pause((topic, 0))
                told.append("held")
            elif told == ["held", "let go"]:
                task.context.resume((topic, 0))
                told.append("done")

        made.on_put = hold
        eventually(lambda: told == ["held"])
        kafka.produce(topic, "a", partition=0)
        kafka.produce(topic, "b", partition=1)
        eventually(lambda: [record.value for record in made.taken] == ["b"])
        told.append("let go")
        eventually(lambda: [record.value for record in made.taken] == ["b", "a"])


def test_a_bounded_sink_ends_at_the_end_offsets_of_its_start(kafka: Kafka, unique: Names, name: str) -> None:
    topic = kafka.create(unique("engine"), partitions=3)
    kafka.produce(topic, "a", "b", partition=0)
    kafka.produce(topic, "c", partition=1)
    made = script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker(), bounded=True) as task:
        assert task.join().records == 3
    assert sorted(record.value for record in made.taken) == ["a", "b", "c"]
    with RunningTask(scripted_sink(name, topic), kafka.worker(), bounded=True) as task:
        assert task.join().records == 0


def test_a_bounded_sink_ends_at_a_transaction_marker(kafka: Kafka, topic: str, name: str) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "a")
    producer.commit_transaction(30)
    script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker(), bounded=True) as task:
        assert task.join().records == 1


def test_a_bounded_sink_whose_last_commit_fails_fails(kafka: Kafka, topic: str, name: str) -> None:
    def refuse(_offsets: object) -> Any:
        raise ConnectError("The disk is full.")

    kafka.produce(topic, "a")
    script(name).pre_commit = refuse
    with RunningTask(scripted_sink(name, topic), kafka.worker(), bounded=True) as task:
        assert "The disk is full." in (task.join().trace or "")
    assert kafka.committed(f"connect-{name}") == {}


def test_a_bounded_sink_that_could_not_write_says_so_in_put(kafka: Kafka, topic: str, name: str) -> None:
    """As the table sinks, whose commit to a table fails in ``pre_commit``."""
    made = script(name)
    failures: list[Exception] = [ConnectError("The table is gone.")]

    def next_put(_task: object, records: Sequence[SinkRecord]) -> None:
        if not records and "pre_commit" in made.names() and failures:
            raise failures.pop()

    kafka.produce(topic, "a")
    made.on_put, made.pre_commit = next_put, lambda offsets: {} if failures else offsets
    with RunningTask(scripted_sink(name, topic), kafka.worker(), bounded=True) as task:
        assert "The table is gone." in (task.join().trace or "")
    with RunningTask(scripted_sink(name, topic), kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 1}


def test_a_bounded_sink_reads_again_what_it_rewinds_at_its_end(kafka: Kafka, topic: str, name: str) -> None:
    made = script(name)
    rewinds = [0]

    def rewind(task: Any, records: Sequence[SinkRecord]) -> None:
        if not records and "pre_commit" in made.names() and rewinds:
            task.context.offset({TopicPartition(topic, 0): rewinds.pop()})

    kafka.produce(topic, "a")
    made.on_put, made.pre_commit = rewind, lambda offsets: {} if rewinds else offsets
    with RunningTask(scripted_sink(name, topic), kafka.worker(), bounded=True) as task:
        assert task.join().records == 2
    assert [call[1] for call in made.calls if call[0] == "put"] == [[0], [0]]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 1}


def test_a_bounded_sink_may_hold_records(kafka: Kafka, topic: str, name: str) -> None:
    """As those that wait for a full file: the next run gets them again."""
    kafka.produce(topic, "a")
    script(name).pre_commit = lambda _offsets: {}
    with RunningTask(scripted_sink(name, topic), kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    assert kafka.committed(f"connect-{name}") == {}


def test_a_single_record_reaches_put_at_once(kafka: Kafka, topic: str, name: str) -> None:
    import time

    arrivals: list[float] = []
    made = script(name, on_put=lambda _task, records: records and arrivals.append(time.monotonic()))
    with RunningTask(scripted_sink(name, topic), kafka.worker()):
        eventually(lambda: "open" in made.names())
        latencies = []
        for number in range(10):
            sent = time.monotonic()
            kafka.produce(topic, "x")
            eventually(lambda number=number: len(arrivals) > number)
            latencies.append(arrivals[-1] - sent)
    assert sorted(latencies)[5] < 0.15, latencies

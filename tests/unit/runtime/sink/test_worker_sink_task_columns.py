"""Sink tasks that take columns: which batches they get, and that failures repeat, skip and rewind as in row form."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import Message
from confluent_kafka import TopicPartition as Position

from sluiceway.api import ColumnBatch, NotColumnar, RowFormReason, SinkRecord, TopicPartition
from sluiceway.columns.rows import sink_records
from sluiceway.errors import RetriableError
from sluiceway.kafka import clients
from sluiceway.runtime.sink import sink_task_builder
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from sluiceway.transforms.regex_router import RegexRouter
from support.engine import RunningTask, batch_forms
from support.engine_connectors import ScriptedSinkConnector, ScriptedSinkTask
from support.eventually import eventually

CONFIG = {"name": "snk", "connector.class": f"{__name__}.ColumnSinkConnector", "topics": "t"}
WORKER = {"key.converter": "StringConverter", "value.converter": "StringConverter", "offset.flush.interval.ms": "20"}
A, B = TopicPartition("t", 0), TopicPartition("t", 1)

Taken = tuple[str, int, list[int]]


class ColumnSinkTask(ScriptedSinkTask):
    """Notes what it takes; ``on_columns`` may raise, rewind or pause."""

    takes_columns = True
    taken: list[Taken] = []
    on_columns: Callable[[Any, ColumnBatch], None] | None = None

    def start(self, config: Mapping[str, str]) -> None:
        ColumnSinkTask.current = self  # type: ignore[attr-defined]

    def open(self, partitions: Any) -> None: ...

    def put(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            partition = record.original_kafka_partition
            if not self.taken or self.taken[-1][:2] != ("rows", partition):
                self.taken.append(("rows", partition, []))
            self.taken[-1][2].append(record.original_kafka_offset)

    def put_columns(self, batch: ColumnBatch) -> None:
        if self.on_columns is not None:
            type(self).on_columns(self, batch)
        assert batch.offsets is not None
        self.taken.append(("columns", batch.partition or 0, [int(offset or 0) for offset in batch.offsets.to_pylist()]))

    def pre_commit(self, offsets: Any) -> Any:
        return offsets

    def close(self, partitions: Any) -> None: ...

    def stop(self) -> None: ...


class ColumnSinkConnector(ScriptedSinkConnector):
    task_class = ColumnSinkTask


class Consumer:
    """A consumer of two partitions in memory, which returns all messages that it has at once."""

    made: list[Consumer] = []
    messages: list[Message] = []

    def __init__(self, _config: Any) -> None:
        self.left = list(self.messages)
        self.callbacks: dict[str, Any] = {}
        self.committed_offsets: dict[int, int] = {}
        self.seeks: list[tuple[int, int]] = []
        self.joined = False
        Consumer.made.append(self)

    def list_topics(self, timeout: float) -> SimpleNamespace:
        return SimpleNamespace(topics={"t": None})

    def subscribe(self, _topics: Any, **callbacks: Any) -> None:
        self.callbacks = callbacks

    def consume(self, number: int, _timeout: float) -> list[Message]:
        if not self.joined:
            self.joined = True
            self.callbacks["on_assign"](self, [Position(*A), Position(*B)])
            return []
        read, self.left = self.left[:number], self.left[number:]
        return read

    def poll(self, timeout: float) -> Message | None:
        return next(iter(self.consume(1, timeout)), None)

    def seek(self, position: Position) -> None:
        self.seeks.append((position.partition, position.offset))
        others = [message for message in self.left if message.partition() != position.partition]
        again = [
            each for each in self.messages if (each.partition(), each.offset() or 0) >= (position.partition, position.offset)
        ]
        self.left = [*others, *(each for each in again if each.partition() == position.partition)]

    def commit(self, *, offsets: list[Position], asynchronous: bool) -> list[Position]:
        self.committed_offsets.update({position.partition: position.offset for position in offsets})
        return offsets

    def committed(self, _positions: Any, timeout: float) -> list[Position]:
        return []

    def get_watermark_offsets(self, _position: Any, timeout: float) -> tuple[int, int]:
        return 0, 10_000

    def assign(self, _positions: Any) -> None: ...

    def position(self, positions: list[Position]) -> list[Position]:
        return [Position(each.topic, each.partition, 0) for each in positions]

    def pause(self, _positions: Any) -> None: ...

    def resume(self, _positions: Any) -> None: ...

    def close(self) -> None: ...


def messages(partition: int, first: int, count: int, value: bytes | None = b"v") -> list[Message]:
    return [
        Message(topic="t", partition=partition, offset=offset, value=value, timestamp=(1, 1000))
        for offset in range(first, first + count)
    ]


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    Consumer.made.clear()
    monkeypatch.setattr(clients, "consumer", Consumer)
    monkeypatch.setattr(sink_task_builder, "_FIRST_BATCH_SIZE", 10_000)
    monkeypatch.setattr(ColumnSinkTask, "taken", [])
    monkeypatch.setattr(ColumnSinkTask, "on_columns", None)


def run(monkeypatch: pytest.MonkeyPatch, *batches: list[Message], until: Callable[[], bool], **config: str) -> list[Taken]:
    """Run the task until a condition holds and return what it has taken."""
    monkeypatch.setattr(Consumer, "messages", [message for batch in batches for message in batch])
    overrides = {key.replace("_", "."): value for key, value in config.items()}
    with RunningTask({**CONFIG, **overrides}, WORKER) as task:
        eventually(until)
        assert not task.stop().failed, task.reports.trace
    return ColumnSinkTask.taken


def count() -> int:
    return sum(len(offsets) for _, _, offsets in ColumnSinkTask.taken)


def committed(*offsets: int) -> Callable[[], bool]:
    return lambda: bool(Consumer.made) and Consumer.made[-1].committed_offsets == dict(enumerate(offsets))


def test_large_runs_of_a_partition_are_columns_and_short_ones_are_records_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = run(monkeypatch, messages(0, 5, 300), messages(1, 0, 3), messages(0, 305, 250), until=committed(555, 3))
    assert [(kind, partition, offsets[0], len(offsets)) for kind, partition, offsets in taken] == [
        ("columns", 0, 5, 300),
        ("rows", 1, 0, 3),
        ("columns", 0, 305, 250),
    ]


def test_few_records_do_not_count_as_a_failed_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    consume = Consumer.consume

    def first_few(self: Consumer, number: int, timeout: float) -> list[Message]:
        return consume(self, min(number, 300 if ColumnSinkTask.taken else len(self.left) - 300), timeout)

    monkeypatch.setattr(Consumer, "consume", first_few)
    taken = run(monkeypatch, messages(0, 0, 499), until=lambda: count() == 499)
    assert taken == [("rows", 0, list(range(199))), ("columns", 0, list(range(199, 499)))]


def test_messages_with_headers_and_bad_text_are_records(monkeypatch: pytest.MonkeyPatch) -> None:
    with_header = Message(topic="t", partition=0, offset=300, value=b"v", timestamp=(1, 1), headers=[("h", b"1")])
    taken = run(monkeypatch, messages(0, 0, 300), [with_header], until=lambda: count() == 301)
    assert [kind for kind, _, _ in taken] == ["rows"]
    ColumnSinkTask.taken.clear()
    taken = run(monkeypatch, messages(0, 0, 300), messages(0, 300, 1, b"\xff"), until=lambda: count() == 301)
    assert [kind for kind, _, _ in taken] == ["rows"]


@pytest.mark.parametrize(
    "config",
    [
        {
            "transforms": "one",
            "transforms_one_type": "InsertHeader",
            "transforms_one_header": "h",
            "transforms_one_value_literal": "1",
        },
        {"value_converter": "StringConverter", "value_converter_converter_encoding": "ISO-8859-1"},
    ],
    ids=["transform", "converter"],
)
def test_a_transform_or_converter_without_a_columnar_form_needs_records(
    monkeypatch: pytest.MonkeyPatch, config: dict[str, str]
) -> None:
    taken = run(monkeypatch, messages(0, 0, 300), until=lambda: count() == 300, **config)
    assert taken == [("rows", 0, list(range(300)))]


@pytest.mark.parametrize(("number", "read", "kind"), [(299, False, "rows"), (150, False, "columns"), (150, True, "rows")])
def test_timestamps_of_two_types_need_records_if_they_are_read(
    monkeypatch: pytest.MonkeyPatch, number: int, read: bool, kind: str
) -> None:
    sent = messages(0, 0, 300)
    sent[number] = Message(topic="t", partition=0, offset=number, value=b"v", timestamp=(2, 1000))
    if read:
        monkeypatch.setattr(ColumnSinkTask, "on_columns", lambda _task, batch: batch.timestamps)
    assert run(monkeypatch, sent, until=lambda: count() == 300) == [(kind, 0, list(range(300)))]


def test_columns_have_the_records_that_the_row_form_has(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[SinkRecord] = []
    monkeypatch.setattr(ColumnSinkTask, "on_columns", lambda _task, batch: seen.extend(sink_records(batch)))
    sent = [*messages(1, 7, 200), *messages(1, 207, 1, None), *messages(1, 208, 1, "ü".encode())]
    run(monkeypatch, sent, until=lambda: count() == 202)
    assert [(record.kafka_partition, record.kafka_offset) for record in seen] == [(1, offset) for offset in range(7, 209)]
    assert [record.value for record in seen[-3:]] == ["v", None, "ü"]
    assert {(record.timestamp, record.timestamp_type, record.key, record.original_topic) for record in seen} == {
        (1000, 1, None, "t")
    }


@pytest.mark.parametrize(("schemaless", "kind"), [(True, "columns"), (False, "rows")])
def test_only_tasks_that_take_them_get_columns_without_a_schema(
    monkeypatch: pytest.MonkeyPatch, schemaless: bool, kind: str
) -> None:
    seen: list[SinkRecord] = []
    monkeypatch.setattr(ColumnSinkTask, "takes_schemaless_columns", schemaless)
    monkeypatch.setattr(ColumnSinkTask, "on_columns", lambda _task, batch: seen.extend(sink_records(batch)))
    json = {"value_converter": "JsonConverter", "value_converter_schemas_enable": "false"}
    sent = [*messages(0, 0, 300, b'{"a": [1.50]}'), *messages(0, 300, 1, None), *messages(0, 301, 1, b"-0.0")]
    assert run(monkeypatch, sent, until=lambda: count() == 302, **json) == [(kind, 0, list(range(302)))]
    if schemaless:
        assert [record.value for record in seen[-3:]] == [{"a": [1.5]}, None, 0.0]
        assert {record.value_schema for record in seen} == {None}


def test_not_columnar_gives_the_same_records_to_put(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_task: Any, _batch: ColumnBatch) -> None:
        raise NotColumnar

    monkeypatch.setattr(ColumnSinkTask, "on_columns", refuse)
    assert run(monkeypatch, messages(0, 0, 300), until=lambda: count() == 300) == [("rows", 0, list(range(300)))]


def refuse_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_task: Any, _batch: ColumnBatch) -> None:
        raise NotColumnar("no such column", RowFormReason.SCHEMA, field="a")

    monkeypatch.setattr(ColumnSinkTask, "on_columns", refuse)


def take_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ColumnSinkTask, "takes_columns", False)


def with_header(offset: int) -> Message:
    return Message(topic="t", partition=0, offset=offset, value=b"v", timestamp=(1, 1), headers=[("h", b"1")])


JSON = {"value_converter": "JsonConverter", "value_converter_schemas_enable": "false"}
INSERT_HEADER = {
    "transforms": "h",
    "transforms_h_type": "InsertHeader",
    "transforms_h_header": "h",
    "transforms_h_value.literal": "1",
}
FORMS: dict[str, tuple[list[Message], dict[str, str], Callable[[pytest.MonkeyPatch], None], dict[str, int]]] = {
    "columns": (messages(0, 0, 300), {}, lambda _: None, {"columns": 1}),
    "few records": (messages(0, 0, 199), {}, lambda _: None, {"columns": 0, "few-records": 1}),
    "two parts": ([*messages(0, 0, 300), *messages(1, 0, 3)], {}, lambda _: None, {"columns": 1, "few-records": 1}),
    "headers": ([*messages(0, 0, 300), with_header(300)], {}, lambda _: None, {"columns": 0, "headers": 1}),
    "bad text": ([*messages(0, 0, 300), *messages(0, 300, 1, b"\xff")], {}, lambda _: None, {"columns": 0, "value": 1}),
    "no schema": (messages(0, 0, 300, b"1"), JSON, lambda _: None, {"columns": 0, "task": 1}),
    "transform": (messages(0, 0, 300), INSERT_HEADER, lambda _: None, {"columns": 0, "transform": 1}),
    "task": (messages(0, 0, 300), {}, take_no_columns, {"columns": 0, "task": 1}),
    "refused": (messages(0, 0, 300), {}, refuse_all, {"columns": 0, "schema": 1}),
}


@pytest.mark.parametrize("case", FORMS)
def test_batches_are_counted_by_their_form_and_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, case: str
) -> None:
    caplog.set_level(logging.INFO, "sluiceway.runtime.columns")
    sent, config, prepare, expected = FORMS[case]
    prepare(monkeypatch)
    monkeypatch.setattr(Consumer, "messages", sent)
    with RunningTask({**CONFIG, **{key.replace("_", "."): value for key, value in config.items()}}, WORKER) as task:
        eventually(lambda: count() == len(sent) and batch_forms("snk") == expected)
        assert not task.stop().failed, task.reports.trace
    logged = [message for message in caplog.messages if message.startswith("Connector 'snk', task 0: records of topic t are")]
    fell_back = expected.keys() - {"columns", "few-records"} and case != "task"
    assert len(logged) == (1 if fell_back else 0)
    assert all(f"(reason {reason}" in line for line in logged for reason in expected.keys() - {"columns"})
    if case == "refused":
        assert "(reason schema, field a, key Schema{STRING}, value Schema{STRING}): no such column" in logged[0]


@pytest.mark.parametrize("where", ["transform", "converter", "task"])
def test_an_error_of_a_columnar_form_fails_the_task(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def fail(*_arguments: Any) -> Any:
        raise TypeError("the program is wrong")

    config: dict[str, str] = {}
    if where == "transform":
        config = {
            "transforms": "f",
            "transforms.f.type": "RegexRouter",
            "transforms.f.regex": "x",
            "transforms.f.replacement": "y",
        }
        monkeypatch.setattr(RegexRouter, "_new_name", lambda _self, topic: topic if not topic else fail())
    elif where == "converter":
        monkeypatch.setattr("sluiceway.converters.simple_columns.text_of_utf8", fail)
    else:
        monkeypatch.setattr(ColumnSinkTask, "on_columns", fail)
    monkeypatch.setattr(Consumer, "messages", messages(0, 0, 300))
    with RunningTask({**CONFIG, **config}, WORKER) as task:
        eventually(lambda: task.reports.trace is not None)
        assert "TypeError: the program is wrong" in (task.reports.trace or "")
    assert ColumnSinkTask.taken == []


def test_a_retriable_error_repeats_only_the_batch_that_failed_after_the_time_that_the_task_set(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures = [RetriableError("away"), RetriableError("away")]

    def fail(task: Any, batch: ColumnBatch) -> None:
        if batch.partition == 1 and failures:
            task.context.timeout(1)
            raise failures.pop()

    monkeypatch.setattr(ColumnSinkTask, "on_columns", fail)
    taken = run(monkeypatch, messages(0, 0, 300), messages(1, 0, 300), until=committed(300, 300))
    assert [(kind, partition, len(offsets)) for kind, partition, offsets in taken] == [("columns", 0, 300), ("columns", 1, 300)]
    assert not failures
    waits = [record.args[1] for record in caplog.records if isinstance(record.args, tuple) and "retrying in" in record.msg]
    assert waits == [0.001, 0.001]


def test_a_stop_during_retries_reads_only_what_was_not_put_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: list[int] = []

    def fail(_task: Any, batch: ColumnBatch) -> None:
        if batch.partition == 1:
            failed.append(1)
            raise RetriableError("away")

    monkeypatch.setattr(ColumnSinkTask, "on_columns", fail)
    run(monkeypatch, messages(0, 0, 300), messages(1, 0, 300), messages(0, 300, 300), until=lambda: bool(failed))
    made = Consumer.made[-1]
    assert made.committed_offsets.get(0) == 300
    assert 1 not in made.committed_offsets or made.committed_offsets[1] == 0
    assert (0, 300) in made.seeks
    assert (1, 0) in made.seeks
    assert (0, 0) not in made.seeks


def test_a_partition_that_the_task_rewinds_or_pauses_gets_no_more_of_the_polled_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    rewinds = [A]

    def rewind(task: Any, batch: ColumnBatch) -> None:
        if batch.partition == 0 and rewinds:
            task.context.offset({rewinds.pop(): 100})

    monkeypatch.setattr(ColumnSinkTask, "on_columns", rewind)
    parts = messages(0, 0, 300), messages(1, 0, 300), messages(0, 300, 300)
    taken = run(monkeypatch, *parts, until=committed(600, 300))
    first_again = taken[2]
    assert [(partition, offsets[0], len(offsets)) for _, partition, offsets in taken[:2]] == [(0, 0, 300), (1, 0, 300)]
    assert first_again == ("columns", 0, list(range(100, 600)))

    ColumnSinkTask.taken.clear()
    Consumer.made.clear()

    def pause(task: Any, batch: ColumnBatch) -> None:
        (task.context.resume if batch.partition else task.context.pause)(A)

    monkeypatch.setattr(ColumnSinkTask, "on_columns", pause)
    taken = run(monkeypatch, *parts, until=committed(600, 300))
    assert [(partition, len(offsets)) for _, partition, offsets in taken] == [(0, 300), (1, 300), (0, 300)]
    assert (0, 300) in Consumer.made[-1].seeks


def test_a_filter_counts_the_offsets_of_dropped_records(monkeypatch: pytest.MonkeyPatch) -> None:
    drop = {
        "transforms": "drop",
        "transforms.drop.type": "Filter",
        "transforms.drop.predicate": "none",
        "predicates": "none",
        "predicates.none.type": "RecordIsTombstone",
    }
    tombstones = [*messages(0, 600, 1, None), *messages(1, 0, 300, None)]
    monkeypatch.setattr(Consumer, "messages", [*messages(0, 0, 300, None), *messages(0, 300, 300), *tombstones])
    with RunningTask({**CONFIG, **drop}, WORKER) as task:
        eventually(committed(601, 300))
        assert not task.stop().failed
    assert ColumnSinkTask.taken == [("columns", 0, list(range(300, 600)))]


def test_a_pause_commits_what_was_put(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Consumer, "messages", messages(0, 0, 300))
    with RunningTask(CONFIG, {**WORKER, "offset.flush.interval.ms": "600000"}) as task:
        eventually(lambda: count() == 300)
        task.commands.give(TaskCommand.PAUSE)
        eventually(lambda: State.PAUSED in task.reports.states)
        assert Consumer.made[-1].committed_offsets == {0: 300}
        assert not task.stop().failed


def test_a_pause_during_a_retry_puts_everything_once_after_the_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    away = [True]

    def fail(_task: Any, batch: ColumnBatch) -> None:
        if batch.partition == 1 and away[0]:
            raise RetriableError("away")

    monkeypatch.setattr(ColumnSinkTask, "on_columns", fail)
    monkeypatch.setattr(Consumer, "messages", [*messages(0, 0, 300), *messages(1, 0, 300)])
    with RunningTask(CONFIG, WORKER) as task:
        eventually(lambda: count() == 300)
        task.commands.give(TaskCommand.PAUSE)
        eventually(lambda: (1, 0) in Consumer.made[-1].seeks)
        away[0] = False
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: count() == 600)
        assert not task.stop().failed
    assert [(partition, len(offsets)) for _, partition, offsets in ColumnSinkTask.taken] == [(0, 300), (1, 300)]


def test_tasks_of_small_batches_do_not_load_arrow() -> None:
    modules = (
        "sluiceway.runtime.sink.worker_sink_task, sluiceway.runtime.source.worker_source_task, sluiceway.connectors.file.sink, "
        "sluiceway.connectors.file.source, sluiceway.converters.json_converter, sluiceway.connectors.jdbc.sink, sys"
    )
    code = f"import {modules}; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

"""Source tasks that return columns: what is produced, and which offsets are stored after failures, as in row form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from sluiceway.api import Column, ColumnBatch, EncodedRecords, SourceColumns, SourceRecord
from sluiceway.data import STRING_SCHEMA, Header, Schema
from sluiceway.runtime.task import TaskCommand
from support.engine import RunningTask
from support.engine_connectors import ScriptedSourceConnector, ScriptedSourceTask, script
from support.eventually import eventually
from unit.runtime.fake_clients import FakeProducer

STRINGS = "StringConverter"
WORKER = {"key.converter": STRINGS, "value.converter": STRINGS}
CONFIG = {"name": "src", "connector.class": f"{__name__}.ColumnSourceConnector"}


class ColumnSourceTask(ScriptedSourceTask):
    polled: list[str] = []

    def poll(self) -> Sequence[SourceRecord] | None:
        self.polled.append("poll")
        step: Any = super().poll()
        return step.records() if isinstance(step, SourceColumns) else step

    def poll_columns(self) -> SourceColumns | EncodedRecords | Sequence[SourceRecord] | None:
        self.polled.append("poll_columns")
        return super().poll()


class ColumnSourceConnector(ScriptedSourceConnector):
    task_class = ColumnSourceTask


class AcknowledgedColumnTask(ColumnSourceTask):
    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None: ...


class AcknowledgedColumnConnector(ScriptedSourceConnector):
    task_class = AcknowledgedColumnTask


@pytest.fixture(autouse=True)
def no_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ColumnSourceTask, "polled", [])


def columns(*values: str | None, first: int = 1, schema: Schema | None = STRING_SCHEMA, **more: Any) -> SourceColumns:
    """Return values with the offsets from ``first`` on."""
    batch = ColumnBatch(
        topic="t",
        partition=more.get("partition"),
        key=more.get("key", Column(None, None)),
        value=Column(schema, pa.array(values, pa.utf8())),
        count=len(values),
        timestamps=more.get("timestamps"),
    )
    partition = {"file": "p"}
    records = [SourceRecord(partition, {"position": first + at}, "t", value, schema) for at, value in enumerate(values)]
    offset = {"position": first + len(values) - 1}
    return SourceColumns(batch=batch, source_partition=partition, source_offset=offset, records=lambda: records)


def run(*steps: Any, connector: str = "ColumnSourceConnector", **config: str) -> RunningTask:
    script("src", *steps)
    given = {
        **CONFIG,
        "connector.class": f"{__name__}.{connector}",
        **{key.replace("_", "."): text for key, text in config.items()},
    }
    with RunningTask(given, WORKER, bounded=True) as task:
        task.join()
    return task


def stored(task: RunningTask) -> Any:
    return task.offsets.get("src", [{"file": "p"}])[0]


def sent() -> list[Any]:
    return FakeProducer.made[-1].sent


def test_columns_are_produced_in_order_with_the_offset_of_the_last_record() -> None:
    task = run(columns("a", "b"), None, columns("c", first=3))
    assert sent() == [("t", value, None, {}) for value in (b"a", b"b", b"c")]
    assert stored(task) == {"position": 3}
    assert task.join().records == 3
    assert task.reports.topics == ["t"]
    assert set(ColumnSourceTask.polled) == {"poll_columns"}


def test_columns_have_the_offsets_of_several_source_partitions() -> None:
    batch = replace(columns("a", "b"), more_offsets=[({"file": "q"}, {"position": 7})])
    task = run(batch)
    assert stored(task) == {"position": 2}
    assert task.offsets.get("src", [{"file": "q"}]) == [{"position": 7}]


def test_keys_timestamps_and_the_partition_are_produced() -> None:
    key = Column(STRING_SCHEMA, pa.array(["k", None]))
    run(columns("a", None, key=key, timestamps=pa.array([5, None], pa.int64()), partition=3))
    assert sent() == [("t", b"a", b"k", {"partition": 3, "timestamp": 5}), ("t", None, None, {"partition": 3})]


def test_tasks_that_need_single_records_are_polled_for_them() -> None:
    run(columns("a"), connector="AcknowledgedColumnConnector")
    assert set(ColumnSourceTask.polled) == {"poll"}
    ColumnSourceTask.polled.clear()
    run(columns("a"), errors_tolerance="all")
    assert set(ColumnSourceTask.polled) == {"poll"}
    assert [value for _, value, _, _ in sent()] == [b"a"]


def test_what_has_no_columnar_form_is_sent_in_row_form_and_polled_so_next() -> None:
    task = run(
        columns("a"), columns("b", first=2), value_converter="StringConverter", value_converter_converter_encoding="UTF-16"
    )
    assert [value.decode("utf-16") for _, value, _, _ in sent()] == ["a", "b"]
    assert ColumnSourceTask.polled[:2] == ["poll_columns", "poll"]
    assert stored(task) == {"position": 2}


def test_all_parts_of_a_batch_that_a_predicate_splits_are_sent() -> None:
    route = {
        "transforms": "route",
        "transforms.route.type": "RegexRouter",
        "transforms.route.regex": "t",
        "transforms.route.replacement": "gone",
        "transforms.route.predicate": "null",
        "predicates": "null",
        "predicates.null.type": "RecordIsTombstone",
    }
    task = run(columns("a", None, "b"), **route)
    assert [(topic, value) for topic, value, _, _ in sent()] == [("t", b"a"), ("gone", None), ("t", b"b")]
    assert stored(task) == {"position": 3}


def test_a_record_that_cannot_be_sent_fails_the_task_after_those_before_it() -> None:
    task = run(columns("a", "b", "c" * 2000, "d"))
    assert task.join().failed
    assert "MSG_SIZE_TOO_LARGE" in (task.join().trace or "")
    assert [value for _, value, _, _ in sent()] == [b"a", b"b"]
    assert stored(task) == {"position": 2}


def test_a_full_buffer_is_waited_for() -> None:
    made = script("src", columns("a"))
    with RunningTask(CONFIG, WORKER) as task:
        eventually(lambda: FakeProducer.made and len(sent()) == 1)
        producer = FakeProducer.made[-1]
        producer.room, producer.unresponsive = 2, True
        made.steps.append(columns("b", "c", "d", "e", first=2))
        eventually(lambda: len(producer.waiting) == 2)
        producer.unresponsive = False
        eventually(lambda: len(sent()) == 5)
        assert not task.stop().failed
    assert [value for _, value, _, _ in sent()] == [b"a", b"b", b"c", b"d", b"e"]
    assert stored(task) == {"position": 5}


@pytest.mark.parametrize("drops", [False, True])
def test_a_stop_while_the_buffer_is_full_stores_the_offset_of_the_last_record_produced(drops: bool) -> None:
    script("src", columns(None, "a", None, "b", "c", "d"))
    drop = {
        "transforms": "drop",
        "transforms.drop.type": "Filter",
        "transforms.drop.predicate": "none",
        "predicates": "none",
        "predicates.none.type": "RecordIsTombstone",
    }

    class Small(FakeProducer):
        def __init__(self, config: dict[str, Any]) -> None:
            super().__init__(config)
            self.room, self.unresponsive = 2 if drops else 4, True

        def flush(self, timeout: float = -1) -> int:
            self.unresponsive = False
            return super().flush(timeout)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sluiceway.runtime.source.record_sender.producer", Small)
        with RunningTask({**CONFIG, **(drop if drops else {})}, WORKER) as task:
            eventually(lambda: FakeProducer.made and len(FakeProducer.made[-1].waiting) == (2 if drops else 4))
            task.commands.give(TaskCommand.STOP)
            assert not task.join().failed
    assert [value for _, value, _, _ in sent() if value] == [b"a", b"b"]
    assert stored(task) == {"position": 4}


def encoded(*values: bytes | None, first: int, **more: Any) -> EncodedRecords:
    """Return values with the keys ``k`` and the offsets from ``first`` on."""
    offset = {"position": first + len(values) - 1}
    return EncodedRecords(
        topic="t",
        keys=[b"k"] * len(values),
        values=values,
        headers=more.get("headers", ()),
        source_partition={"file": "p"},
        source_offset=offset,
    )


def test_encoded_records_are_produced_as_they_are_with_their_headers() -> None:
    task = run(encoded(b"a", None, first=1), encoded(b"b", first=3, headers=(Header("h", "v", STRING_SCHEMA),)))
    assert sent() == [("t", b"a", b"k", {}), ("t", None, b"k", {}), ("t", b"b", b"k", {"headers": [("h", b"v")]})]
    assert stored(task) == {"position": 3}
    assert task.join().records == 3


def test_a_batch_of_encoded_records_of_which_one_cannot_be_sent_leaves_the_offset_before_it() -> None:
    task = run(encoded(b"a", first=1), encoded(b"b", b"c" * 2000, b"d", first=2))
    assert task.join().failed
    assert "MSG_SIZE_TOO_LARGE" in (task.join().trace or "")
    assert [value for _, value, _, _ in sent()] == [b"a", b"b"]
    assert stored(task) == {"position": 1}


def test_encoded_records_wait_for_space_in_the_buffer() -> None:
    made = script("src", encoded(b"a", first=1))
    with RunningTask(CONFIG, WORKER) as task:
        eventually(lambda: FakeProducer.made and len(sent()) == 1)
        producer = FakeProducer.made[-1]
        producer.room, producer.unresponsive = 2, True
        made.steps.append(encoded(b"b", b"c", b"d", b"e", first=2))
        eventually(lambda: len(producer.waiting) == 2)
        producer.unresponsive = False
        eventually(lambda: len(sent()) == 5)
        assert not task.stop().failed
    assert [value for _, value, _, _ in sent()] == [b"a", b"b", b"c", b"d", b"e"]
    assert stored(task) == {"position": 5}

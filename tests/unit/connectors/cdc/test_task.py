"""The task of each database, with a source that a test makes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pytest

from sluiceway.api import Offset, SourceRecord
from sluiceway.connectors.cdc.catch_up import CatchUp
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.task import CdcTask, LogSource, Records
from sluiceway.errors import RetriableError
from sluiceway.testing import MemoryOffsets, MemorySourceContext
from unit.connectors.cdc.test_option_checks import POSTGRESQL


class _Source(LogSource):
    """Gives what a test puts into ``arrived``; ``asked`` has the calls that a database would see."""

    connected = True
    at_end = False
    failure: Exception | None = None

    def __init__(self, config: Mapping[str, str]) -> None:
        common = postgres_config(config).common
        super().__init__(common, Emitter(common, "postgresql"))
        self.arrived: list[list[Records]] = []
        self.asked: list[str] = []
        self.reached: Offset = {"lsn": 0}
        self.stored: list[Offset] = []

    def take(self) -> Sequence[Records]:
        taken = self.arrived.pop(0) if self.arrived else []
        for part in taken:
            self.reached = (part[-1].source_offset if isinstance(part, list) and part else None) or self.reached
        return taken

    def offset(self) -> Offset | None:
        return self.reached

    def idle_offset(self, newest: Offset, *, ended: bool) -> Offset | None:
        return {**newest, "ended": ended}

    def caught_up(self) -> bool:
        return self.at_end

    def committed(self, offset: Offset) -> None:
        self.stored.append(offset)

    def execute(self, statement: str) -> None:
        self.asked.append(statement)
        raise ValueError("no such table")

    def tables(self, concerns: Callable[[str], bool]) -> Iterable[TableId]:
        self.asked.append("tables")
        return [TableId("public", "t")]

    def watch_log(self) -> None:
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure

    def metrics(self) -> Mapping[str, float]:
        return {"log-behind-bytes": 5.0}

    def close(self) -> None:
        self.asked.append("close")


class _Task(CdcTask):
    def open(self, config: Mapping[str, str], catch_up: CatchUp) -> LogSource:
        self.source = _Source(config)
        return self.source


def _record(number: int) -> SourceRecord:
    return SourceRecord({}, {"lsn": number}, "t", number)


def _started(stored: Mapping[str, Any] | None = None, /, **more: str) -> _Task:
    task = _Task()
    config = {**POSTGRESQL, "topic.prefix": "c", "poll.interval.ms": "1", **{key.replace("_", "."): more[key] for key in more}}
    offsets = MemoryOffsets([({"server": "c"}, stored)] if stored else ())
    task.initialize(MemorySourceContext(offsets=offsets))
    task.start(config)
    return task


def _values(records: Sequence[SourceRecord] | None) -> list[Any]:
    return [record.value for record in records or ()]


def test_parts_are_returned_in_order_and_the_newest_offset_is_committed() -> None:
    task = _started({"lsn": 1})
    task.commit()
    task.source.arrived = [[[_record(2), _record(3)], [], [_record(4)]]]
    assert _values(task.poll()) == [2, 3]
    task.commit()
    assert _values(task.poll()) == [4]
    task.commit()
    assert task.source.stored == [{"lsn": 1}, {"lsn": 3}, {"lsn": 4}]
    assert task.poll() is None


def test_no_offset_is_stored_past_records_that_wait() -> None:
    task = _started()
    task.source.arrived = [[[_record(2)], [_record(3)]]]
    task.poll()
    assert task.idle_offsets() == ()
    task.poll()
    assert task.idle_offsets() == [({"server": "c"}, {"lsn": 3, "ended": False})]
    task.commit()
    assert task.source.stored == [{"lsn": 3, "ended": False}]


def test_an_error_loses_nothing_that_was_taken() -> None:
    task = _started()
    task.source.arrived, task.source.failure = [[[_record(2)]]], RetriableError("away")
    with pytest.raises(RetriableError, match="away"):
        task.poll()
    assert _values(task.poll()) == [2]


def test_a_heartbeat_comes_behind_the_records_even_if_its_statement_fails() -> None:
    task = _started(heartbeat_interval_ms="1", heartbeat_action_query="insert into beats values (1)")
    found: list[SourceRecord] = []
    numbers = itertools.count(1)
    while not any(each.topic != "t" for each in found):
        task.source.arrived = [[[_record(next(numbers))]]]
        found += task.poll() or ()
    assert found[-1].source_offset == found[-2].source_offset
    assert "insert into beats values (1)" in task.source.asked


def test_a_bounded_run_ends_behind_what_waits() -> None:
    task = _started(airflow_mode="micro-batch")
    task.source.arrived, task.source.at_end = [[[_record(2)], [_record(3)]]], False
    assert _values(task.poll()) == [2]
    task.source.at_end = True
    assert _values(task.poll()) == [3]
    assert task.poll() is None
    assert task.idle_offsets() == [({"server": "c"}, {"lsn": 3, "ended": True})]


def test_a_task_that_has_not_started_stops_and_has_no_metrics() -> None:
    task = _Task()
    assert task.metrics() == {}
    task.stop()
    started = _started()
    started.stop()
    assert started.source.asked[-1] == "close"
    assert started.source_lag().bytes == 5

"""Tests of the times of a connector's start."""

from __future__ import annotations

import logging
import time

import pytest

from sluiceway.errors import DataError
from sluiceway.storage.factory import Stores
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TaskId
from sluiceway.worker.start_times import StartTimes, decode_times, line, steps
from support.eventually import eventually


def test_steps_are_ordered_by_time_with_the_seconds_between_them() -> None:
    times = {"b": 11.5, "a": 10.0, "c": 12.0}
    assert steps(times) == [("a", 0.0, 0.0), ("b", 1.5, 1.5), ("c", 0.5, 2.0)]
    assert line(times) == "Start, in seconds: a 0.0, b 1.5, c 2.0"
    assert steps({}) == []


@pytest.mark.parametrize("value", [b"", b"[]", b'{"a": "x"}'])
def test_unreadable_times_are_a_data_error(value: bytes) -> None:
    with pytest.raises(DataError):
        decode_times(value)


def test_a_start_is_reported_with_its_first_record(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stores = Stores(MemoryConfigBackingStore(), MemoryStatusBackingStore(), None)  # type: ignore[arg-type]
    stores.config.put_connector("c", {})
    times = StartTimes("c", {"Airflow task started": time.time() - 300})
    times.watch(stores)
    at = int(time.time() * 1000)
    stores.status.put_connector("c", Status(State.RUNNING, "w", 1, timestamp=at + 100))
    stores.status.put_task(TaskId("c", 0), Status(State.RUNNING, "w", 1, timestamp=at + 100))
    stores.status.put_topic("c", 0, "t")
    reached = (
        "Airflow task started 0.0, config or target state written 30",
        "connector RUNNING 30",
        "tasks RUNNING 30",
        "first record 30",
    )
    eventually(lambda: "Start, in seconds" in caplog.text, what="the line")
    assert [step for step in reached if step not in caplog.text] == [], caplog.text
    times.close()


def test_statuses_and_changes_from_before_are_not_of_this_start(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stores = Stores(MemoryConfigBackingStore(), MemoryStatusBackingStore(), None)  # type: ignore[arg-type]
    stores.config.put_connector("c", {})
    stores.status.put_task(TaskId("c", 0), Status(State.RUNNING, "old", 1, timestamp=50_000))
    stores.status.put_topic("c", 0, "t")
    at = time.time() + 1000
    times = StartTimes("c", {}, lambda: at)
    times.watch(stores)
    stores.status.put_task(TaskId("c", 0), Status(State.RUNNING, "new", 2, timestamp=int(at * 1000) + 500))
    eventually(lambda: "Start, in seconds: tasks RUNNING 0.0" in caplog.text, what="the line")
    times.close()

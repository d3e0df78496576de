"""Tests of a task's access to the internal topics, on in-memory stores."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.driver import internal_topics
from sluiceway.provider.driver.internal_topics import KafkaInternalTopics, write_trace, write_unassigned
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import RestartRequest, State, Status, TargetState, TaskId
from support.eventually import NEVER


def _status(state: State) -> Status:
    return Status(state, "host:1", 7, trace="why" if state is State.FAILED else None, version="1")


def test_running_tasks_become_unassigned_and_failed_ones_stay_failed() -> None:
    store = MemoryStatusBackingStore()
    store.put_connector("c", _status(State.RUNNING))
    for number, state in enumerate((State.RUNNING, State.FAILED, State.RESTARTING, State.PAUSED)):
        store.put_task(TaskId("c", number), _status(state))
    write_unassigned(store, "c")
    connector = store.connector("c")
    assert connector == Status(State.UNASSIGNED, "host:1", 7)
    assert [store.tasks("c")[number].state for number in range(4)] == [
        State.UNASSIGNED,
        State.FAILED,
        State.UNASSIGNED,
        State.PAUSED,
    ]
    assert store.tasks("c")[1].trace == "why"


def test_a_stopped_connector_and_an_unknown_one_are_unchanged() -> None:
    store = MemoryStatusBackingStore()
    store.put_connector("c", _status(State.STOPPED))
    write_unassigned(store, "c")
    write_unassigned(store, "unknown")
    assert store.connector("c") == _status(State.STOPPED)
    assert store.connector("unknown") is None


def test_a_trace_is_shown_unless_a_driver_has_reported_another_state() -> None:
    store = MemoryStatusBackingStore()
    write_trace(store, "new", "why", "here:1")
    assert store.connector("new") == Status(State.UNASSIGNED, "here:1", 0, trace="why")
    write_trace(store, "new", "again", "here:1")
    assert store.connector("new") == Status(State.UNASSIGNED, "here:1", 0, trace="again")
    store.put_connector("failed", _status(State.FAILED))
    write_trace(store, "failed", "again", "here:1")
    assert store.connector("failed") == _status(State.FAILED)


class _Topic(MemoryConfigBackingStore):
    """A config store that may be opened again after stop()."""

    def stop(self) -> None: ...


@pytest.mark.parametrize(
    ("target", "still_wanted", "asked"),
    [
        (TargetState.STARTED, True, TargetState.PAUSED),
        (TargetState.STARTED, False, TargetState.STARTED),
        (TargetState.STOPPED, True, TargetState.STOPPED),
    ],
)
def test_a_pause_is_written_only_if_still_wanted_when_kafka_has_answered(
    monkeypatch: pytest.MonkeyPatch, target: TargetState, still_wanted: bool, asked: TargetState
) -> None:
    topic = _Topic()
    topic.put_connector("c", {"topic": "t"}, target)
    monkeypatch.setattr(internal_topics, "KafkaConfigBackingStore", lambda worker, *, brief: topic)
    monkeypatch.setenv("AIRFLOW_CTX_DAG_ID", "dag")
    monkeypatch.setenv("AIRFLOW_CTX_TASK_ID", "run")
    done = KafkaInternalTopics(WorkerConfig.of({})).ensure_paused("c", lambda: still_wanted)
    entry = topic.snapshot().entry("c")
    assert entry is not None
    assert entry.target_state is asked
    assert done is (asked is not target)
    assert [(each.origin.client, each.origin.note) for each in topic.history("c")] == [("Airflow", "task dag.run")] * done


@pytest.mark.parametrize("change", ["config", "target-state", "restart", "delete"])
def test_a_wait_ends_when_the_connector_changes(monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    topic = _Topic()
    topic.put_connector("c", {"topic": "t"})
    topic.put_connector("other", {"topic": "t"})
    monkeypatch.setattr(internal_topics, "KafkaConfigBackingStore", lambda worker, *, brief: topic)
    changes: dict[str, Callable[[], None]] = {
        "config": lambda: topic.put_connector("c", {"topic": "u"}),
        "target-state": lambda: topic.put_target_state("c", TargetState.PAUSED),
        "restart": lambda: topic.put_restart_request(RestartRequest("c")),
        "delete": lambda: topic.remove_connector("c"),
    }
    timer = threading.Timer(0.1, changes[change])
    timer.start()
    KafkaInternalTopics(WorkerConfig.of({})).await_change("c", NEVER, lambda: False)
    timer.join()


def test_a_wait_ignores_other_connectors_and_the_drivers_own_records(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = _Topic()
    topic.put_connector("c", {"topic": "t"})
    monkeypatch.setattr(internal_topics, "KafkaConfigBackingStore", lambda worker, *, brief: topic)
    timers = [
        threading.Timer(0.05, topic.put_connector, ("other", {})),
        threading.Timer(0.05, topic.put_task_configs, ("c", [{}])),
    ]
    for timer in timers:
        timer.start()
    began = time.monotonic()
    KafkaInternalTopics(WorkerConfig.of({})).await_change("c", 0.3, lambda: False)
    assert time.monotonic() - began >= 0.3
    for timer in timers:
        timer.join()


def test_an_interrupted_wait_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(internal_topics, "KafkaConfigBackingStore", lambda worker, *, brief: _Topic())
    began = time.monotonic()
    KafkaInternalTopics(WorkerConfig.of({})).await_change("c", NEVER, lambda: time.monotonic() - began > 0.1)

"""What a task says of a driver that died."""

from __future__ import annotations

import pytest
from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.link import KafkaLink, write_dead
from sluiceway.storage.memory import MemoryConfigStore, MemoryStatusStore
from sluiceway.storage.model import State, Status, TargetState, TaskId


def _status(state: State) -> Status:
    return Status(state, "host:1", 7, trace="why" if state is State.FAILED else None, version="1")


def test_a_dead_drivers_running_tasks_are_unassigned_and_failed_ones_stay_failed() -> None:
    store = MemoryStatusStore()
    store.put_connector("c", _status(State.RUNNING))
    for number, state in enumerate((State.RUNNING, State.FAILED, State.RESTARTING, State.PAUSED)):
        store.put_task(TaskId("c", number), _status(state))
    write_dead(store, "c")
    connector = store.connector("c")
    assert connector == Status(State.UNASSIGNED, "host:1", 7)
    assert [store.tasks("c")[number].state for number in range(4)] == [
        State.UNASSIGNED, State.FAILED, State.UNASSIGNED, State.PAUSED,
    ]  # fmt: skip
    assert store.tasks("c")[1].trace == "why"


def test_a_connector_that_said_good_bye_is_left_as_it_said() -> None:
    store = MemoryStatusStore()
    store.put_connector("c", _status(State.STOPPED))
    write_dead(store, "c")
    write_dead(store, "never heard of")
    assert store.connector("c") == _status(State.STOPPED)
    assert store.connector("never heard of") is None


class _Topic(MemoryConfigStore):
    """A config topic that many may open; reaching it takes a while."""

    def stop(self) -> None: ...


@pytest.mark.parametrize(
    ("target", "still_wanted", "asked"),
    [
        (TargetState.STARTED, True, TargetState.PAUSED),
        (TargetState.STARTED, False, TargetState.STARTED),
        (TargetState.STOPPED, True, TargetState.STOPPED),
    ],
)
def test_a_pause_is_asked_for_only_if_it_is_still_wanted_once_kafka_is_reached(
    monkeypatch: pytest.MonkeyPatch, target: TargetState, still_wanted: bool, asked: TargetState
) -> None:
    topic = _Topic()
    topic.put_connector("c", {"topic": "t"}, target)
    monkeypatch.setattr("sluiceway.storage.config_store.KafkaConfigStore", lambda worker: topic)
    done = KafkaLink(WorkerConfig.of({})).ensure_paused("c", lambda: still_wanted)
    entry = topic.snapshot().entry("c")
    assert entry is not None
    assert entry.target_state is asked
    assert done is (asked is not target)

"""What a task says of a driver that died."""

from __future__ import annotations

from sluiceway.provider.link import write_dead
from sluiceway.storage.memory import MemoryStatusStore
from sluiceway.storage.model import State, Status, TaskId


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

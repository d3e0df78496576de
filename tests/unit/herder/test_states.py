"""The states reported for the records on the status topic."""

from __future__ import annotations

import pytest

from sluiceway.herder.states import Clock, driver_is_alive, observe, unchanged_between
from sluiceway.storage.model import State, Status, TargetState

NOW, TIMEOUT = 1_700_000_000_000, 15_000
CLOCK = Clock(NOW, TIMEOUT)
FRESH, OLD = NOW - TIMEOUT, NOW - TIMEOUT - 1


def status(state: State, timestamp: int = FRESH, trace: str | None = None) -> Status:
    return Status(state, "host:1", 7, trace=trace, version="1.2", timestamp=timestamp)


def observed(target: TargetState, connector: Status, *tasks: Status) -> tuple[State, list[State]]:
    seen, seen_tasks = observe(target, connector, dict(enumerate(tasks)), CLOCK)
    return seen.state, [task.state for task in seen_tasks.values()]


@pytest.mark.parametrize("state", [State.RUNNING, State.RESTARTING])
def test_a_connector_whose_heartbeat_is_older_than_the_timeout_is_unassigned_with_its_tasks(state: State) -> None:
    assert observed(TargetState.STARTED, status(state, FRESH), status(state)) == (state, [state])
    assert observed(TargetState.STARTED, status(state, OLD), status(state)) == (State.UNASSIGNED, [State.UNASSIGNED])


def test_a_running_task_without_heartbeats_is_unassigned_although_its_connector_is_alive() -> None:
    _, tasks = observe(
        TargetState.STARTED, status(State.RUNNING), {0: status(State.RUNNING, OLD), 1: status(State.RUNNING)}, CLOCK
    )
    assert [task.state for task in tasks.values()] == [State.UNASSIGNED, State.RUNNING]
    assert "no heartbeat since 2023-11-14T22:13:04+00:00" in (tasks[0].trace or "")


@pytest.mark.parametrize("state", [State.PAUSED, State.FAILED, State.RESTARTING, State.UNASSIGNED])
def test_other_states_of_a_task_may_be_old_while_the_connectors_heartbeat_is_fresh(state: State) -> None:
    assert observed(TargetState.STARTED, status(State.RUNNING), status(state, OLD))[1] == [state]


def test_a_running_task_of_an_earlier_driver_is_unassigned() -> None:
    def told(worker: str, generation: int) -> State:
        task = Status(State.RUNNING, worker, generation, timestamp=FRESH)
        return observe(TargetState.STARTED, status(State.RUNNING), {0: task}, CLOCK)[1][0].state

    assert told("dead:9", 6) is State.UNASSIGNED
    assert told("host:1", 6) is State.RUNNING, "the same driver has raised its generation for another task"
    assert told("host:1", 7) is State.RUNNING


def test_a_task_that_was_never_in_kafka_needs_no_heartbeats() -> None:
    assert observed(TargetState.STARTED, status(State.RUNNING), status(State.RUNNING, 0))[1] == [State.RUNNING]


def test_an_unassigned_connector_shows_neither_trace_nor_version_but_its_last_worker() -> None:
    seen, _ = observe(TargetState.STARTED, status(State.RUNNING, OLD, trace="x"), {}, CLOCK)
    assert (seen.trace, seen.version, seen.worker_id) == (None, None, "host:1")


@pytest.mark.parametrize(
    ("target", "state"),
    [(TargetState.PAUSED, State.PAUSED), (TargetState.STOPPED, State.STOPPED), (TargetState.PAUSED, State.FAILED)],
)
def test_paused_stopped_and_failed_never_go_stale(target: TargetState, state: State) -> None:
    assert observed(target, status(state, OLD))[0] is state


def test_a_failed_task_stays_failed_with_its_trace_when_its_driver_dies() -> None:
    failed = status(State.FAILED, OLD, trace="boom")
    _, tasks = observe(TargetState.STARTED, status(State.RUNNING, OLD), {0: failed, 1: status(State.RUNNING)}, CLOCK)
    assert tasks[0] == failed
    assert tasks[1].state is State.UNASSIGNED


def test_tasks_of_a_dead_driver_are_not_running_even_if_the_connector_has_failed() -> None:
    assert observed(TargetState.STARTED, status(State.FAILED, OLD), status(State.RUNNING)) == (State.FAILED, [State.UNASSIGNED])


@pytest.mark.parametrize("recorded", [State.UNASSIGNED, State.RUNNING, State.RESTARTING, State.PAUSED])
def test_a_connector_without_a_driver_is_in_its_target_state(recorded: State) -> None:
    assert observed(TargetState.PAUSED, status(recorded, OLD), status(State.RUNNING)) == (State.PAUSED, [State.PAUSED])
    assert observed(TargetState.STOPPED, status(recorded, OLD), status(State.RUNNING)) == (State.STOPPED, [])


def test_a_driver_that_has_not_paused_yet_is_running() -> None:
    assert observed(TargetState.PAUSED, status(State.RUNNING), status(State.RUNNING)) == (State.RUNNING, [State.RUNNING])


@pytest.mark.parametrize("recorded", [State.PAUSED, State.STOPPED])
def test_a_resumed_connector_keeps_its_state_until_its_driver_had_time_to_start(recorded: State) -> None:
    assert observed(TargetState.STARTED, status(recorded, FRESH))[0] is recorded
    assert observed(TargetState.STARTED, status(recorded, OLD))[0] is State.UNASSIGNED


def test_a_status_that_was_never_in_kafka_is_not_stale() -> None:
    assert observed(TargetState.STARTED, status(State.RUNNING, 0))[0] is State.RUNNING


@pytest.mark.parametrize("state", list(State))
def test_a_driver_is_alive_if_a_periodically_written_state_is_fresh(state: State) -> None:
    assert driver_is_alive(status(state, FRESH), CLOCK) is (state in (State.RUNNING, State.RESTARTING, State.FAILED))
    assert not driver_is_alive(status(state, OLD), CLOCK)
    assert not driver_is_alive(None, CLOCK)


def test_reports_change_when_a_record_becomes_stale() -> None:
    records = [status(State.RUNNING, NOW - 1), status(State.RUNNING, OLD), status(State.PAUSED, 0)]
    assert unchanged_between(records, CLOCK) == (NOW - 1, NOW - 1 + TIMEOUT)
    assert unchanged_between([], CLOCK) == (float("-inf"), float("inf"))

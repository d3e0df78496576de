"""The restart plans of KIP-745."""

from __future__ import annotations

import itertools

import pytest

from sluiceway.herder.restart_plan import RestartPlan, plan_restart
from sluiceway.storage.model import RestartRequest, State, Status

R, F = State.RUNNING, State.FAILED


@pytest.mark.parametrize(
    ("only_failed", "include_tasks", "connector", "tasks", "expected"),
    [
        (False, False, R, [R, F], RestartPlan(True)),
        (False, False, F, [F, F], RestartPlan(True)),
        (False, True, R, [R, F], RestartPlan(True, (0, 1))),
        (False, True, F, [R, R], RestartPlan(True, (0, 1))),
        (True, False, R, [R, F], RestartPlan(False)),
        (True, False, F, [R, F], RestartPlan(True)),
        (True, True, R, [R, R], RestartPlan(False)),
        (True, True, R, [F, R, F], RestartPlan(False, (0, 2))),
        (True, True, F, [R, R], RestartPlan(True)),
        (True, True, F, [R, F], RestartPlan(True, (1,))),
    ],
)
def test_the_plan_follows_only_failed_and_include_tasks(
    only_failed: bool, include_tasks: bool, connector: State, tasks: list[State], expected: RestartPlan
) -> None:
    request = RestartRequest("c", only_failed, include_tasks)
    assert plan_restart(request, connector, dict(enumerate(tasks))) == expected


@pytest.mark.parametrize("state", [state for state in State if state is not F])
def test_only_failed_selects_only_the_state_failed(state: State) -> None:
    assert plan_restart(RestartRequest("c", True, True), state, {0: state}) == RestartPlan(False)


@pytest.mark.parametrize(("only_failed", "include_tasks"), list(itertools.product((True, False), repeat=2)))
def test_a_request_for_one_task_restarts_only_that_task_in_any_state(only_failed: bool, include_tasks: bool) -> None:
    request = RestartRequest("c", only_failed, include_tasks, task=1)
    assert plan_restart(request, F, {0: F, 1: R, 2: F}) == RestartPlan(False, (1,))
    assert plan_restart(request, F, {0: F}) == RestartPlan(False)


def test_restarted_parts_are_shown_as_restarting_with_their_traces() -> None:
    failed = Status(F, "w", 1, trace="why", version="1")
    running = Status(R, "w", 1, version="1")
    connector, tasks = RestartPlan(False, (1,)).shown(running, {0: running, 1: failed})
    assert connector == running
    assert tasks == {0: running, 1: Status(State.RESTARTING, "w", 1, trace="why", version="1")}
    assert RestartPlan(True).shown(running, {0: running})[0].state is State.RESTARTING

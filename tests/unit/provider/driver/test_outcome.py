"""Tests of the next action of a connector's task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sluiceway.exit_codes import APPLICATION_ENDED, FENCED
from sluiceway.provider.driver.outcome import NextAction, after_end, before_start
from sluiceway.storage.model import ConnectorEntry, TargetState

RUNS = ConnectorEntry("c", {}, TargetState.STARTED)
PAUSED = ConnectorEntry("c", {}, TargetState.PAUSED)
STOPPED = ConnectorEntry("c", {}, TargetState.STOPPED)
MOVING = ConnectorEntry("c", {"sluiceway.migrate.state": "RUNNING"}, TargetState.STOPPED)


@pytest.mark.parametrize(
    ("dag_paused", "entry", "verdict"),
    [
        (False, RUNS, NextAction.START),
        (True, RUNS, NextAction.RESCHEDULE),
        (False, PAUSED, NextAction.RESCHEDULE),
        (False, STOPPED, NextAction.RESCHEDULE),
        (False, MOVING, NextAction.START),
        (True, MOVING, NextAction.RESCHEDULE),
        (False, None, NextAction.RESCHEDULE),
    ],
)
def test_a_driver_starts_only_if_the_target_state_is_started(
    dag_paused: bool, entry: ConnectorEntry | None, verdict: NextAction
) -> None:
    assert before_start(dag_paused=dag_paused, entry=entry) is verdict


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(
    ("exit_code", "dag_paused", "entry", "verdict"),
    [
        (0, True, RUNS, NextAction.RESCHEDULE),
        (0, False, PAUSED, NextAction.RESCHEDULE),
        (0, False, STOPPED, NextAction.RESCHEDULE),
        (0, False, None, NextAction.SUCCEED),
        (0, True, None, NextAction.SUCCEED),
        (APPLICATION_ENDED, False, PAUSED, NextAction.RESCHEDULE),
        (1, True, RUNS, NextAction.RESCHEDULE),
        (137, False, PAUSED, NextAction.RESCHEDULE),
        (1, False, None, NextAction.SUCCEED),
        (FENCED, False, RUNS, NextAction.FAIL_FENCED),
        (FENCED, True, PAUSED, NextAction.FAIL_FENCED),
        (FENCED, False, None, NextAction.FAIL_FENCED),
    ],
)
def test_the_action_after_the_end_depends_on_exit_code_and_target_state(
    exit_code: int, dag_paused: bool, entry: ConnectorEntry | None, verdict: NextAction, bounded: bool
) -> None:
    assert after_end(exit_code=exit_code, bounded=bounded, dag_paused=dag_paused, entry=entry) is verdict


SHARED = ConnectorEntry("c", {}, TargetState.STARTED, application="small")


@pytest.mark.parametrize(
    ("exit_code", "entry", "verdict"),
    [
        (0, SHARED, NextAction.SHARE),
        (FENCED, SHARED, NextAction.SHARE),
        (1, SHARED, NextAction.RESTART),
        (0, replace(SHARED, target_state=TargetState.PAUSED), NextAction.RESCHEDULE),
    ],
)
def test_a_connector_that_moved_into_a_shared_application_is_left_to_it(
    exit_code: int, entry: ConnectorEntry, verdict: NextAction
) -> None:
    assert after_end(exit_code=exit_code, bounded=False, dag_paused=False, entry=entry) is verdict
    assert after_end(exit_code=exit_code, bounded=True, dag_paused=False, entry=entry) is not NextAction.SHARE


@pytest.mark.parametrize(("exit_code", "batch"), [(0, NextAction.SUCCEED), (1, NextAction.FAIL_DIED), (-9, NextAction.FAIL_DIED)])
def test_the_same_task_starts_a_long_running_driver_again(exit_code: int, batch: NextAction) -> None:
    assert after_end(exit_code=exit_code, bounded=False, dag_paused=False, entry=RUNS) is NextAction.RESTART
    assert after_end(exit_code=exit_code, bounded=False, dag_paused=False, entry=MOVING) is NextAction.RESTART
    assert after_end(exit_code=exit_code, bounded=True, dag_paused=False, entry=RUNS) is batch

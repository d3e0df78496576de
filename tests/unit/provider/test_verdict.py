"""What an operator does before and after its driver."""

from __future__ import annotations

import pytest

from sluiceway.exit_codes import FENCED
from sluiceway.provider.driver.outcome import Verdict, after_end, before_start
from sluiceway.storage.model import ConnectorEntry, TargetState

RUNS = ConnectorEntry("c", {}, TargetState.STARTED)
PAUSED = ConnectorEntry("c", {}, TargetState.PAUSED)
STOPPED = ConnectorEntry("c", {}, TargetState.STOPPED)


@pytest.mark.parametrize(
    ("dag_paused", "entry", "verdict"),
    [
        (False, RUNS, Verdict.START),
        (True, RUNS, Verdict.WAIT),
        (False, PAUSED, Verdict.WAIT),
        (False, STOPPED, Verdict.WAIT),
        (False, None, Verdict.WAIT),
    ],
)
def test_a_driver_starts_only_for_a_connector_that_is_to_run(
    dag_paused: bool, entry: ConnectorEntry | None, verdict: Verdict
) -> None:
    assert before_start(dag_paused=dag_paused, entry=entry) is verdict


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize(
    ("exit_code", "dag_paused", "entry", "verdict"),
    [
        (0, True, RUNS, Verdict.WAIT),
        (0, False, PAUSED, Verdict.WAIT),
        (0, False, STOPPED, Verdict.WAIT),
        (0, False, None, Verdict.DONE),
        (0, True, None, Verdict.DONE),
        (1, False, RUNS, Verdict.DIED),
        (-9, False, RUNS, Verdict.DIED),
        (1, True, RUNS, Verdict.WAIT),
        (137, False, PAUSED, Verdict.WAIT),
        (1, False, None, Verdict.DONE),
        (FENCED, False, RUNS, Verdict.FENCED),
        (FENCED, True, PAUSED, Verdict.FENCED),
        (FENCED, False, None, Verdict.FENCED),
    ],
)
def test_after_the_driver(
    exit_code: int, dag_paused: bool, entry: ConnectorEntry | None, verdict: Verdict, bounded: bool
) -> None:
    assert after_end(exit_code=exit_code, bounded=bounded, dag_paused=dag_paused, entry=entry) is verdict


def test_a_driver_that_ends_well_is_done_only_if_it_was_to_end() -> None:
    assert after_end(exit_code=0, bounded=True, dag_paused=False, entry=RUNS) is Verdict.DONE
    assert after_end(exit_code=0, bounded=False, dag_paused=False, entry=RUNS) is Verdict.AGAIN

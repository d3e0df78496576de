from __future__ import annotations

import pytest

from sluiceway.metrics.task_metrics import StateTime
from sluiceway.storage.model import State


def test_the_shares_of_time_in_each_state() -> None:
    times = StateTime(0.0)
    times.enter(State.RUNNING, 2.0)
    times.enter(State.PAUSED, 6.0)
    times.enter(State.RUNNING, 7.0)
    assert times.ratio(State.RUNNING, 10.0) == pytest.approx(0.7)
    assert times.ratio(State.PAUSED, 10.0) == pytest.approx(0.1)
    assert times.all(10.0) == {State.UNASSIGNED: 2.0, State.RUNNING: 7.0, State.PAUSED: 1.0}


def test_no_time_has_passed_yet() -> None:
    assert StateTime(1.0).ratio(State.RUNNING, 1.0) == 0

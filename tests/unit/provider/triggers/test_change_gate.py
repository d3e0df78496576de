"""When a change in a source's system requires a run."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.provider.progress.cluster_view import DriverSeen
from sluiceway.provider.triggers.change_gate import ChangeGate

PATIENCE = 600.0


class Poll(NamedTuple):
    """The findings of one poll, a second after the one before, and whether the gate opens."""

    mark: object
    opens: bool
    generation: int = 0
    runs: bool = False
    clean: bool = True
    paused: bool = False
    after: float = 1.0


def opened(polls: list[Poll]) -> list[bool]:
    now = [0.0]
    gate, found = ChangeGate(PATIENCE, lambda: now[0]), []
    for poll in polls:
        now[0] += poll.after
        driver = DriverSeen(poll.runs, poll.generation, poll.clean)
        found.append(gate.opens(poll.mark, driver, paused=poll.paused))
    return found


FIRST = Poll("a", True)
RUNS = Poll("a", False, 1, runs=True, clean=False)
ENDED = Poll("a", False, 1)
FAILED = Poll("a", False, 1, clean=False)


@pytest.mark.parametrize(
    "polls",
    [
        pytest.param([FIRST, Poll("a", False), Poll("a", False)], id="nobody knows what happened before the first poll"),
        pytest.param([Poll(None, False), Poll(None, False), FIRST], id="a watch that cannot say"),
        pytest.param([Poll(0, True), Poll(None, False), Poll(0, False)], id="an answer that is zero"),
        pytest.param([FIRST, RUNS, ENDED, ENDED, Poll("b", True, 1)], id="a change after a run"),
        pytest.param([FIRST, RUNS, ENDED, Poll("b", True, 1), Poll("c", False, 1)], id="a change while a run is being started"),
        pytest.param([FIRST, RUNS, RUNS._replace(mark="b"), Poll("b", True, 1)], id="a change while a run is under way"),
        pytest.param([FIRST, RUNS, ENDED, ENDED._replace(after=10 * PATIENCE)], id="no change for long"),
        pytest.param([RUNS, RUNS, Poll("a", True, 1), RUNS, ENDED], id="a trigger that starts while a run is under way"),
        pytest.param([FIRST, RUNS, FAILED, FAILED, FAILED._replace(after=PATIENCE, opens=True)], id="a run that failed"),
        pytest.param([FIRST, RUNS, FAILED, FAILED._replace(mark="b")], id="a change after a run that failed"),
        pytest.param([FIRST, Poll("b", False), Poll("b", True, after=PATIENCE)], id="a run that never began"),
        pytest.param([FIRST, RUNS, FAILED, RUNS._replace(generation=2), Poll("b", True, 2)], id="a failed run that was repeated"),
        pytest.param([FIRST, Poll("b", False, 1), Poll("b", False, 1), RUNS, Poll("b", True, 1)], id="a driver that starts"),
        pytest.param([FIRST, Poll("b", False, 1), Poll("b", True, 1, after=15)], id="a run that was too short to be seen"),
        pytest.param(
            [Poll("a", False, paused=True), Poll("a", False, paused=True), Poll("a", False), FIRST], id="a paused connector"
        ),
        pytest.param(
            [FIRST, RUNS, ENDED, Poll("b", False, 1, paused=True), Poll("b", False, 1), Poll("b", True, 1)],
            id="a change while it is paused",
        ),
    ],
)
def test_the_gate_opens(polls: list[Poll]) -> None:
    assert opened(polls) == [poll.opens for poll in polls]


def test_marks_of_another_watch_are_not_compared() -> None:
    gate = ChangeGate(PATIENCE)
    assert gate.opens(0, DriverSeen(False))
    gate.forget()
    assert gate.opens(0, DriverSeen(False))


@given(
    st.lists(st.tuples(st.sampled_from(["change", "start", "end", "fail", "pause", "resume", "wait", "silence"]), st.booleans()))
)
def test_no_change_is_lost_and_no_run_is_queued_twice(steps: list[tuple[str, bool]]) -> None:
    """Whatever happens, once runs succeed each change has a run that began after it, and there is never more than one to come."""
    now = [0.0]
    gate = ChangeGate(PATIENCE, lambda: now[0])
    world = _World()

    def poll() -> None:
        now[0] += 1.0
        driver = DriverSeen(world.runs, world.generation, world.clean)
        if gate.opens(None if world.silent else world.changes, driver, paused=world.paused):
            assert not world.paused
            assert not world.runs
            assert not world.queued or now[0] - world.queued_at >= PATIENCE
            world.queued, world.queued_at = True, now[0]

    for step, is_polled in steps:
        world.do(step)
        if step == "wait":
            now[0] += PATIENCE
        if is_polled:
            poll()
    world.paused = world.silent = False
    for _ in range(3):
        world.do("end")
        for _ in range(3):
            poll()
        world.do("start")
        poll()
        world.do("end")
        now[0] += PATIENCE
        poll()
    world.do("start")
    assert world.read == world.changes


class _World:
    """A source whose runs read everything that is there when they begin."""

    def __init__(self) -> None:
        self.changes = self.generation = 0
        self.read = -1
        self.runs = self.paused = self.queued = self.silent = False
        self.clean = True
        self.queued_at = 0.0

    def do(self, step: str) -> None:
        if step == "change":
            self.changes += 1
        elif step == "start" and self.queued and not self.runs and not self.paused:
            self.queued, self.runs, self.clean = False, True, False
            self.generation += 1
            self._before, self.read = self.read, self.changes
        elif step in ("end", "fail") and self.runs:
            self.runs, self.clean = False, step == "end"
            if step == "fail":
                self.read = self._before
        elif step in ("pause", "resume"):
            self.paused = step == "pause"
        elif step == "silence":
            self.silent = not self.silent

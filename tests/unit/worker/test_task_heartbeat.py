"""A task's heartbeats."""

from __future__ import annotations

import threading

import pytest

from sluiceway.storage.model import State
from sluiceway.worker import task_heartbeat
from sluiceway.worker.task_heartbeat import HeartbeatReporter
from support.eventually import NEVER, eventually

SOON = 0.01


class Reports:
    """Collects reports; a report fails while ``fails`` is set and waits while ``blocked`` is."""

    def __init__(self) -> None:
        self.states: list[tuple[State, str | None]] = []
        self.topics: list[str] = []
        self.attempts = 0
        self.fails = False
        self.free = threading.Event()
        self.free.set()

    def report(self, state: State, trace: str | None = None) -> None:
        self.attempts += 1
        self.free.wait(NEVER)
        if self.fails:
            raise RuntimeError("no broker answers")
        self.states.append((state, trace))

    def topic(self, topic: str) -> None:
        self.topics.append(topic)


@pytest.mark.parametrize(("state", "trace"), [(State.RUNNING, None), (State.PAUSED, None), (State.RUNNING, "poll() failed")])
def test_the_last_status_is_repeated_until_the_task_must_stop(state: State, trace: str | None) -> None:
    reports = Reports()
    reporter = HeartbeatReporter(reports, SOON)
    reporter.report(state, trace)
    eventually(lambda: len(reports.states) > 3)
    assert set(reports.states) == {(state, trace)}
    reporter.stop()
    count = len(reports.states)
    assert not threading.Event().wait(SOON * 10)
    assert len(reports.states) == count


@pytest.mark.parametrize("state", [State.FAILED, State.UNASSIGNED, State.RESTARTING])
def test_nothing_is_repeated_after_a_final_status(state: State) -> None:
    reports = Reports()
    reporter = HeartbeatReporter(reports, SOON)
    reporter.report(State.RUNNING)
    eventually(lambda: len(reports.states) > 1)
    reporter.report(state, "boom")
    assert not threading.Event().wait(SOON * 10)
    assert reports.states[-1] == (state, "boom")
    reporter.stop()


def test_a_heartbeat_that_fails_is_logged_once_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    reports = Reports()
    reporter = HeartbeatReporter(reports, SOON)
    reporter.report(State.RUNNING)
    reports.fails = True
    before = reports.attempts
    eventually(lambda: reports.attempts > before + 5)
    assert caplog.text.count("Cannot write the task's heartbeat") == 1
    reports.fails, known = False, len(reports.states)
    eventually(lambda: len(reports.states) > known, what="heartbeats go on")
    reporter.stop()


def test_a_heartbeat_that_hangs_does_not_hold_up_the_tasks_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_heartbeat, "_CLOSE_SECONDS", 0.05)
    reports = Reports()
    reporter = HeartbeatReporter(reports, SOON)
    reporter.report(State.RUNNING)
    reports.free.clear()
    before = reports.attempts
    eventually(lambda: reports.attempts > before)
    reporter.stop()
    assert not reports.free.is_set(), "the heartbeat still hangs"
    reports.free.set()


def test_topics_are_passed_on() -> None:
    reports = Reports()
    HeartbeatReporter(reports, SOON).topic("t")
    assert reports.topics == ["t"]

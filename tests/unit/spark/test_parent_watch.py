"""A driver whose JVM or submitter has ended."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from sluiceway.exit_codes import APPLICATION_ENDED, FAILED
from sluiceway.spark import parent_watch
from sluiceway.spark.parent_watch import EndCondition, ParentWatch, stop_with_parent
from support.eventually import LIMIT, eventually


class Driver:
    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.traces: list[str | None] = []

    def stop(self, reason: str, trace: str | None = None) -> None:
        self.reasons.append(reason)
        self.traces.append(trace)


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent_watch, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(parent_watch, "_DRAIN_SECONDS", 0.2)
    monkeypatch.setattr(parent_watch, "_ENDED_SECONDS", 0.2)


def test_a_driver_drains_after_the_process_it_depends_on_has_ended_and_exits_if_that_takes_too_long() -> None:
    driver, over, polled = Driver(), threading.Event(), threading.Event()
    exits: list[int] = []

    def reason() -> str | None:
        polled.set()
        return "it has ended" if over.is_set() else None

    watch = ParentWatch(driver, [EndCondition(reason)], end=exits.append)  # type: ignore[arg-type]
    assert polled.wait(LIMIT)
    assert (bool(watch), driver.reasons) == (False, [])
    over.set()
    eventually(lambda: driver.reasons == ["it has ended"], what="the driver to be stopped")
    assert (watch.reason, watch.exit_code, driver.traces) == ("it has ended", FAILED, [None])
    eventually(lambda: exits == [FAILED], what="the exit")


def test_a_driver_stops_when_its_submitter_is_killed() -> None:
    driver, exits = Driver(), list[int]()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent:
        watch = stop_with_parent(driver, parent.pid, end=exits.append)  # type: ignore[arg-type]
        assert not watch
        parent.kill()
        eventually(lambda: driver.reasons, what="the driver to be stopped")
    assert driver.reasons == [f"the process that submitted this driver ({parent.pid}) has ended"]
    eventually(lambda: exits == [FAILED], what="the exit")


def test_the_end_of_the_application_is_published_and_has_its_own_exit_code() -> None:
    driver, exits, over = Driver(), list[int](), threading.Event()
    watch = stop_with_parent(
        driver,  # type: ignore[arg-type]
        None,
        lambda: "the Spark application has ended: killed" if over.is_set() else None,
        end=exits.append,
    )
    assert not watch
    over.set()
    eventually(lambda: exits == [APPLICATION_ENDED], what="the exit")
    assert watch.exit_code == APPLICATION_ENDED
    assert driver.traces == ["The Spark application has ended: killed."]


def test_a_driver_that_has_drained_may_end_its_application() -> None:
    driver, exits, over = Driver(), list[int](), threading.Event()
    watch = ParentWatch(driver, [EndCondition(lambda: "over" if over.is_set() else None)], end=exits.append)  # type: ignore[arg-type]
    watch.close()
    over.set()
    assert not watch
    assert (driver.reasons, exits) == ([], [])

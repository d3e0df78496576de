"""A driver whose JVM or submitter has ended."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from sluiceway.exit_codes import FAILED
from sluiceway.spark import parent_watch
from sluiceway.spark.parent_watch import ParentWatch, stop_with_parent
from support.eventually import eventually


class Driver:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def stop(self, reason: str) -> None:
        self.reasons.append(reason)


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent_watch, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(parent_watch, "_DRAIN_SECONDS", 0.2)


def test_a_driver_drains_after_the_process_it_depends_on_has_ended_and_exits_if_that_takes_too_long() -> None:
    driver, over, polled = Driver(), threading.Event(), threading.Event()
    exits: list[int] = []

    def has_ended() -> bool:
        polled.set()
        return over.is_set()

    watch = ParentWatch(driver, {"it has ended": has_ended}, end=exits.append)  # type: ignore[arg-type]
    assert polled.wait(5)
    assert (bool(watch), driver.reasons) == (False, [])
    over.set()
    eventually(lambda: driver.reasons == ["it has ended"], within=5, what="the driver to be stopped")
    assert watch.reason == "it has ended"
    eventually(lambda: exits == [FAILED], within=5, what="the exit")


def test_a_driver_stops_when_its_submitter_is_killed() -> None:
    driver, exits = Driver(), list[int]()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent:
        watch = stop_with_parent(driver, parent.pid, end=exits.append)  # type: ignore[arg-type]
        assert not watch
        parent.kill()
        eventually(lambda: driver.reasons, within=5, what="the driver to be stopped")
    assert driver.reasons == [f"the process that submitted this driver ({parent.pid}) has ended"]
    eventually(lambda: exits == [FAILED], within=5, what="the exit")

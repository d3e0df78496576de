"""What becomes of a driver whose JVM or submitter is gone."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from sluiceway.exit_codes import FAILED
from sluiceway.spark import parent_watch
from sluiceway.spark.parent_watch import Orphaned, stop_with_parent
from support.eventually import eventually


class Driver:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def stop(self, reason: str) -> None:
        self.reasons.append(reason)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent_watch, "_LOOK_SECONDS", 0.01)
    monkeypatch.setattr(parent_watch, "_DRAIN_SECONDS", 0.2)


def test_a_driver_that_lost_what_it_depends_on_drains_and_is_ended_if_that_takes_too_long() -> None:
    driver, gone, ended = Driver(), threading.Event(), []
    looked = threading.Event()

    def is_gone() -> bool:
        looked.set()
        return gone.is_set()

    orphaned = Orphaned(driver, {"it is gone": is_gone}, end=ended.append)  # type: ignore[arg-type]
    assert looked.wait(5)
    assert (bool(orphaned), driver.reasons) == (False, [])
    gone.set()
    eventually(lambda: driver.reasons == ["it is gone"], within=5, what="the driver is told to drain")
    assert orphaned.reason == "it is gone"
    eventually(lambda: ended == [FAILED], within=5, what="the end")


def test_the_death_of_the_submitter_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent_watch.os, "_exit", lambda _code: None)
    monkeypatch.setattr(parent_watch, "_DRAIN_SECONDS", 60.0)
    driver = Driver()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as parent:
        orphaned = stop_with_parent(driver, parent.pid)  # type: ignore[arg-type]
        assert not orphaned
        parent.kill()
        eventually(lambda: driver.reasons, within=5, what="the driver is told to drain")
    assert driver.reasons == [f"the process that submitted this driver ({parent.pid}) is gone"]

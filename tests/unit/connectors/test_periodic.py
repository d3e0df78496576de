from __future__ import annotations

import logging
import threading

import pytest

from sluiceway.connectors.periodic import Job, Periodic
from sluiceway.errors import ConnectError
from support.eventually import LIMIT


class Counted:
    """A job's function that sets ``enough`` after ``until`` runs, and raises ``error`` if given."""

    def __init__(self, until: int, error: Exception | None = None) -> None:
        self.runs = 0
        self.enough = threading.Event()
        self._until, self._error = until, error

    def __call__(self) -> None:
        self.runs += 1
        if self.runs >= self._until:
            self.enough.set()
        if self._error is not None:
            raise self._error


def test_jobs_run_repeatedly_also_after_errors(caplog: pytest.LogCaptureFixture) -> None:
    good, bad, worse = Counted(3), Counted(3, ConnectError("the cluster is away")), Counted(3, KeyError("x"))
    jobs = Periodic("test", [Job("a", good, 0.01), Job("to fail", bad, 0.01), Job("to break", worse, 0.01)])
    with caplog.at_level(logging.ERROR):
        jobs.start()
        assert all(each.enough.wait(LIMIT) for each in (good, bad, worse))
        jobs.stop()
    assert "Failed to fail, trying again in 0.01 s: the cluster is away" in caplog.messages
    assert "Failed to break, trying again in 0.01 s" in caplog.messages


def test_a_job_starts_at_once_or_after_its_interval() -> None:
    soon, later, never = Counted(1), Counted(1), Counted(1)
    jobs = Periodic(
        "test", [Job("never", never, None, at_once=True), Job("later", later, 3600), Job("soon", soon, 3600, at_once=True)]
    )
    jobs.start()
    assert soon.enough.wait(LIMIT)
    jobs.stop()
    assert (soon.runs, later.runs, never.runs) == (1, 0, 0)


def test_stopping_without_jobs_or_twice_is_harmless() -> None:
    jobs = Periodic("test", [Job("never", Counted(1), None)])
    jobs.start()
    jobs.stop()
    jobs.stop()

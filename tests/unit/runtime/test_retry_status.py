"""Retries in a task's status."""

from __future__ import annotations

import pytest

from sluiceway.errors import RetriableError
from sluiceway.runtime.retry_status import RetryStatus
from sluiceway.storage.model import State


class Reporter:
    def __init__(self) -> None:
        self.seen: list[tuple[State, str | None]] = []

    def report(self, state: State, trace: str | None = None) -> None:
        self.seen.append((state, trace))

    def topic(self, topic: str) -> None: ...


def test_a_retry_is_shown_at_once_for_each_reason_and_every_minute_until_it_succeeds() -> None:
    reporter, now = Reporter(), [0.0]
    status = RetryStatus(reporter, lambda: now[0])
    status.succeeded()
    assert reporter.seen == []
    for now[0] in (1.0, 2.0, 30.0, 61.0):
        status.failed("poll()", RetriableError("away"))
    status.failed("poll()", RetriableError("deadlock"))
    status.succeeded()
    status.succeeded()
    assert reporter.seen == [
        (State.RUNNING, "The task tries again. poll() failed: away"),
        (State.RUNNING, "The task tries again (attempt 4, for 60 s). poll() failed: away"),
        (State.RUNNING, "The task tries again (attempt 5, for 60 s). poll() failed: deadlock"),
        (State.RUNNING, None),
    ]


def test_a_status_that_cannot_be_written_does_not_end_the_task(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Reporter):
        def report(self, state: State, trace: str | None = None) -> None:
            raise RuntimeError("no cluster")

    RetryStatus(Broken()).failed("put()", RetriableError("away"))
    assert "no cluster" in caplog.text

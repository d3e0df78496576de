from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from sluiceway.errors import DataError, RetriableError
from sluiceway.runtime.errors.retries import Retries, retry_delay
from sluiceway.runtime.interrupts import Abandoned, Interrupted


class Clock:
    """A clock that advances only while ``wait`` is called."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def wait(self, seconds: float) -> None:
        self.waits.append(round(seconds, 6))
        self.now += seconds

    def __call__(self) -> float:
        return self.now


class Flaky:
    """Raises these errors in turn, then returns."""

    def __init__(self, *errors: BaseException) -> None:
        self._errors: Iterator[Any] = iter(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        error = next(self._errors, None)
        if error is not None:
            raise error
        return "done"


def retries(clock: Clock, seconds: float, longest: float = 60.0, wait: Any = None) -> tuple[Retries, list[str]]:
    calls: list[str] = []
    return Retries(
        seconds,
        longest,
        wait or clock.wait,
        clock=clock,
        on_retry=lambda: calls.append("retried"),
        on_failure=lambda: calls.append("failed"),
    ), calls


def test_the_delay_doubles_from_300_ms_and_has_jitter_above_the_longest() -> None:
    assert [retry_delay(attempt, 60.0, 0.5) for attempt in range(1, 10)] == [0.3, 0.6, 1.2, 2.4, 4.8, 9.6, 19.2, 38.4, 30.0]
    assert retry_delay(10_000, 60.0, 0.9) == pytest.approx(54.0)
    assert retry_delay(1, 0.0, 0.9) == 0.0


def test_the_result_of_a_successful_retry_is_returned() -> None:
    clock = Clock()
    made, calls = retries(clock, 10.0)
    operation = Flaky(RetriableError("2"), RetriableError("3"))
    assert made.retry(operation, "it", RetriableError("1")) == "done"
    assert clock.waits == [0.3, 0.6, 1.2]
    assert calls == ["retried", "failed", "retried", "failed", "retried"]


def test_the_last_attempt_is_made_when_the_time_is_up() -> None:
    clock = Clock()
    made, _ = retries(clock, 1.0)
    operation = Flaky(RetriableError("2"), RetriableError("3"), RetriableError("last"), AssertionError("too late"))
    with pytest.raises(RetriableError, match="last"):
        made.retry(operation, "it", RetriableError("1"))
    assert clock.waits == [0.3, 0.6, 0.1]


@pytest.mark.parametrize(("seconds", "error"), [(0.0, RetriableError("no time")), (10.0, DataError("hopeless"))])
def test_nothing_is_retried_without_time_or_after_another_error(seconds: float, error: Exception) -> None:
    clock = Clock()
    made, calls = retries(clock, seconds)
    operation = Flaky()
    with pytest.raises(type(error)):
        made.retry(operation, "it", error)
    assert (operation.calls, clock.waits, calls) == (0, [], [])


def test_an_error_that_is_not_retriable_ends_the_retries() -> None:
    made, calls = retries(Clock(), 10.0)
    operation = Flaky(RetriableError("2"), ValueError("hopeless"))
    with pytest.raises(ValueError, match="hopeless"):
        made.retry(operation, "it", RetriableError("1"))
    assert (operation.calls, calls.count("failed")) == (2, 2)


def test_each_of_unlimited_retries_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    made, _ = retries(Clock(), float("inf"), longest=1.0)
    many = [RetriableError("again") for _ in range(50)]
    assert made.retry(Flaky(*many), "converting it", RetriableError("1")) == "done"
    lines = [record.message for record in caplog.records]
    assert len(lines) == 51
    assert "converting it (attempt 51)" in lines[-1]


def test_a_command_ends_the_wait_at_once() -> None:
    orders = itertools.chain([None, None], itertools.repeat(Interrupted()))

    def wait(_seconds: float) -> None:
        order = next(orders)
        if order is not None:
            raise order

    made, _ = retries(Clock(), float("inf"), wait=wait)
    operation = Flaky(*[RetriableError("again") for _ in range(50)])
    with pytest.raises(Interrupted):
        made.retry(operation, "it", RetriableError("1"))
    assert operation.calls == 2


@pytest.mark.parametrize("command", [Interrupted, Abandoned])
def test_a_command_during_an_attempt_does_not_count_as_a_failure(command: type[BaseException]) -> None:
    made, calls = retries(Clock(), 10.0)
    operation = Flaky(command())
    with pytest.raises(command):
        made.retry(operation, "it", RetriableError("1"))
    assert (operation.calls, calls) == (1, ["retried"])

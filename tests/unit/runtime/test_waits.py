"""What a task waits for, in its status and metrics."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import RetriableError
from sluiceway.metrics.registry import registry
from sluiceway.runtime.task import TaskCommand, TaskResult, TaskServices, TaskSpec
from sluiceway.runtime.waits import Waits
from sluiceway.runtime.worker_task import WorkerTask, run_task
from sluiceway.storage.model import State, TaskId

ID = TaskId("orders", 0)
SINCE = "Waiting since 1970-01-01T00:00:01+00:00, next try within"


def test_a_wait_is_shown_for_each_reason_and_longer_pause_until_it_is_over() -> None:
    now, shown = [1.0], []
    waits = Waits(lambda: now[0])
    waits.show = lambda: shown.append(waits.text)
    waits.succeeded("poll()")
    waits.waiting()
    assert (shown, waits.seconds) == ([], 0)
    for now[0], seconds in ((1.0, 0.1), (2.0, 3.2), (30.0, 10.0), (61.0, 10.5)):
        waits.failed("poll()", RetriableError("away"), seconds)
    waits.failed("poll()", RetriableError("deadlock"), 0.1)
    assert waits.seconds == 60
    waits.succeeded("poll()")
    waits.succeeded("poll()")
    assert shown == [
        f"{SINCE} 10 s. poll() failed: away",
        f"{SINCE} 11 s. poll() failed: away",
        f"{SINCE} 10 s. poll() failed: deadlock",
        None,
    ]
    assert waits.seconds == 0


def test_a_wait_of_the_tasks_own_is_shown_before_the_call_that_it_fails_and_ends_by_itself() -> None:
    now, shown = [1.0], []
    waits = Waits(lambda: now[0])
    waits.show = lambda: shown.append(waits.text)
    waits.waiting("db:5432 refuses connections", 30)
    now[0] = 31.0
    waits.failed("poll()", RetriableError("refused"), 0.1)
    waits.waiting()
    waits.succeeded("poll()")
    assert shown == [f"{SINCE} 30 s. db:5432 refuses connections", f"{SINCE} 10 s. poll() failed: refused", None]


def test_a_status_that_cannot_be_written_does_not_end_the_task(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> None:
        raise RuntimeError("no cluster")

    waits = Waits()
    waits.show = broken
    waits.failed("put()", RetriableError("away"), 1)
    assert "no cluster" in caplog.text


class Control:
    def __init__(self) -> None:
        self.given = TaskCommand.RUN

    def command(self) -> TaskCommand:
        return self.given

    def wait(self, seconds: float) -> None: ...

    def wake(self) -> None: ...


class Reporter:
    def __init__(self) -> None:
        self.seen: list[tuple[State, str | None]] = []

    def report(self, state: State, trace: str | None = None) -> None:
        self.seen.append((state, trace and trace.partition(". ")[2]))

    def topic(self, topic: str) -> None: ...


class Task(WorkerTask):
    """Waits while it is RUNNING, PAUSED, RUNNING again, and about to stop."""

    def run(self) -> TaskResult:
        waits, reporter = self._waits, self._reporter
        waits.waiting("before the start")
        assert self._obey()
        waits.waiting("away")
        assert waiting_ms() > 0
        reporter.report(State.PAUSED)
        waits.waiting("still away")
        reporter.report(State.RUNNING)
        waits.waiting()
        assert waiting_ms() == 0
        self._control.given = TaskCommand.STOP  # type: ignore[attr-defined]
        waits.waiting("away again")
        reporter.report(State.FAILED, "E: x. no")
        return self._result

    def _pause(self) -> None: ...

    def _close_abandoned(self) -> None: ...

    def _close_failed(self, error: Exception) -> None:
        raise error


def waiting_ms() -> float:
    [value] = [float(bean.values["waiting-ms"]) for bean in registry.beans() if "waiting-ms" in bean.values]
    return value


def test_only_the_running_state_of_a_task_that_may_run_shows_a_wait() -> None:
    reporter = Reporter()
    spec = TaskSpec(ID, {}, WorkerConfig.of({"bootstrap.servers": "localhost:1"}), "w", 1, sink=False)

    def create(spec: TaskSpec, services: TaskServices, resources: ExitStack) -> Task:
        return Task(spec, services, resources)

    run_task(create, spec, TaskServices(Control(), reporter))
    assert reporter.seen == [
        (State.RUNNING, "before the start"),
        (State.RUNNING, "away"),
        (State.PAUSED, None),
        (State.RUNNING, "still away"),
        (State.RUNNING, None),
        (State.FAILED, "no"),
    ]

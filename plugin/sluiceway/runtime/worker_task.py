"""Runs what source and sink tasks have in common: creation, commands, failure reports, closing."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from sluiceway.errors import trace_of
from sluiceway.metrics.registry import registry
from sluiceway.metrics.task_metrics import TaskMetrics
from sluiceway.runtime.garbage import raise_gc_threshold
from sluiceway.runtime.interrupts import Abandoned, check_abandoned
from sluiceway.runtime.task import TaskCommand, TaskControl, TaskReporter, TaskResult, TaskServices, TaskSpec
from sluiceway.runtime.waits import Waits
from sluiceway.storage.model import State
from sluiceway.telemetry.task_spans import task_spans

log = logging.getLogger(__name__)

BACKOFF_SECONDS = (0.1, 10.0)
"""First and longest wait before a ``poll`` or ``put`` that raised RetriableError is called again."""


class WorkerTask(ABC):
    """A source or sink task that is ready to run. Runs on an executor. Not thread-safe.

    ``resources`` closes what the task runs with. Its callbacks must not raise.
    """

    def __init__(self, spec: TaskSpec, services: TaskServices, resources: ExitStack) -> None:
        self._spec = spec
        self._control = services.control
        self._reporter = services.reporter
        self._metrics = services.metrics
        self._spans = services.spans
        self._waits = services.waits
        self._resources = resources
        self._result = TaskResult(spec.id)
        self._running = False

    @abstractmethod
    def run(self) -> TaskResult:
        """Run the task until it must stop, reaches its end or fails. Does not raise for a failure of the task."""

    @abstractmethod
    def _pause(self) -> None:
        """Commit, report PAUSED, then wait while the command is PAUSE."""

    @abstractmethod
    def _close_abandoned(self) -> None:
        """Stop the task and close its resources without committing anything."""

    @abstractmethod
    def _close_failed(self, error: Exception) -> None:
        """Commit what is safe after ``error``, stop the task and close its resources. May raise Abandoned."""

    def _obey(self) -> bool:
        """Carry out the current command, waiting while it is PAUSE. Return False if the task must stop."""
        command = self._control.command()
        if command is TaskCommand.PAUSE:
            self._pause()
            command = self._control.command()
        if command is TaskCommand.ABANDON:
            raise Abandoned
        if command is TaskCommand.RUN and not self._running:
            self._reporter.report(State.RUNNING)
            self._running = True
        return command is not TaskCommand.STOP

    def _refuse_wait(self) -> None:
        """Raise ConnectError if a bounded task ends while it waits: what its config names does not exist."""
        if error := self._waits.refused():
            raise error

    def _abandon(self) -> None:
        log.warning("Abandoned: stopping without a commit")
        self._close_abandoned()

    def _fail(self, error: Exception) -> None:
        """Record and report a failure. Reports nothing if the task is abandoned: its status is then a newer driver's."""
        record_failure(self._result, error)
        try:
            log_errors("Reading the task's command", check_abandoned, self._control)
            self._close_failed(error)
        except Abandoned:
            self._abandon()
        else:
            self._reporter.report(State.FAILED, self._result.trace)


def run_task(
    create: Callable[[TaskSpec, TaskServices, ExitStack], WorkerTask], spec: TaskSpec, services: TaskServices
) -> TaskResult:
    """Create and run a task in the calling thread. Failures are reported and returned, not raised.

    ``create`` registers what must be closed with the ExitStack as it goes, so that nothing leaks if it raises.
    """
    raise_gc_threshold()
    metrics = TaskMetrics(spec.id, sink=spec.sink)
    spans = task_spans(spec.config, spec.id, sink=spec.sink)
    waits = Waits()
    metrics.ask_wait_of(lambda: waits.seconds)
    reporter = _StateReporter(services.reporter, metrics, services.control, waits)
    waits.show = reporter.show_waits
    services = replace(services, metrics=metrics, spans=spans, reporter=reporter, waits=waits)
    with registry.task(metrics), ExitStack() as resources:
        resources.callback(spans.flush)
        try:
            task = create(spec, services, resources)
        except Exception as error:  # noqa: BLE001 (the task's outermost boundary)
            resources.close()
            return _failed_to_start(spec, services, error)
        return task.run()


@dataclass(slots=True)
class _StateReporter:
    """Adds what a running task waits for to its status. Counts the states, and the first one as the end of the task's start."""

    reporter: TaskReporter
    metrics: TaskMetrics
    control: TaskControl
    waits: Waits
    state: State | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)  # a wait may begin on another thread than the task's

    def report(self, state: State, trace: str | None = None) -> None:
        with self.lock:
            if self.state is None:
                registry.task_started(succeeded=state is not State.FAILED)
            self.state = state
            self.metrics.enter(state)
            self.reporter.report(state, self.waits.text if state is State.RUNNING and trace is None else trace)

    def show_waits(self) -> None:
        """Report what the task waits for now, unless it is not RUNNING or must not be any more."""
        with self.lock:
            if self.state is State.RUNNING and self.control.command() is TaskCommand.RUN:
                self.reporter.report(State.RUNNING, self.waits.text)

    def topic(self, topic: str) -> None:
        self.reporter.topic(topic)


def _failed_to_start(spec: TaskSpec, services: TaskServices, error: Exception) -> TaskResult:
    result = TaskResult(spec.id)
    record_failure(result, error)
    try:
        log_errors("Reading the task's command", check_abandoned, services.control)
    except Abandoned:
        log.warning("Abandoned: stopping without a commit")
    else:
        services.reporter.report(State.FAILED, result.trace)
    return result


def record_failure(result: TaskResult, error: Exception) -> None:
    """Log the error that ends a task and store it in the result."""
    log.error("Task threw an uncaught and unrecoverable exception", exc_info=error)
    result.failed, result.trace = True, trace_of(error)


def log_errors(what: str, call: Callable[..., object], *arguments: object) -> None:
    """Call a function and log what it raises, because the steps after it must run too. BaseExceptions pass through."""
    try:
        call(*arguments)
    except Exception:
        log.exception("%s failed", what)

"""Defines what a driver runs in a Python worker process of a Spark executor, and runs a single task there."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from sluiceway.config.variables import resolution_for_use
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, trace_of
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.runtime.task import TaskReporter, TaskResult, TaskServices, TaskSpec
from sluiceway.storage.model import State, TaskId
from sluiceway.worker.log_context import log_to_stderr
from sluiceway.worker.start_gate import StartGate, StartSlot


class ServicesFactory(Protocol):
    """Opens a task's connections on its executor. Picklable, because the driver sends it there with the task."""

    def open(self, spec: TaskSpec) -> TaskServices: ...


class Work(Protocol):
    """The work of one Python worker process: a task, or a host of many. Picklable. ``job`` identifies this start of it."""

    @property
    def job(self) -> str: ...

    @property
    def id(self) -> TaskId: ...

    @property
    def title(self) -> str:
        """Its description on Spark's web page."""

    @property
    def worker(self) -> WorkerConfig: ...

    @property
    def log_prefix(self) -> str: ...

    def run(self) -> TaskResult:
        """Do the work until it ends. Runs on the executor."""


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """A task to run and the factory of its connections.

    ``job`` identifies this start of the task; each start of the same task has another one.
    """

    spec: TaskSpec
    services: ServicesFactory
    job: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def id(self) -> TaskId:
        return self.spec.id

    @property
    def title(self) -> str:
        return f"Connect task {self.spec.id}"

    @property
    def worker(self) -> WorkerConfig:
        return self.spec.worker

    @property
    def log_prefix(self) -> str:
        return task_prefix(self.spec.id)

    def run(self) -> TaskResult:
        return run_assignment(self)


def task_prefix(task: TaskId) -> str:
    """Return the prefix of a task's log lines, Connect's context."""
    return f"[{task.connector}|task-{task.task}] "


RunTask = Callable[[TaskSpec, TaskServices], TaskResult]


def run_records(spec: TaskSpec, services: TaskServices) -> TaskResult:
    """Run a source or sink task that handles records."""
    if spec.sink:
        from sluiceway.runtime.sink.worker_sink_task import run_sink

        return run_sink(spec, services)
    from sluiceway.runtime.source.worker_source_task import run_source

    return run_source(spec, services)


_starts = StartGate("task")


@dataclass(slots=True)
class _StartReporter:
    """Releases a task's slot to start with its first status, which says that it runs, is paused, or has failed."""

    reporter: TaskReporter
    slot: StartSlot

    def report(self, state: State, trace: str | None = None) -> None:
        self.slot.release()
        self.reporter.report(state, trace)

    def topic(self, topic: str) -> None:
        self.reporter.topic(topic)


def run_assignment(
    assignment: TaskAssignment, run: RunTask = run_records, gives_up: Callable[[], bool] = lambda: False
) -> TaskResult:
    """Run a task until it ends and return its result; the task's own failure is part of the result. Runs on an executor.

    References to config providers are resolved here, so that neither the job nor the config topic holds a secret.
    ``gives_up`` returns True if the task must not start any more, while it waits for others that start on this machine.
    """
    spec = assignment.spec
    slot = _starts.enter(gives_up)
    if slot is None:
        return TaskResult(spec.id)
    try:
        return _run_assignment(assignment, run, slot)
    finally:
        slot.release()


def _run_assignment(assignment: TaskAssignment, run: RunTask, slot: StartSlot) -> TaskResult:
    spec = assignment.spec
    services = assignment.services.open(spec)
    services = replace(services, reporter=_StartReporter(services.reporter, slot), let_others_start=slot.release)
    try:
        try:
            spec = replace(spec, config=resolution_for_use(spec.worker, spec.config).config)
        except ConfigError as error:
            services.reporter.report(State.FAILED, trace_of(error))
            return TaskResult(spec.id, failed=True, trace=trace_of(error))
        return run(spec, services)
    finally:
        services.close()


def run_partition(works: Iterable[Work]) -> Iterator[TaskResult]:
    """Run what an RDD's single partition holds. Spark calls this on the executor."""
    for work in works:
        log_to_stderr(work.log_prefix)
        use_plugin_path(work.worker.raw)
        yield work.run()

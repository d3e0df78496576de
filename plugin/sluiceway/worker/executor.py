"""Runs one task on a Spark executor, in a Python worker process."""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from sluiceway.config.variables import resolver
from sluiceway.errors import ConfigError, trace_of
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.runtime.task import TaskResult, TaskServices, TaskSpec
from sluiceway.storage.model import State


class ServicesFactory(Protocol):
    """Opens a task's connections on its executor. Picklable, because the driver sends it there with the task."""

    def open(self, spec: TaskSpec) -> TaskServices: ...


@dataclass(frozen=True, slots=True)
class Assignment:
    """A task to run and the factory of its connections.

    ``job`` identifies this start of the task; each start of the same task has another one.
    """

    spec: TaskSpec
    services: ServicesFactory
    job: str = field(default_factory=lambda: uuid.uuid4().hex)


RunTask = Callable[[TaskSpec, TaskServices], TaskResult]


def run_records(spec: TaskSpec, services: TaskServices) -> TaskResult:
    """Run a source or sink task that handles records."""
    if spec.sink:
        from sluiceway.runtime.sink.worker_sink_task import run_sink

        return run_sink(spec, services)
    from sluiceway.runtime.source.worker_source_task import run_source

    return run_source(spec, services)


def run_assignment(assignment: Assignment, run: RunTask = run_records) -> TaskResult:
    """Run a task until it ends and return its result; the task's own failure is part of the result. Runs on an executor.

    References to config providers are resolved here, so that neither the job nor the config topic holds a secret.
    """
    spec = assignment.spec
    services = assignment.services.open(spec)
    try:
        try:
            spec = replace(spec, config=resolver(spec.worker).resolve(spec.config))
        except ConfigError as error:
            services.reporter.report(State.FAILED, trace_of(error))
            return TaskResult(spec.id, failed=True, trace=trace_of(error))
        return run(spec, services)
    finally:
        services.control.close()
        if services.offsets is not None:
            services.offsets.stop()


def run_partition(assignments: Iterable[Assignment]) -> Iterator[TaskResult]:
    """Run the single assignment of an RDD's single partition. Spark calls this on the executor."""
    for assignment in assignments:
        log_to_stderr(f"[{assignment.spec.id.connector}|task-{assignment.spec.id.task}] ")
        use_plugin_path(assignment.spec.worker.raw)
        yield run_assignment(assignment)


def log_to_stderr(prefix: str) -> None:
    """Log to standard error, which Spark keeps in the executor's log, each line with Connect's context prefix."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(f"%(asctime)s %(levelname)s {prefix}%(message)s (%(name)s)"))
    root = logging.getLogger()
    root.handlers[:] = [handler]  # a Python worker is reused for other tasks, which have other prefixes
    root.setLevel(logging.INFO)

"""What a Spark executor runs: one task's loop in a Python worker."""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from sluiceway.config.variables import resolver
from sluiceway.errors import ConfigError, trace_of
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.runtime.task import TaskResult, TaskServices, TaskSpec
from sluiceway.storage.model import State


class ServicesFactory(Protocol):
    """Opens a task's connections on the executor. Picklable: it travels there with the task."""

    def open(self, spec: TaskSpec) -> TaskServices: ...


@dataclass(frozen=True, slots=True)
class Assignment:
    """A task and how it reaches its orders, its status and its offsets.

    ``job`` names the one placing of it that this is: no other has that name.
    """

    spec: TaskSpec
    services: ServicesFactory
    job: str = field(default_factory=lambda: uuid.uuid4().hex)


def run_assignment(assignment: Assignment) -> TaskResult:
    """Run a task to its end and return what it did. Runs on an executor; a task's own failure is part of the result.

    References to secrets are replaced here, so that what travels and what is stored holds only the references.
    """
    spec = assignment.spec
    services = assignment.services.open(spec)
    try:
        try:
            spec = replace(spec, config=resolver(spec.worker).resolve(spec.config))
        except ConfigError as error:
            services.reporter.report(State.FAILED, trace_of(error))
            return TaskResult(spec.id, failed=True, trace=trace_of(error))
        if spec.sink:
            from sluiceway.runtime.sink.worker_sink_task import run_sink

            return run_sink(spec, services)
        from sluiceway.runtime.source.worker_source_task import run_source

        return run_source(spec, services)
    finally:
        services.control.close()
        if services.offsets is not None:
            services.offsets.stop()


def run_partition(assignments: Iterator[Assignment]) -> Iterator[TaskResult]:
    """Run the one assignment of a single-partition RDD: the function that Spark ships."""
    for assignment in assignments:
        log_to_stderr(f"[{assignment.spec.id.connector}|task-{assignment.spec.id.task}] ")
        use_plugin_path(assignment.spec.worker.raw)
        yield run_assignment(assignment)


def log_to_stderr(prefix: str) -> None:
    """Log to the process's standard error, which Spark keeps in the executor's log, with Connect's context prefix."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(f"%(asctime)s %(levelname)s {prefix}%(message)s (%(name)s)"))
    root = logging.getLogger()
    root.handlers[:] = [handler]  # a Python worker is used again for other tasks
    root.setLevel(logging.INFO)

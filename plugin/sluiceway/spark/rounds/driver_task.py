"""Runs the loop of a task that reads or writes DataFrames in a thread of the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluiceway.api.data_frames import DataFrameSinkTask, DataFrameSourceTask
from sluiceway.discovery import connector_class
from sluiceway.runtime.task import TaskResult, TaskServices, TaskSpec
from sluiceway.worker.executor import TaskAssignment, run_assignment

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


def runs_on_driver(assignment: TaskAssignment) -> bool:
    """Return whether a task reads or writes DataFrames. No I/O."""
    task = connector_class(assignment.spec.config["connector.class"]).task_class
    return issubclass(task, (DataFrameSinkTask, DataFrameSourceTask))


def run_on_driver(assignment: TaskAssignment, context: SparkContext) -> TaskResult:
    """Run such a task until it ends. Its commands, status and offsets are those of a task on an executor."""

    def run(spec: TaskSpec, services: TaskServices) -> TaskResult:
        session = session_of(context)
        if spec.sink:
            from sluiceway.spark.rounds.sink_task import run_sink_rounds

            return run_sink_rounds(assignment, session, spec, services)
        from sluiceway.spark.rounds.source_task import run_source_rounds

        return run_source_rounds(assignment, session, spec, services)

    return run_assignment(assignment, run)


def session_of(context: SparkContext) -> SparkSession:
    """Return a new session of the application, with settings and temporary views of its own."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate().newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")  # Connect's timestamps are in UTC
    return session

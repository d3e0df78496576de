"""Decommissioned executors as Spark's scheduler reports them, in a local application."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

import pytest
from pyspark import SparkContext

from sluiceway.spark.decommissions import Decommissions
from sluiceway.spark.session import local_conf, spark_context
from support.eventually import LIMIT, eventually

pytestmark = pytest.mark.spark


@pytest.fixture
def context() -> Iterator[SparkContext]:
    made = spark_context("decommissions", local_conf(), master="local[2]")
    yield made
    made.stop()


def start(context: SparkContext, group: str) -> threading.Thread:
    def endless(_: Iterable[int]) -> Iterable[int]:  # nested, because executors cannot import this module
        while True:
            time.sleep(0.1)

    def run() -> None:
        context.setJobGroup(group, "endless", interruptOnCancel=True)
        with pytest.raises(Exception, match="cancelled"):
            context.parallelize([1], 1).mapPartitions(endless).collect()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def decommission(context: SparkContext, executor: str) -> None:
    """Mark an executor as its cluster manager does."""
    jvm = context._jvm
    assert jvm is not None
    information = jvm.org.apache.spark.scheduler.ExecutorDecommissionInfo("maintenance", jvm.scala.Option.empty())
    context._jsc.sc().taskScheduler().executorDecommission(executor, information)


def test_a_decommissioned_executor_is_found_by_its_task(context: SparkContext) -> None:
    decommissions = Decommissions(context)
    thread = start(context, "job")
    try:
        eventually(lambda: decommissions._running_on("job") == "driver", what="a running task")
        assert decommissions.executor("job") is None
        decommission(context, "driver")
        eventually(lambda: decommissions.executor("job") == "driver", what="a decommissioned executor")
        assert decommissions.executor("unknown job") is None
    finally:
        context._jsc.sc().cancelJobGroupAndFutureJobs("job")
        thread.join(LIMIT)
    eventually(lambda: decommissions._running_on("job") is None, what="no running task")


def test_a_stopped_application_has_no_decommissioned_executors(context: SparkContext) -> None:
    decommissions = Decommissions(context)
    context._jsc.sc().stop()
    assert decommissions.executor("job") is None

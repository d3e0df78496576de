"""The Spark application whose classes go into the class archive: it uses Spark as a driver does."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

if sys.path and Path(sys.path[0]) == Path(__file__).parent:
    del sys.path[0]  # spark-submit puts this folder first; its modules must not shadow others

from sluiceway.spark.jvm_shutdown import calling_hook
from sluiceway.spark.session import slots, spark_context

# Classes that only the JVMs of a cluster load. Loading one loads those that it extends.
_ON_CLUSTERS = (
    "org.apache.spark.deploy.yarn.ApplicationMaster",
    "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend",
)


def _same(numbers: Iterable[int]) -> Iterable[int]:
    yield from numbers


def main() -> None:
    """Run one job of one task with the same calls of Spark that a driver makes."""
    from py4j.protocol import Py4JError

    context = spark_context("sluiceway-class-archive")
    jvm: Any = context._jvm
    for name in _ON_CLUSTERS:
        with contextlib.suppress(Py4JError):  # this Spark was built without it
            jvm.java.lang.Class.forName(name)
    calling_hook(jvm, jvm.java.util.concurrent.CountDownLatch(1), "countDown").run()
    slots(context)
    context.setJobGroup("archive", "Class archive", interruptOnCancel=True)
    context.parallelize([1], 1).mapPartitions(_same).collect()
    context.stop()


if __name__ == "__main__":
    main()

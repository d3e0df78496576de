"""Lets a driver drain when it is Spark's JVM, and not the driver, that is told to end: by Airflow, Kubernetes or a person."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sluiceway.worker.driver import Driver

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

# Spark stops its contexts, and with them the Python workers, in one of Hadoop's shutdown hooks, whose priority is 40.
_BEFORE_SPARK = 100


class Shutdown:
    """True once the JVM is shutting down: nothing more can be asked of it then."""

    class Java:
        implements = ("java.lang.Runnable",)

    def __init__(self, driver: Driver, seconds: float) -> None:
        self.drained = threading.Event()
        self._driver = driver
        self._seconds = seconds
        self._begun = False

    def __bool__(self) -> bool:
        return self._begun

    def run(self) -> None:
        """Called by the JVM, which waits for it."""
        self._begun = True
        self._driver.stop("Spark's JVM was told to end")
        if not self.drained.wait(self._seconds):
            log.error("The connectors have not drained within %g s; Spark ends their tasks", self._seconds)


@contextlib.contextmanager
def drained_before_spark(context: SparkContext, driver: Driver, seconds: float) -> Iterator[Shutdown]:
    """While this is open, a JVM that gets SIGTERM waits so many seconds for the driver to drain before it ends its tasks.

    Spark would end them at once, before their last commit. Runs on the driver.
    """
    from py4j.protocol import Py4JError
    from pyspark.java_gateway import ensure_callback_server_started

    jvm = context._jvm
    shutdown = Shutdown(driver, seconds)
    ensure_callback_server_started(context._gateway)
    # A thread that is never started: an object of Java's own, by which the hook is found again.
    hook = jvm.java.lang.Thread(shutdown)
    manager = jvm.org.apache.hadoop.util.ShutdownHookManager.get()
    manager.addShutdownHook(hook, _BEFORE_SPARK, int(seconds) + 1, jvm.java.util.concurrent.TimeUnit.SECONDS)
    try:
        yield shutdown
    finally:
        shutdown.drained.set()
        if not shutdown:
            with contextlib.suppress(Py4JError, OSError):  # the JVM is ending just now, or gone
                manager.removeShutdownHook(hook)

"""Drains a driver when Spark's JVM, not the driver, receives SIGTERM: from Airflow, Kubernetes or a person."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.worker.driver import Driver

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

_DRAIN_MARGIN_SECONDS = 20.0  # that draining may take on top of the tasks' own stop timeout

# Spark stops its contexts and their Python workers in a Hadoop shutdown hook of priority 40. Higher priorities run first.
_HOOK_PRIORITY = 100


class Shutdown:
    """True once Spark's JVM is shutting down, and takes no more hooks."""

    def __init__(self) -> None:
        self.drained = threading.Event()
        self._begun = False

    def __bool__(self) -> bool:
        return self._begun

    def begin(self, driver: Driver, seconds: float) -> None:
        """Drain the driver; say so in the log if it takes longer than Spark's JVM waits."""
        self._begun = True
        driver.stop("Spark's JVM is shutting down")
        if not self.drained.wait(seconds):
            log.error("The connectors have not drained within %g s; Spark kills their tasks", seconds)


def calling_hook(jvm: Any, target: Any, action: str) -> Any:
    """Return a ``java.lang.Thread``, never started, that calls a method of an object in the JVM.

    It is made of the JVM's own classes: one that called Python would need a port, which any user of the machine could call.
    """
    runnable = jvm.java.lang.Class.forName("java.lang.Runnable")
    return jvm.java.lang.Thread(jvm.java.beans.EventHandler.create(runnable, target, action))


def first_of(context: SparkContext, drained: Any, pid: int) -> Any:
    """Return a ``CompletableFuture`` of the JVM's that another one completes, or the end of a process: nobody drains then."""
    jvm: Any = context._jvm
    process = jvm.java.lang.ProcessHandle.of(pid)
    ends = [drained, process.get().onExit()] if process.isPresent() else [drained]
    futures: Any = context._gateway.new_array(jvm.java.util.concurrent.CompletableFuture, len(ends))  # type: ignore[union-attr]
    for number, end in enumerate(ends):
        futures[number] = end
    return jvm.java.util.concurrent.CompletableFuture.anyOf(futures)


@contextlib.contextmanager
def drained_before_spark(context: SparkContext, driver: Driver, worker: WorkerConfig) -> Iterator[Shutdown]:
    """Make a JVM that receives SIGTERM wait for the driver to drain before Spark kills its tasks.

    Without this, Spark kills them at once, before their last commit. A thread waits in the JVM for the first of two hooks; the
    second one waits for the driver, but not for one that was killed. Runs on the driver.
    """
    from py4j.protocol import Py4JError

    jvm: Any = context._jvm
    if jvm is None:
        raise ConnectError("The Spark context has been stopped, so its JVM cannot be watched.")
    seconds = worker.duration("task.shutdown.graceful.timeout.ms").total_seconds() + _DRAIN_MARGIN_SECONDS
    shutdown, left = Shutdown(), threading.Event()
    begun, drained = jvm.java.util.concurrent.CountDownLatch(1), jvm.java.util.concurrent.CompletableFuture()

    def watch() -> None:
        with contextlib.suppress(Py4JError, OSError):  # the JVM has ended
            getattr(begun, "await")()
            if not left.is_set():
                shutdown.begin(driver, seconds)

    hooks = [calling_hook(jvm, begun, "countDown"), calling_hook(jvm, first_of(context, drained, os.getpid()), "join")]
    manager, in_seconds = jvm.org.apache.hadoop.util.ShutdownHookManager.get(), jvm.java.util.concurrent.TimeUnit.SECONDS
    for place, hook in enumerate(hooks):
        manager.addShutdownHook(hook, _HOOK_PRIORITY - place, int(seconds) + 1, in_seconds)
    watcher = threading.Thread(target=watch, name="jvm-shutdown", daemon=True)
    watcher.start()
    try:
        yield shutdown
    finally:
        shutdown.drained.set()
        left.set()
        with contextlib.suppress(Py4JError, OSError):  # the JVM has ended
            for hook in () if shutdown else hooks:
                manager.removeShutdownHook(hook)
            drained.complete(None)
            begun.countDown()
        watcher.join(timeout=1)

"""Drains a driver when Spark's JVM, not the driver, receives SIGTERM: from Airflow, Kubernetes or a person."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from sluiceway.errors import ConnectError
from sluiceway.worker.driver import Driver

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger(__name__)

# Spark stops its contexts and their Python workers in a Hadoop shutdown hook of priority 40. Higher priorities run first.
_HOOK_PRIORITY = 100


class Shutdown:
    """A ``java.lang.Runnable`` that drains the driver. True once the JVM is shutting down and accepts no more calls."""

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
        """Drain the driver and return when it has drained. The JVM calls this and waits for it."""
        self._begun = True
        self._driver.stop("Spark's JVM is shutting down")
        if not self.drained.wait(self._seconds):
            log.error("The connectors have not drained within %g s; Spark kills their tasks", self._seconds)


def accept_callbacks(context: SparkContext) -> None:
    """Let the JVM call Python objects, over a port that asks for the gateway's secret.

    Without it, any user of the machine could call the driver's objects. The JVM sends its secret if it is asked.
    """
    from pyspark.java_gateway import ensure_callback_server_started

    gateway: Any = context._gateway
    gateway.callback_server_parameters.auth_token = gateway.gateway_parameters.auth_token
    ensure_callback_server_started(gateway)


@contextlib.contextmanager
def drained_before_spark(context: SparkContext, driver: Driver, seconds: float) -> Iterator[Shutdown]:
    """Make a JVM that receives SIGTERM wait up to ``seconds`` for the driver to drain before Spark kills its tasks.

    Without this hook, Spark kills them at once, before their last commit. Runs on the driver.
    """
    from py4j.protocol import Py4JError

    jvm = context._jvm
    if jvm is None:
        raise ConnectError("The Spark context has been stopped, so its JVM cannot be watched.")
    shutdown = Shutdown(driver, seconds)
    accept_callbacks(context)
    # Never started. A Java object, unlike the Python one, keeps its identity, which removeShutdownHook needs.
    hook = jvm.java.lang.Thread(shutdown)
    manager = jvm.org.apache.hadoop.util.ShutdownHookManager.get()
    manager.addShutdownHook(hook, _HOOK_PRIORITY, int(seconds) + 1, jvm.java.util.concurrent.TimeUnit.SECONDS)
    try:
        yield shutdown
    finally:
        shutdown.drained.set()
        if not shutdown:
            with contextlib.suppress(Py4JError, OSError):  # the JVM is shutting down or has ended
                manager.removeShutdownHook(hook)

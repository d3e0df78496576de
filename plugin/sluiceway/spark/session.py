"""Makes the Spark session, and counts the slots that long-lived tasks can hold."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sluiceway.errors import SlotsError
from sluiceway.java_runtime import find_java
from sluiceway.spark.py_files import package_zip

if TYPE_CHECKING:
    from pyspark import SparkContext

# Long-lived tasks must run once each: no speculative twin, no retry behind the driver's back (the driver places a lost
# task anew itself, and says so), no waiting for a better place.
CONNECTOR_CONF = {
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    "spark.locality.wait": "0",
    "spark.ui.showConsoleProgress": "false",
}

# What a driver on this machine can do without, for a faster start.
LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_DAEMON, _LOCAL_DAEMON = "spark.python.daemon.module", "sluiceway.spark.local_daemon"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_LOCAL_SLOTS = 256  # tasks that one local context can hold; a slot costs nothing until it is used


def local_conf() -> dict[str, str]:
    """Return settings for local mode with the Python that runs this: what makes driver and Python workers start sooner."""
    from sluiceway.spark.class_archive import archive_options

    return {
        **LOCAL_CONF,
        _JAVA_OPTIONS: f"{LOCAL_CONF[_JAVA_OPTIONS]} {archive_options()}".rstrip(),
        _DAEMON: _LOCAL_DAEMON,
    }


def spark_context(app_name: str, conf: Mapping[str, str] | None = None, *, master: str | None = None) -> SparkContext:
    """Return the context of this process: the one spark-submit prepared, or with ``master`` a new one.

    Runs on the driver. The package itself is shipped to executors, but for local mode, where they run this same Python.
    """
    from pyspark import SparkConf, SparkContext

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("JAVA_HOME", str(find_java().home))
    settings = SparkConf()
    for key, value in CONNECTOR_CONF.items():
        settings.setIfMissing(key, value)
    for key, value in (conf or {}).items():
        settings.set(key, value)
    settings.setAppName(app_name)
    if master is not None:
        settings.setMaster(master)
    _forget_numpy()
    context = SparkContext.getOrCreate(settings)
    context.setLogLevel("WARN")
    if context.getConf().get(_DAEMON) != _LOCAL_DAEMON:  # else they are this Python's, which has the package
        context.addPyFile(str(package_zip()))
    return context


def _forget_numpy() -> None:
    """Have Py4J not ask whether what goes to the JVM is NumPy's: the first such question imports pandas, half a second long."""
    from py4j import protocol
    from pyspark.sql import types

    ours = tuple(kind for name in ("NumpyScalarConverter", "NumpyArrayConverter") if (kind := getattr(types, name, None)))
    protocol.INPUT_CONVERTER[:] = [each for each in protocol.INPUT_CONVERTER if not isinstance(each, ours)]


def local_context(app_name: str) -> SparkContext:
    """Return a new context on this machine with slots to spare: tasks wait for data, so there may be many more than cores."""
    # PySpark starts the JVM as a child with this environment; the JVM ends with this process.
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 1g pyspark-shell")
    return spark_context(app_name, local_conf(), master=f"local[{_LOCAL_SLOTS}]")


def slots(context: SparkContext) -> int:
    """Return how many tasks the application can run at once now (executor cores over ``spark.task.cpus``)."""
    jvm_context = context._jsc.sc()
    return int(jvm_context.maxNumConcurrentTasks(jvm_context.resourceProfileManager().defaultResourceProfile()))


def wait_for_slots(context: SparkContext, needed: int, timeout: float, go_on: Callable[[], bool] = lambda: True) -> None:
    """Wait until executors for ``needed`` tasks have registered; raise SlotsError after ``timeout`` seconds.

    ``go_on`` is asked now and then whether to wait any longer.

    A task that finds no slot would wait for ever in silence, because the tasks before it never end.
    """
    deadline = time.monotonic() + timeout
    while (have := slots(context)) < needed:
        if time.monotonic() > deadline or not go_on():
            raise SlotsError(
                f"The Spark application has {have} slot(s) on {context.master}, but its tasks need {needed}: each task of a "
                "connector holds one. Use local[N] with a larger N, or give the application more executor cores "
                "(spark.cores.max, spark.executor.instances, spark.executor.cores), or lower tasks.max."
            )
        time.sleep(0.2)

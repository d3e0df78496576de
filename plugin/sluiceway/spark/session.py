"""Creates the Spark context, and waits for enough slots for the connector's tasks."""

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

# Each task must run exactly once: no speculative copy, and no retry by Spark, because the driver itself restarts lost tasks and
# publishes that. These override spark-defaults.conf, whose values are meant for batch jobs.
REQUIRED_CONF = {
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
}

# A task's partition holds no data, so no executor is preferable and Spark need not wait for one.
CONNECTOR_CONF = {
    "spark.locality.wait": "0",
    "spark.ui.showConsoleProgress": "false",
}

# Makes drivers in local mode start faster, without features they do not need.
LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_DAEMON, _LOCAL_DAEMON = "spark.python.daemon.module", "sluiceway.spark.local_daemon"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_LOCAL_SLOTS = 256  # tasks that a local context can run at once; an unused slot costs nothing


def local_conf() -> dict[str, str]:
    """Return settings that make driver and Python workers start faster in local mode, with the Python that runs this."""
    from sluiceway.spark.class_archive import archive_options

    return {
        **LOCAL_CONF,
        _JAVA_OPTIONS: f"{LOCAL_CONF[_JAVA_OPTIONS]} {archive_options()}".rstrip(),
        _DAEMON: _LOCAL_DAEMON,
    }


def spark_context(app_name: str, conf: Mapping[str, str] | None = None, *, master: str | None = None) -> SparkContext:
    """Return this process's Spark context: the one that spark-submit has prepared, or with ``master`` a new one.

    Runs on the driver. Ships this package to the executors, except in local mode, where they run this Python.
    """
    from pyspark import SparkConf, SparkContext

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("JAVA_HOME", str(find_java().home))
    settings = SparkConf()
    for key, value in CONNECTOR_CONF.items():
        settings.setIfMissing(key, value)
    for key, value in {**(conf or {}), **REQUIRED_CONF}.items():
        settings.set(key, value)
    settings.setAppName(app_name)
    if master is not None:
        settings.setMaster(master)
    _forget_numpy()
    context = SparkContext.getOrCreate(settings)
    context.setLogLevel("WARN")
    if context.getConf().get(_DAEMON) != _LOCAL_DAEMON:  # otherwise the workers run this Python, which has the package
        context.addPyFile(str(package_zip()))
    return context


def _forget_numpy() -> None:
    """Remove PySpark's NumPy converters from Py4J: their first use imports pandas, which takes half a second."""
    from py4j import protocol
    from pyspark.sql import types

    numpy = tuple(kind for name in ("NumpyScalarConverter", "NumpyArrayConverter") if (kind := getattr(types, name, None)))
    protocol.INPUT_CONVERTER[:] = [each for each in protocol.INPUT_CONVERTER if not isinstance(each, numpy)]


def local_context(app_name: str) -> SparkContext:
    """Return a new context on this machine with many more slots than cores, because tasks mostly wait for data."""
    # PySpark starts the JVM as a child with these arguments. The JVM ends with this process.
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", "--driver-memory 1g pyspark-shell")
    return spark_context(app_name, local_conf(), master=f"local[{_LOCAL_SLOTS}]")


def slots(context: SparkContext) -> int:
    """Return how many tasks the registered executors can run at once (cores divided by ``spark.task.cpus``)."""
    jvm_context = context._jsc.sc()
    return int(jvm_context.maxNumConcurrentTasks(jvm_context.resourceProfileManager().defaultResourceProfile()))


def wait_for_slots(context: SparkContext, needed: int, timeout: float, keep_waiting: Callable[[], bool] = lambda: True) -> None:
    """Wait until executors for ``needed`` tasks have registered.

    A task without a slot would never start, and report nothing, because the tasks that hold the slots never end.

    Raises SlotsError after ``timeout`` seconds, or as soon as ``keep_waiting``, called several times a second, returns False.
    """
    deadline = time.monotonic() + timeout
    while (have := slots(context)) < needed:
        if time.monotonic() > deadline or not keep_waiting():
            raise SlotsError(
                f"The Spark application has {have} slot(s) on {context.master}, but its tasks need {needed}: each task of a "
                "connector holds one. Use local[N] with a larger N, or give the application more executor cores "
                "(spark.cores.max, spark.executor.instances, spark.executor.cores), or lower tasks.max."
            )
        time.sleep(0.2)

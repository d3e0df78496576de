"""Creates the Spark context, and counts its slots."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sluiceway.java_runtime import find_java
from sluiceway.spark.elastic import elastic_conf
from sluiceway.spark.import_path import use_one_pyspark
from sluiceway.spark.jvm_options import LIGHT
from sluiceway.spark.py_files import is_package_zip, package_zip
from sluiceway.spark.redaction import REDACTION, redaction
from sluiceway.spark.versions import check_jars, check_python_files

if TYPE_CHECKING:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

# Each task must run exactly once: no speculative copy, and no retry by Spark, because the driver itself restarts lost tasks and
# publishes that. (After the loss of an executor that is not the task's fault, Spark retries anyway; ``run_first_attempt`` refuses
# that.) These override spark-defaults.conf, whose values are meant for batch jobs.
REQUIRED_CONF = {
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
}

# A task's partition holds no data, so no executor is preferable and Spark need not wait for one. Each task starts on the first
# executor that registers, while Spark would wait for 80 % of them before it creates the context. The driver reads from the live
# status store which tasks run, so the store must not skip updates.
CONNECTOR_CONF = {
    "spark.locality.wait": "0",
    "spark.scheduler.minRegisteredResourcesRatio": "0",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.liveUpdate.period": "0",
}

# Makes drivers in local mode start faster, without features they do not need. The heap's young part grows to its limit before
# the first collection, whatever is alive. The dispatcher would have a thread for each slot.
LOCAL_CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": f"{LIGHT} -Xmn16m",
    "spark.rpc.netty.dispatcher.numThreads": "4",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}

_DAEMON, _LOCAL_DAEMON = "spark.python.daemon.module", "sluiceway.spark.local_daemon"
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"

log = logging.getLogger(__name__)

_SUBMISSION_SECONDS = 1.0  # that a thread may take between its start and the submission of its job
_LOCAL_SLOTS = 256  # tasks that a local context can run at once; an unused slot costs nothing


def local_conf() -> dict[str, str]:
    """Return settings that make driver and Python workers start faster in local mode, with the Python that runs this."""
    from sluiceway.spark.class_archive import archive_options

    return {
        **LOCAL_CONF,
        _JAVA_OPTIONS: f"{LOCAL_CONF[_JAVA_OPTIONS]} {archive_options()}".rstrip(),
        _DAEMON: _LOCAL_DAEMON,
    }


def spark_context(
    app_name: str,
    conf: Mapping[str, str] | None = None,
    *,
    master: str | None = None,
    resolve: Callable[[Mapping[str, str]], dict[str, str]] = dict,
) -> SparkContext:
    """Return this process's Spark context: the one that spark-submit has prepared, or with ``master`` a new one.

    ``resolve`` resolves references in settings that the Airflow task has left to the driver.

    Runs on the driver. Ships this package to the executors, except in local mode, where they run this Python.
    """
    use_one_pyspark()
    check_python_files()
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
    for key, value in elastic_conf(settings.get("spark.master", "local"), dict(settings.getAll())).items():
        settings.set(key, value)
    _resolve_references(settings, resolve)
    _forget_numpy()
    check_jars(settings)
    context = SparkContext.getOrCreate(settings)
    context.setLogLevel("WARN")
    if context.getConf().get(_DAEMON) != _LOCAL_DAEMON and not _ships_package(context):
        context.addPyFile(str(package_zip()))
    return context


def _resolve_references(settings: SparkConf, resolve: Callable[[Mapping[str, str]], dict[str, str]]) -> None:
    """Resolve references to config providers in Spark settings, and let Spark hide what they have become."""
    given = dict(settings.getAll())
    resolved = {key: value for key, value in resolve(given).items() if value != given[key]}
    for key, value in resolved.items():
        settings.set(key, value)
    if resolved:
        settings.set(REDACTION, "|".join(filter(None, (given.get(REDACTION), redaction(resolved)))))


def start_python_worker(context: SparkContext) -> None:
    """Make Spark start a Python worker on this machine, on another thread, so that the first task finds it there.

    Its start takes as long as that of the connector, which mostly waits for Kafka. Does nothing on a cluster.
    """
    if context.getConf().get(_DAEMON) != _LOCAL_DAEMON:
        return

    def run() -> None:
        try:
            context.parallelize([0], 1).mapPartitions(list).collect()
        except Exception as error:  # noqa: BLE001 (Py4J's errors have many types; a task that cannot start will say why)
            log.debug("No Python worker was started ahead of the tasks: %s", error)

    threading.Thread(target=run, name="python-worker", daemon=True).start()


def jvm_started_at(context: SparkContext) -> float:
    """Return when the driver's JVM was started, in seconds since the epoch."""
    jvm: Any = context._jvm
    return int(jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getStartTime()) / 1000


def _ships_package(context: SparkContext) -> bool:
    """Return whether spark-submit's ``--py-files`` have this package already.

    On YARN a second copy, which a driver in a container would make, fails every task: its bytes differ from the localized file.
    """
    submitted = ",".join(context.getConf().get(key) or "" for key in ("spark.submit.pyFiles", "spark.yarn.dist.pyFiles"))
    return any(is_package_zip(file) for file in submitted.split(","))


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


def cancel_jobs(context: SparkContext, group: str) -> None:
    """Cancel the jobs of a group, and those that a thread is about to submit. PySpark itself cannot do that.

    Spark 3 cancels only jobs that run. There, jobs of the next second are canceled by a second call.
    """
    spark: Any = context._jsc.sc()
    if not context.version.startswith("3."):
        spark.cancelJobGroupAndFutureJobs(group)
        return
    spark.cancelJobGroup(group)
    timer = threading.Timer(_SUBMISSION_SECONDS, spark.cancelJobGroup, [group])
    timer.daemon = True
    timer.start()


def activate(session: SparkSession) -> None:
    """Make a session the active one of the calling thread, where Spark looks up data sources and packages look for it."""
    jvm: Any = session._jvm
    name: str = session._jsparkSession.getClass().getName()  # Spark 4 has moved the class into another package
    getattr(jvm, name).setActiveSession(session._jsparkSession)

"""Runs a driver as the application of spark-submit, for one connector or for all connectors of a shared application.

Airflow operators submit it. Its exit codes are in ``sluiceway.exit_codes``.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if sys.path and Path(sys.path[0]) == Path(__file__).parent:
    del sys.path[0]  # spark-submit puts this folder first; its modules must not shadow others

from sluiceway import exit_codes
from sluiceway.config.connector import MICRO_BATCH, MODE
from sluiceway.config.properties import read_properties
from sluiceway.config.variables import resolver, worker_overrides
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.folders import write_atomically
from sluiceway.herder.loggers import Loggers, follow_cluster_levels
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.kafka.native_memory import limit_arenas
from sluiceway.package_imports import import_packages_first
from sluiceway.spark.application_watch import application_ended
from sluiceway.spark.import_path import use_one_pyspark, without_numpy
from sluiceway.spark.jvm_shutdown import drained_before_spark
from sluiceway.spark.launcher import SparkLauncher
from sluiceway.spark.parent_watch import stop_with_parent
from sluiceway.spark.session import jvm_started_at, spark_context, start_python_worker
from sluiceway.storage.factory import Stores, open_driver_stores
from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.model import ConnectorEntry, LeaseOwner
from sluiceway.telemetry.tracing import flush as flush_traces
from sluiceway.worker.application_members import ApplicationMembers, is_empty
from sluiceway.worker.application_placer import ApplicationPlacer
from sluiceway.worker.batches import Batches
from sluiceway.worker.connector_runner import ConnectorRunner, RunnerOutcome
from sluiceway.worker.driver import Driver, local_worker_id, stop_on_signals
from sluiceway.worker.driver_metrics import DriverMetrics
from sluiceway.worker.end_requests import EndRequests
from sluiceway.worker.kafka_channel import KafkaChannels
from sluiceway.worker.log_context import log_to_stderr
from sluiceway.worker.start_times import StartTimes
from sluiceway.worker.task_host.task_hosts import TaskHosts
from sluiceway.worker.task_launcher import TaskLauncher

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logging.getLogger("sluiceway.driver")


def main(arguments: list[str]) -> int:
    """Run the driver until its connectors have drained; return the exit code."""
    options = _parser().parse_args(arguments)
    log_to_stderr(f"[{options.connector or options.application}|worker] ")
    limit_arenas()
    import_packages_first()
    try:
        return _run(options)
    except ConnectError as error:
        log.error("%s: %s", options.connector or options.application, error)
        return exit_codes.FAILED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="driver_app", description=__doc__)
    parser.add_argument("--worker", type=Path, required=True, help="the worker's .properties file")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--connector", help="the connector's name in the config topic")
    what.add_argument("--application", help="run all connectors of this shared application, until SIGTERM")
    parser.add_argument("--mode", choices=("long-running", "micro-batch"), default="long-running")
    parser.add_argument("--parent-pid", type=int, help="drain when this process has ended")
    parser.add_argument("--times", type=json.loads, default={}, help="times of the start so far, as a JSON object")
    parser.add_argument("--owner", type=lambda text: LeaseOwner(*json.loads(text)), help="the Airflow task, as a JSON array")
    parser.add_argument(
        "--report",
        type=Path,
        help="write the number of moved records and whether batches ended to this local file, as JSON",
    )
    return parser


def _run(options: argparse.Namespace) -> int:
    times = StartTimes(options.connector or options.application, options.times)
    times.mark("Python driver started", _started_at())
    times.mark("Python modules imported")
    worker = WorkerConfig.of({**read_properties(options.worker), **worker_overrides()})
    use_plugin_path(worker.raw)
    jvm = os.getppid()
    use_one_pyspark()  # must precede the first import of PySpark
    with without_numpy():
        import pyspark  # noqa: F401 (imported here, before threads start)
    name = options.connector or options.application
    with _spark_and_stores(f"sluiceway-{name}", worker, times) as (context, stores):
        host = str(context.getConf().get("spark.driver.host") or socket.gethostname())
        metrics = DriverMetrics(worker, local_worker_id(), stores.config, stores.status, host)
        launcher = SparkLauncher(context, metrics.target)
        single = options.connector is not None
        task_hosts = TaskHosts(worker, local_worker_id(), stores, launcher, shares=not single)
        batches = Batches(worker, stores)
        sender = f"connector-{options.connector}" if single else f"application-{options.application}"
        channels = KafkaChannels(worker, local_worker_id(), stores, sender, metrics.url, owner=options.owner)
        runners = _Runners(channels, task_hosts, batches, single=single, bounded=options.mode == MICRO_BATCH)
        follow_cluster_levels(stores.config, Loggers(options.connector))
        if options.connector is not None:
            driver = _driver_of_one(options.connector, stores, runners)
            times.watch(stores)
        else:
            members = ApplicationMembers(options.application, worker, local_worker_id(), stores.status)
            placer = ApplicationPlacer(options.application, worker, stores.config, stores.status)

            def hosts(entry: ConnectorEntry) -> bool:
                return members.hosts(entry) and (not _is_batch(entry) or batches.is_due(entry.name))

            driver = Driver(
                stores.config, runners.create, hosts=hosts, is_free=members.is_free, place=placer.place, ended=batches.ended
            )

            def is_batch_here(entry: ConnectorEntry) -> bool:
                return not driver.stopping and entry.application == options.application and _is_batch(entry)

            batches.start(is_batch_here, driver.notify)
            _stop_when_empty(driver, stores.config, options.application)
        metrics.hosted = lambda: driver.hosted
        stop_on_signals(driver)
        slots_timeout = worker.duration("sluiceway.slots.timeout.ms").total_seconds()
        watch = stop_with_parent(driver, options.parent_pid, application_ended(context, launcher, slots_timeout))
        with drained_before_spark(context, driver, worker) as shutdown:
            outcomes = driver.run()
            times.close()
            batches.close()
            task_hosts.close()
            channels.close(taken_over=single and RunnerOutcome.FENCED in outcomes)
            metrics.close()
            flush_traces()
            application_is_over = watch.exit_code == exit_codes.APPLICATION_ENDED
            if not watch:
                watch.close()
            if options.report is not None:
                write_atomically(options.report, json.dumps({"records": runners.records, "ended": runners.batches_ended}))
    if os.getppid() == jvm and not shutdown:  # otherwise the JVM has ended or is shutting down
        context.stop()
    if RunnerOutcome.FENCED in outcomes and options.connector is not None:
        return exit_codes.FENCED
    if application_is_over:
        return exit_codes.APPLICATION_ENDED
    if options.application is not None:
        return exit_codes.DONE  # each connector's outcome is in its status
    return exit_codes.FAILED if RunnerOutcome.FAILED in outcomes else exit_codes.DONE


@contextlib.contextmanager
def _spark_and_stores(app_name: str, worker: WorkerConfig, times: StartTimes) -> Iterator[tuple[SparkContext, Stores]]:
    """Create the Spark context, which takes the JVM some seconds, and read the internal topics meanwhile.

    Closes the stores, but not the context.
    """
    with ThreadPoolExecutor(1, "spark-context") as pool:
        creating = pool.submit(spark_context, app_name, resolve=resolver(worker).resolve)
        with open_driver_stores(worker) as stores:
            times.mark("internal topics read")
            context = creating.result()
            times.mark("Spark context created")
            times.mark("driver's JVM started", jvm_started_at(context))
            start_python_worker(context)
            pool.shutdown()
            yield context, stores


@dataclass(frozen=True)
class _Runners:
    """Creates runners and counts the records that they move.

    ``single`` is True for a driver that ends when its one connector is paused, stopped or deleted. ``bounded`` is True if it runs
    a micro-batch; in a shared application, ``airflow.mode`` in each connector's config decides.
    """

    channels: KafkaChannels
    launcher: TaskLauncher
    batches: Batches
    single: bool
    bounded: bool
    created: list[ConnectorRunner] = field(default_factory=list)

    def create(self, connector: str) -> ConnectorRunner:
        entry = self.channels.config_store.snapshot().entry(connector)
        is_batch = not self.single and entry is not None and _is_batch(entry)
        runner = ConnectorRunner(
            connector,
            worker=self.channels.worker,
            config_store=self.channels.config_store,
            channel=self.channels.channel(connector),
            launcher=self.launcher,
            worker_id=self.channels.worker_id,
            exit_when_idle=self.single or is_batch,
            bounded=self.bounded or is_batch,
        )
        self.batches.launched(connector)
        if self.single:  # a shared application's driver may run for months, and reports no records
            self.created.append(runner)
        return runner

    @property
    def records(self) -> int:
        return sum(runner.records for runner in self.created)

    @property
    def batches_ended(self) -> bool:
        """Whether all micro-batches have moved what there was, rather than ended because they were told to."""
        return bool(self.created) and all(runner.batch_ended for runner in self.created)


def _started_at() -> float:
    """Return when this process was started, in seconds since the epoch; now, where the system does not tell."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])  # field 22 of proc(5)
        up = time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError):
        return time.time()
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")


def _driver_of_one(connector: str, stores: Stores, runners: _Runners) -> Driver:
    """Return the driver of a single connector. It ends when Airflow asks for that, and when the connector moves elsewhere."""
    stays, ends = _unless_moved(stores.config), EndRequests()

    def hosts(entry: ConnectorEntry) -> bool:
        return stays(entry) and not ends.concern(entry.name, local_worker_id())

    driver = Driver(stores.config, runners.create, only=[connector], hosts=hosts)
    ends.follow(stores.status, driver.notify)
    return driver


def _unless_moved(store: ConfigBackingStore) -> Callable[[ConnectorEntry], bool]:
    """Return a function that is False for a connector that a change of its config moves into another application."""
    state = store.snapshot()
    began = {name: entry.application for name in state.names() if (entry := state.entry(name)) is not None}
    return lambda entry: entry.application in (None, began.get(entry.name))


def _is_batch(entry: ConnectorEntry) -> bool:
    return (entry.config or {}).get(MODE) == MICRO_BATCH


def _stop_when_empty(driver: Driver, store: ConfigBackingStore, application: str) -> None:
    """Stop the driver with its application's last connector. Airflow removes the DAG then, but does not end the running task."""

    def check(kind: str = "connector", _name: str = "") -> None:
        if kind == "connector" and is_empty(store.snapshot(), application):
            driver.stop(f"no connector belongs to application {application}")

    store.on_change(check)
    check()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

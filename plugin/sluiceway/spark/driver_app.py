"""The application that spark-submit runs, as an Airflow operator submits it: one driver for one connector, or for those that
share an application.

Exit codes: 0 drained (paused, stopped, deleted, told to stop, micro-batch done), 1 failed, 3 fenced by a newer driver.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from pathlib import Path

if sys.path and Path(sys.path[0]) == Path(__file__).parent:
    del sys.path[0]  # spark-submit puts this folder there; its modules must not shadow others

from sluiceway import exit_codes
from sluiceway.config.connector import APPLICATION
from sluiceway.config.properties import read_properties
from sluiceway.config.variables import worker_overrides
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.folders import write_atomically
from sluiceway.herder.loggers import Loggers, follow_cluster_levels
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.spark.jvm_shutdown import drained_before_spark
from sluiceway.spark.launcher import SparkLauncher
from sluiceway.spark.parent_watch import stop_with_parent
from sluiceway.spark.session import spark_context
from sluiceway.spark.unpacked import without_archives
from sluiceway.storage.factory import open_stores
from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.model import ConnectorEntry
from sluiceway.worker.connector_runner import ConnectorRunner, Outcome
from sluiceway.worker.driver import Driver, local_worker_id, stop_on_signals
from sluiceway.worker.executor import log_to_stderr
from sluiceway.worker.kafka_channel import KafkaPort

_LAST_WORDS_SECONDS = 20.0  # that a driver may take, beside its tasks, to drain

log = logging.getLogger("sluiceway.driver")


def main(arguments: list[str]) -> int:
    """Run the connector until it is drained; return the exit code."""
    parser = argparse.ArgumentParser(prog="driver_app", description=__doc__)
    parser.add_argument("--worker", type=Path, required=True, help="the worker's .properties file")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--connector", help="the connector's name in the config topic")
    what.add_argument("--application", help="run all connectors whose sluiceway.application this is, until told to stop")
    parser.add_argument("--mode", choices=("long-running", "micro-batch"), default="long-running")
    parser.add_argument("--parent-pid", type=int, help="drain when this process is gone")
    parser.add_argument("--report", type=Path, help="a file on this machine that is to say at the end what was moved, as JSON")
    options = parser.parse_args(arguments)
    log_to_stderr(f"[{options.connector or options.application}|worker] ")
    try:
        return _run(options)
    except ConnectError as error:
        log.error("%s: %s", options.connector or options.application, error)
        return exit_codes.FAILED


def _run(options: argparse.Namespace) -> int:
    worker = WorkerConfig.of({**read_properties(options.worker), **worker_overrides()})
    use_plugin_path(worker.raw)
    worker_id = local_worker_id()
    jvm = os.getppid()
    sys.path[:] = without_archives(sys.path)  # PySpark is not imported yet
    context = spark_context(f"sluiceway-{options.connector or options.application}")
    launcher = SparkLauncher(context, slots_timeout=worker.duration("sluiceway.slots.timeout.ms").total_seconds())
    with open_stores(worker) as stores:
        runners: list[ConnectorRunner] = []

        def runner(name: str) -> ConnectorRunner:
            made = ConnectorRunner(
                name,
                worker=worker,
                config_store=stores.config,
                port=KafkaPort(name, worker, worker_id, stores),
                launcher=launcher,
                worker_id=worker_id,
                exit_when_idle=options.connector is not None,
                bounded=options.mode == "micro-batch",
            )
            runners.append(made)
            return made

        follow_cluster_levels(stores.config, Loggers(options.connector))
        if options.connector is not None:
            driver = Driver(stores.config, runner, only=[options.connector])
        else:
            driver = Driver(stores.config, runner, hosts=lambda entry: _shares(entry, options.application))
            _stop_when_unused(driver, stores.config, options.application)
        stop_on_signals(driver)
        stop_with_parent(driver, options.parent_pid)
        patience = worker.duration("task.shutdown.graceful.timeout.ms").total_seconds() + _LAST_WORDS_SECONDS
        with drained_before_spark(context, driver, patience) as shutdown:
            outcomes = driver.run()
            if options.report is not None:
                write_atomically(options.report, json.dumps({"records": sum(each.records for each in runners)}))
    if os.getppid() == jvm and not shutdown:  # else Spark is gone already, or going
        context.stop()
    if options.application is not None:
        return exit_codes.DONE  # told to stop; what became of single connectors is in their statuses
    if Outcome.FENCED in outcomes:
        return exit_codes.FENCED
    return exit_codes.FAILED if Outcome.FAILED in outcomes else exit_codes.DONE


def _shares(entry: ConnectorEntry | None, application: str) -> bool:
    return entry is not None and (entry.config or {}).get(APPLICATION) == application


def _stop_when_unused(driver: Driver, store: ConfigBackingStore, application: str) -> None:
    """End with the last connector: the application's DAG goes then, but Airflow would let its run go on."""

    def look(kind: str = "connector", _name: str = "") -> None:
        state = store.snapshot()
        if kind == "connector" and not any(_shares(state.entry(name), application) for name in state.names()):
            driver.stop("no connector is left")

    store.on_change(look)
    look()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

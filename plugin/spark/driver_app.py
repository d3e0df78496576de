"""The application that spark-submit runs: one driver for one connector, as an Airflow operator submits it.

Exit codes: 0 drained (paused, stopped, deleted, told to stop, micro-batch done), 1 failed, 3 fenced by a newer driver.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

if sys.path and Path(sys.path[0]) == Path(__file__).parent:
    del sys.path[0]  # spark-submit puts this folder there; its modules must not shadow others

from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.herder.loggers import Loggers, follow
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.spark.driver import Driver, local_worker_id, stop_on_signals
from sluiceway.spark.executor import log_to_stderr
from sluiceway.spark.jvm_shutdown import drained_before_spark
from sluiceway.spark.kafka_port import KafkaPort
from sluiceway.spark.launcher import SparkLauncher
from sluiceway.spark.parent_watch import EXIT_FAILED, stop_with_parent
from sluiceway.spark.runner import ConnectorRunner, Outcome
from sluiceway.spark.session import spark_context
from sluiceway.storage.factory import open_stores

EXIT_FENCED = 3

_LAST_WORDS_SECONDS = 20.0  # that a driver may take, beside its tasks, to drain

log = logging.getLogger("sluiceway.driver")


def main(arguments: list[str]) -> int:
    """Run the connector until it is drained; return the exit code."""
    parser = argparse.ArgumentParser(prog="driver_app", description=__doc__)
    parser.add_argument("--worker", type=Path, required=True, help="the worker's .properties file")
    parser.add_argument("--connector", required=True, help="the connector's name in the config topic")
    parser.add_argument("--mode", choices=("long-running", "micro-batch"), default="long-running")
    parser.add_argument("--parent-pid", type=int, help="drain when this process is gone")
    options = parser.parse_args(arguments)
    log_to_stderr(f"[{options.connector}|worker] ")
    try:
        return _run(options)
    except ConnectError as error:
        log.error("Connector %s: %s", options.connector, error)
        return EXIT_FAILED


def _run(options: argparse.Namespace) -> int:
    worker = WorkerConfig.of(read_properties(options.worker))
    use_plugin_path(worker.raw)
    worker_id = local_worker_id()
    jvm = os.getppid()
    context = spark_context(f"sluiceway-{options.connector}")
    launcher = SparkLauncher(context, slots_timeout=worker.duration("sluiceway.slots.timeout.ms").total_seconds())
    with open_stores(worker) as stores:

        def runner(name: str) -> ConnectorRunner:
            return ConnectorRunner(
                name,
                worker=worker,
                config_store=stores.config,
                port=KafkaPort(name, worker, worker_id, stores),
                launcher=launcher,
                worker_id=worker_id,
                exit_when_idle=True,
                bounded=options.mode == "micro-batch",
            )

        follow(stores.config, Loggers(options.connector))
        driver = Driver(stores.config, runner, only=[options.connector])
        stop_on_signals(driver)
        stop_with_parent(driver, options.parent_pid)
        patience = worker.duration("task.shutdown.graceful.timeout.ms").total_seconds() + _LAST_WORDS_SECONDS
        with drained_before_spark(context, driver, patience) as shutdown:
            outcomes = driver.run()
    if os.getppid() == jvm and not shutdown:  # else Spark is gone already, or going
        context.stop()
    if Outcome.FENCED in outcomes:
        return EXIT_FENCED
    return EXIT_FAILED if Outcome.FAILED in outcomes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs standalone mode: connectors from files on a local Spark context, with offsets in a file and all other state in memory."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from sluiceway import exit_codes
from sluiceway.config.connector_files import read_connector_file
from sluiceway.config.properties import read_properties
from sluiceway.config.worker import VALIDATES_REFERENCES, WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.folders import scratch_folder
from sluiceway.herder import Herder
from sluiceway.herder.plugin_classes import described
from sluiceway.kafka.reachability import check_brokers
from sluiceway.rest.server import RestServer
from sluiceway.spark.jvm_options import folder_variables
from sluiceway.spark.jvm_shutdown import drained_before_spark
from sluiceway.spark.launcher import SparkLauncher
from sluiceway.spark.parent_watch import stop_with_jvm
from sluiceway.spark.session import local_context
from sluiceway.stack.standard_input import StandardInput
from sluiceway.storage.factory import open_offsets_file
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.worker.connector_runner import ConnectorRunner
from sluiceway.worker.driver import Driver, stop_on_signals
from sluiceway.worker.driver_metrics import DriverMetrics
from sluiceway.worker.log_context import log_to_stderr
from sluiceway.worker.standalone_channel import DriverEndpoint, DriverEndpointServer, StandaloneControlChannel

log = logging.getLogger("sluiceway.standalone")


def run(worker_file: Path, connector_files: Sequence[Path]) -> int:
    """Run until SIGTERM or SIGINT and return the exit code: DONE, FAILED, or REFUSED if a connector file was refused."""
    with StandardInput(), scratch_folder("spark") as folder:
        os.environ.update(folder_variables(folder, os.environ, {}))
        return _run(worker_file, connector_files)


def _run(worker_file: Path, connector_files: Sequence[Path]) -> int:
    log_to_stderr("[worker] ")
    worker = WorkerConfig.of({VALIDATES_REFERENCES: "true", **read_properties(worker_file)})
    config, status, offsets = MemoryConfigBackingStore(), MemoryStatusBackingStore(), open_offsets_file(worker)
    offsets.start()
    herder = Herder(worker, config, status, offsets)
    endpoint = DriverEndpoint(status, offsets)
    server = DriverEndpointServer(endpoint)
    metrics = DriverMetrics(worker, worker.advertised_address, config, status, "127.0.0.1")
    rest = RestServer(worker, lambda: herder, metrics=metrics.beans)
    check_brokers(worker)
    rest.start()  # before Spark, so that a port in use is reported at once
    context = local_context("sluiceway-standalone")
    launcher = SparkLauncher(context, metrics.target)

    def runner(name: str) -> ConnectorRunner:
        return ConnectorRunner(
            name,
            worker=worker,
            config_store=config,
            channel=StandaloneControlChannel(name, worker, status, endpoint, server.services),
            launcher=launcher,
            worker_id=worker.advertised_address,
            exit_when_idle=False,
        )

    driver = Driver(config, runner)
    metrics.hosted = lambda: driver.hosted
    stop_on_signals(driver)
    watch = stop_with_jvm(driver, context)
    try:
        refused = _create(herder, connector_files)
        if refused:
            driver.stop("connector error")
        with drained_before_spark(context, driver, worker):
            driver.run()
            if not watch:
                watch.close()  # a JVM that was asked to end, too, now does
    finally:
        rest.stop()
        metrics.close()
        server.close()
        offsets.stop()
    if watch:
        log.error("Sluiceway ended: %s. See the log above for the cause, and start it again.", watch.reason)
        return exit_codes.FAILED
    log.info("Sluiceway stopped")
    return exit_codes.REFUSED if refused else exit_codes.DONE


def _create(herder: Herder, files: Sequence[Path]) -> bool:
    """Create the connectors of the files in order. Return True if one was refused, which ends the process as in Connect."""
    for file in files:
        try:
            config = read_connector_file(file)
            herder.create(config.get("name", ""), config)
        except ConnectError as error:
            log.error("Failed to create connector for %s", file)
            log.error("Stopping after connector error: %s", described(error))
            return True
        log.info("Created connector %s", config["name"])
    return False

"""Runs standalone mode: connectors from files on a local Spark context, with offsets in a file and all other state in memory."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway import exit_codes
from sluiceway.config.connector_files import read_connector_file
from sluiceway.config.environment import STANDARD_INPUT
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
from sluiceway.storage.factory import open_offsets_file
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.worker.connector_runner import ConnectorRunner
from sluiceway.worker.driver import Driver, stop_on_signals
from sluiceway.worker.driver_metrics import DriverMetrics
from sluiceway.worker.log_context import log_to_stderr
from sluiceway.worker.standalone_channel import DriverEndpoint, DriverEndpointServer, StandaloneControlChannel

if TYPE_CHECKING:
    from typing_extensions import Self


log = logging.getLogger("sluiceway.standalone")
_CHUNK = 1 << 16


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


class StandardInput:
    """Copies a descriptor into a pipe once a task has opened that. Processes that start inside ``with`` find the pipe.

    Nothing is read before: a process in the background must not read its terminal. What a task has not read when it stops is
    there for the next one.

    Args:
        descriptor: what is copied; standard input.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._folder = Path(tempfile.mkdtemp(prefix="sluiceway-input-"))
        self.pipe = self._folder / "stdin"
        os.mkfifo(self.pipe, 0o600)
        threading.Thread(target=self._copy, name="standard-input", daemon=True).start()

    def __enter__(self) -> Self:
        os.environ[STANDARD_INPUT] = str(self.pipe)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the pipe. The thread ends with the process, because a blocking read of a terminal cannot be interrupted."""
        os.environ.pop(STANDARD_INPUT, None)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _copy(self) -> None:
        try:
            writer = os.open(self.pipe, os.O_WRONLY)  # waits for the first reader
            os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)  # keeps the pipe and its contents while no task reads
            while chunk := os.read(self._descriptor, _CHUNK):
                while chunk:
                    chunk = chunk[os.write(writer, chunk) :]
        except OSError as error:
            log.warning("Standard input can no longer be read: %s", error)

"""Standalone mode: connectors from files, one local Spark session, configs and statuses in memory, offsets in a file."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from sluiceway import exit_codes
from sluiceway.config.properties import read_connector_file, read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.herder import Herder
from sluiceway.rest.server import RestServer
from sluiceway.spark.launcher import SparkLauncher
from sluiceway.spark.parent_watch import stop_with_jvm
from sluiceway.spark.session import local_context
from sluiceway.storage.file_offset_backing_store import FileOffsetBackingStore
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.worker.connector_runner import ConnectorRunner
from sluiceway.worker.control_channel import HostPort
from sluiceway.worker.driver import Driver, stop_on_signals
from sluiceway.worker.executor import log_to_stderr
from sluiceway.worker.standalone_channel import HostServer, TaskHost

log = logging.getLogger("sluiceway.standalone")


def run(worker_file: Path, connector_files: Sequence[Path]) -> int:
    """Run until SIGTERM or SIGINT; return the exit code (0 stopped, 1 cannot start, 3 a connector was refused)."""
    log_to_stderr("[worker] ")
    worker = WorkerConfig.of(read_properties(worker_file))
    filename = worker.values["offset.storage.file.filename"]
    if not filename:
        raise ConfigError('Missing required configuration "offset.storage.file.filename" which has no default value.')
    config, status, offsets = MemoryConfigBackingStore(), MemoryStatusBackingStore(), FileOffsetBackingStore(Path(str(filename)))
    offsets.start()
    herder = Herder(worker, config, status, offsets)
    host = TaskHost(status, offsets)
    server = HostServer(host)
    context = local_context("sluiceway-standalone")
    launcher = SparkLauncher(context)

    def runner(name: str) -> ConnectorRunner:
        return ConnectorRunner(
            name,
            worker=worker,
            config_store=config,
            port=HostPort(name, worker, status, host, server.services),
            launcher=launcher,
            worker_id=worker.advertised_address,
            exit_when_idle=False,
        )

    driver = Driver(config, runner)
    stop_on_signals(driver)
    orphaned = stop_with_jvm(driver, context)
    rest = RestServer(worker, lambda: herder)
    rest.start()
    try:
        refused = _create(herder, connector_files)
        if refused:
            driver.stop("connector error")
        driver.run()
    finally:
        rest.stop()
        server.close()
        offsets.stop()
    if orphaned:
        log.error("Sluiceway ended: %s. See above for why, and start it again.", orphaned.reason)
        return exit_codes.FAILED
    log.info("Sluiceway stopped")
    return exit_codes.REFUSED if refused else exit_codes.DONE


def _create(herder: Herder, files: Sequence[Path]) -> bool:
    """Create the connectors of the files in order; return whether one was refused, which ends the process as Connect does."""
    for file in files:
        try:
            config = read_connector_file(file)
            herder.create(config.get("name", ""), config)
        except ConnectError as error:
            log.error("Failed to create connector for %s", file)
            log.error("Stopping after connector error: %s", error)
            return True
        log.info("Created connector %s", config["name"])
    return False

"""Drivers on real internal topics whose tasks are threads of the test instead of Spark jobs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from sluiceway.herder import Herder
from sluiceway.storage.factory import Stores, open_stores
from sluiceway.worker.connector_runner import ConnectorRunner, RunnerOutcome
from sluiceway.worker.driver import Driver
from sluiceway.worker.kafka_channel import KafkaChannels
from sluiceway.worker.task_launcher import ThreadLauncher
from support.driver import worker_of, worker_properties
from support.eventually import LIMIT


class Bench:
    """Topics, a herder, and drivers whose tasks are threads."""

    def __init__(self, properties: dict[str, str], stores: Stores, folder: Path) -> None:
        self.worker = worker_of({**properties, "sluiceway.heartbeat.interval.ms": "300"})
        self.stores = stores
        self.folder = folder
        self.herder = Herder(self.worker, stores.config, stores.status, stores.offsets)
        self.source, self.sink = folder / "in.txt", folder / "out.txt"
        self._threads: list[tuple[Driver, object]] = []

    def driver(
        self, name: str, worker_id: str, launcher: ThreadLauncher | None = None, *, bounded: bool = False
    ) -> tuple[Driver, Future[list[RunnerOutcome]]]:
        def runner(connector: str) -> ConnectorRunner:
            return ConnectorRunner(
                connector,
                worker=self.worker,
                config_store=self.stores.config,
                channel=KafkaChannels(self.worker, worker_id, self.stores, name).channel(connector),
                launcher=launcher or ThreadLauncher(),
                worker_id=worker_id,
                exit_when_idle=True,
                bounded=bounded,
            )

        driver = Driver(self.stores.config, runner, only=[name])
        pool = ThreadPoolExecutor(1)
        outcome = pool.submit(driver.run)
        pool.shutdown(wait=False)
        self._threads.append((driver, outcome))
        return driver, outcome

    def states(self, name: str) -> tuple[str, list[str]]:
        status = self.herder.status(name)
        return status.connector.state.value, [task.state.value for task in status.tasks.values()]

    def stop(self) -> None:
        for driver, outcome in self._threads:
            driver.stop("end of test")
            outcome.result(timeout=LIMIT)  # type: ignore[attr-defined]


@contextlib.contextmanager
def open_bench(bootstrap: str, group: str, folder: Path, **worker: str) -> Iterator[Bench]:
    """Yield a bench with three topics of its own."""
    properties = worker_properties(bootstrap, group, **worker)
    with open_stores(worker_of(properties)) as stores:
        made = Bench(properties, stores, folder)
        try:
            yield made
        finally:
            made.stop()

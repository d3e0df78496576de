"""A connector that this process's Spark application runs, as a driver of spark-submit does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark import SparkContext

from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.spark.launcher import SparkLauncher
from sluiceway.storage.factory import Stores
from sluiceway.worker.connector_runner import ConnectorRunner
from sluiceway.worker.kafka_channel import KafkaChannels
from support.eventually import LIMIT, eventually


class Application:
    """A connector that an application with a local Spark master runs."""

    def __init__(self, name: str, worker: WorkerConfig, stores: Stores, context: SparkContext) -> None:
        self.name = name
        self.herder = Herder(worker, stores.config, stores.status, stores.offsets)
        self.runner = ConnectorRunner(
            name,
            worker=worker,
            config_store=stores.config,
            channel=KafkaChannels(worker, "driver:1", stores, name).channel(name),
            launcher=SparkLauncher(context),
            worker_id="driver:1",
            exit_when_idle=False,
        )
        self._config = stores.config
        stores.config.on_change(self._changed)

    def start(self, config: Mapping[str, str]) -> None:
        self.herder.create(self.name, config)
        self.runner.start()
        self.eventually("RUNNING")

    def _changed(self, kind: str, _name: str) -> None:
        if kind == "restart":
            for request in self._config.take_restart_requests():
                self.runner.restart(request)
        self.runner.notify()

    def leave(self) -> None:
        self.runner.leave()
        self.runner.join(LIMIT)
        assert not self.runner.is_alive()

    def eventually(self, state: str, within: float = LIMIT) -> None:
        eventually(lambda: self.states() == [state], within=within, what=f"{state}: {self.traces()}")

    def states(self) -> list[str]:
        return [task.state.value for task in self.herder.status(self.name).tasks.values()]

    def traces(self) -> list[str | None]:
        return [task.trace for task in self.herder.status(self.name).tasks.values()]

    def offsets(self) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        return [(dict(partition or {}), dict(offset or {})) for partition, offset in self.herder.offsets(self.name)]

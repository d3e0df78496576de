"""A sink connector for tests of alerts: files in a folder make it fail, hang, or slow down while it runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from sluiceway.api import SinkConnector, SinkRecord, SinkTask
from sluiceway.config.definition import ConfigDef
from sluiceway.errors import ConnectError

SINK = "support.monitored.FaultySinkConnector"
_SECONDS_PER_RECORD = 0.1


class Faults:
    """The files in a folder: each that exists is a fault."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def begin(self, fault: str) -> None:
        (self._folder / fault).touch()

    def end(self, fault: str) -> None:
        (self._folder / fault).unlink()

    def has(self, fault: str) -> bool:
        return (self._folder / fault).exists()


class FaultySinkTask(SinkTask):
    """Takes records. ``failing`` raises an error, ``hanging`` blocks, and ``slow`` takes 100 ms for each record."""

    def start(self, config: Mapping[str, str]) -> None:
        self._faults = Faults(Path(config["folder"]))

    def put(self, records: Sequence[SinkRecord]) -> None:
        if self._faults.has("failing"):
            raise ConnectError("the target does not exist")
        while records and self._faults.has("hanging"):
            time.sleep(0.1)
        if self._faults.has("slow"):
            time.sleep(_SECONDS_PER_RECORD * len(records))

    def stop(self) -> None:
        """Do nothing."""


class FaultySinkConnector(SinkConnector):
    """``refusing`` makes the connector's start fail."""

    task_class = FaultySinkTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)
        if Faults(Path(config["folder"])).has("refusing"):
            raise ConnectError("the target refuses connections")

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        return [self._config]

    def stop(self) -> None:
        """Do nothing."""

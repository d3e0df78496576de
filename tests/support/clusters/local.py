"""Spark in local mode: the driver's JVM runs the tasks, whose Python workers are its descendants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

from support.clusters.daemons import command_of, end_all, task_processes


@dataclass(frozen=True)
class LocalSpark:
    """This machine as a host of drivers; processes are found by the folder, which is in their environment."""

    folder: Path
    url: str = "local[256]"

    def start(self) -> None:
        """Do nothing: there are no daemons."""

    def stop(self) -> None:
        """Kill all processes that were started here."""
        end_all(str(self.folder))

    @staticmethod
    def tasks(jvm: psutil.Process, bootstrap: str) -> list[psutil.Process]:
        """Return the Python workers of a driver that run a task now."""
        return [each for each in task_processes(jvm, bootstrap) if "driver_app.py" not in command_of(each)]

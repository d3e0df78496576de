"""Starts a Connect cluster of ours in local mode: the REST API in a process of its own, and one driver for all connectors."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway.spark.session import local_conf
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.driver import submitted_application, worker_properties, write_properties
from support.peer import FILE_SOURCE, put_config, rest_answers

if TYPE_CHECKING:
    from typing_extensions import Self

_APPLICATION = "all"


class ConnectCluster:
    """A REST API at ``rest``, and the driver of a shared application that hosts the connectors created there.

    Use it as a context manager, which stops both. ``extra`` are worker properties.
    """

    def __init__(self, bootstrap: str, group_id: str, folder: Path, extra: Mapping[str, str] | None = None) -> None:
        port = free_port()
        self.rest = f"http://127.0.0.1:{port}"
        more = {"listeners": self.rest, "sluiceway.application.default": _APPLICATION, **(extra or {})}
        self.properties = worker_properties(bootstrap, group_id, **more)
        folder.mkdir(parents=True, exist_ok=True)
        self.worker_file = write_properties(folder / "worker.properties", self.properties)
        rest: list[str | Path] = [sys.executable, "-m", "sluiceway.cli.main", "rest", self.worker_file]
        self.rest_process = BackgroundProcess("rest", rest, folder)
        self.driver = submitted_application(_APPLICATION, self.worker_file, folder, master="local[64]", conf=local_conf())
        self._idle = folder / "idle.txt"
        self._idle.touch()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with self._stack:
            self._stack.callback(self.rest_process.stop, 60)
            self.rest_process.start()
            self.rest_process.wait_until(lambda: rest_answers(self.rest), 90)
            # A driver without any connector ends.
            put_config(self.rest, "idle", {"connector.class": FILE_SOURCE, "file": str(self._idle), "topic": "idle"})
            self._stack.callback(self.driver.stop, 60)
            self.driver.start()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

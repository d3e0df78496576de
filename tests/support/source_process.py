"""Runs a source's only task, whose offsets are in Kafka, in a process of its own that a test can kill."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping

from sluiceway.api import SourceConnector
from sluiceway.config.worker import WorkerConfig
from sluiceway.runtime.memory import MemoryConnectorContext, MemoryOffsets
from sluiceway.storage.factory import open_source_offsets
from support.engine import RunningTask
from support.processes import fresh_processes


def stored_offsets(config: Mapping[str, str], worker: Mapping[str, str]) -> MemoryOffsets:
    """Return the offsets of a connector that Kafka has."""
    store = open_source_offsets(WorkerConfig.of(worker), config)
    store.start()
    try:
        return MemoryOffsets(store.all(config["name"]))
    finally:
        store.stop()


def task_config(kind: type[SourceConnector], config: Mapping[str, str], offsets: MemoryOffsets | None = None) -> dict[str, str]:
    """Return the config of the only task, as the connector makes it with these offsets."""
    connector = kind()
    connector.initialize(MemoryConnectorContext(offsets))
    connector.start(config)
    try:
        [made] = connector.task_configs(1)
        return dict(made)
    finally:
        connector.stop()


def run_task(
    config: dict[str, str],
    worker: dict[str, str],
    prepare: Callable[..., None] | None = None,
    arguments: tuple[object, ...] = (),
) -> None:
    """Run a task until it ends; the entry point of ``SourceProcess``."""
    if prepare is not None:
        prepare(*arguments)
    store = open_source_offsets(WorkerConfig.of(worker), config)
    store.start()
    with RunningTask(config, worker, store=store) as task:
        result = task.join(within=3600)
        print(result.trace or "", file=sys.stderr, flush=True)
        sys.exit(1 if result.failed else 0)


def add_packages(folder: str) -> None:
    """Let a process import packages of a folder, if it is given one: a ``prepare``."""
    if folder:
        sys.path.append(folder)


class SourceProcess:
    """A task in a process of its own. Leaving the context kills it if it still runs.

    ``prepare`` is called in the process first, with ``arguments``: such as one that lets it die at some point.
    """

    def __init__(
        self,
        config: Mapping[str, str],
        worker: Mapping[str, str],
        prepare: Callable[..., None] | None = None,
        arguments: tuple[object, ...] = (),
    ) -> None:
        given = (dict(config), dict(worker), prepare, arguments)
        self._process = fresh_processes().Process(target=run_task, args=given, daemon=True)

    def __enter__(self) -> SourceProcess:
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.join()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None, "the process has not been started"
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.is_alive()

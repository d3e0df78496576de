"""Clusters between which tests move connectors, and files that grow meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from sluiceway.herder import Herder
from sluiceway.rest.server import RestServer
from sluiceway.storage.factory import open_stores
from sluiceway.worker.connector_runner import ConnectorRunner
from sluiceway.worker.driver import Driver
from sluiceway.worker.kafka_channel import KafkaChannels
from sluiceway.worker.task_launcher import ThreadLauncher
from support.driver import worker_of, worker_properties
from support.eventually import LIMIT, eventually


class SluicewayInThreads:
    """A REST API, and a driver of all connectors, in this process. Use it as a context manager, which starts the REST API."""

    def __init__(self, bootstrap: str, group: str, **more: str) -> None:
        listeners = {"listeners": "http://127.0.0.1:0"}
        self._worker = worker_of(worker_properties(bootstrap, group, **listeners, **more))
        self._stack = ExitStack()

    @property
    def rest(self) -> str:
        """The address of the REST API."""
        return self._server.addresses[0]

    def __enter__(self) -> SluicewayInThreads:
        stores = self._stores = self._stack.enter_context(open_stores(self._worker))
        self._server = RestServer(self._worker, lambda: Herder(self._worker, stores.config, stores.status, stores.offsets))
        self._server.start()
        self._stack.callback(self._server.stop)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start_driver(self) -> None:
        driver = Driver(self._stores.config, self._runner)
        pool = ThreadPoolExecutor(1)
        running = pool.submit(driver.run)
        self._stack.callback(pool.shutdown)
        self._stack.callback(running.result, timeout=LIMIT)
        self._stack.callback(driver.stop, "end of test")

    def _runner(self, name: str) -> ConnectorRunner:
        worker_id = f"{self._worker.group_id}:1"
        return ConnectorRunner(
            name,
            worker=self._worker,
            config_store=self._stores.config,
            channel=KafkaChannels(self._worker, worker_id, self._stores, name).channel(name),
            launcher=ThreadLauncher(),
            worker_id=worker_id,
            exit_when_idle=False,
        )


def started(command: list[str]) -> subprocess.Popen[str]:
    """Start a command that moves connectors, whose output ``completed`` shows."""
    shows_stacks = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=shows_stacks)


def completed(move: subprocess.Popen[str], command: list[str], connectors: int) -> None:
    """Wait until so many connectors have moved. If the move failed because of a kill, the command must succeed now."""
    said = _output(move)
    if move.returncode != 0:
        again = started(command)
        said += _output(again)
        assert again.returncode == 0, said
    assert f"{connectors} of {connectors} connectors have moved" in said, said


def _output(move: subprocess.Popen[str]) -> str:
    """Return what a command has said once it ends."""
    try:
        return move.communicate(timeout=LIMIT)[0]
    except subprocess.TimeoutExpired:
        os.kill(move.pid, signal.SIGABRT)  # shows where it waits
        said = move.communicate(timeout=LIMIT)[0]
        raise AssertionError(f"The command has not ended within {LIMIT:g} s:\n{said}") from None


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def complete(path: Path, expected: list[str], within: float = LIMIT) -> list[str]:
    """Wait until a sink's file has every expected line, and return the lines that it has."""
    wanted = set(expected)
    eventually(
        lambda: wanted <= set(lines_of(path)),
        within=within,
        what=f"all {len(expected)} lines in {path}",
    )
    return lines_of(path)


def file_source(file: Path, topic: str, **more: str) -> Mapping[str, str]:
    return {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(file), "topic": topic, **more}


def file_sink(file: Path, topics: str, **more: str) -> Mapping[str, str]:
    return {"connector.class": "FileStreamSink", "tasks.max": "1", "file": str(file), "topics": topics, **more}

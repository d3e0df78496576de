"""A verifiable source on a cluster, with a REST server, a supervisor of its driver, and checks of status and records."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import psutil

from sluiceway.rest.client import ConnectClient
from sluiceway.stack.ports import free_port, port_is_open
from sluiceway.stack.process import BackgroundProcess
from support.clusters.deployments import Deployment
from support.clusters.poller import Poller
from support.clusters.records import Records
from support.clusters.supervisor import Supervisor
from support.driver import worker_properties, write_properties
from support.eventually import LIMIT, eventually
from support.faults.cluster import Cluster
from support.guard import Guard

RATE = 50  # records per second and task
FLUSH_SECONDS = 2.0
#: The maximum of records that one loss of a task may repeat: one flush interval's, and those of a slow commit.
BATCH = int(RATE * (FLUSH_SECONDS + 2.5))
START_SECONDS = 120.0

_CONVERTERS = {
    "key.converter": "JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter": "JsonConverter",
    "value.converter.schemas.enable": "false",
    "offset.flush.interval.ms": str(int(FLUSH_SECONDS * 1000)),
}


class Submitter(Protocol):
    """Keeps a connector's driver running: ``Supervisor``, or an Airflow task."""

    def start(self) -> None: ...

    def is_running(self) -> bool: ...

    @property
    def jvm(self) -> psutil.Process | None:
        """The running spark-submit, in client mode the driver's JVM; None if there is none."""

    def exit_codes(self) -> Sequence[int]:
        """Return spark-submit's exit codes so far, if they are known."""

    def log_tail(self) -> str: ...

    def stop(self) -> None: ...


SubmitterOf = Callable[[Deployment, str, Path, Mapping[str, str]], Submitter]
"""Returns a submitter for a deployment, a connector's name, a worker file and the connector's config."""


def stop_rest(folder: str) -> None:
    """Stop the REST server whose files are in a folder, from any process."""
    BackgroundProcess("rest", [], Path(folder)).stop(5)


class ClusterConnector:
    """A source with ``tasks`` tasks, whose driver runs on a cluster as long as its submitter does.

    Args:
        deployment: where its driver runs.
        bootstrap: the broker's address.
        folder: a folder of its own.
        name: the connector's name, also that of its worker group and its topic.
        exactly_once: True for a worker with exactly-once support.
        tasks: the number of tasks.
        submitter: makes what submits the driver.
    """

    def __init__(
        self,
        deployment: Deployment,
        bootstrap: str,
        folder: Path,
        name: str,
        *,
        exactly_once: bool,
        tasks: int = 2,
        submitter: SubmitterOf = Supervisor,
    ) -> None:
        self.deployment, self.bootstrap, self.name = deployment, bootstrap, name
        self.exactly_once, self.tasks = exactly_once, tasks
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        support = {"exactly.once.source.support": "enabled" if exactly_once else "disabled"}
        given = {**_CONVERTERS, **support, "listeners": f"http://127.0.0.1:{port}"}
        self.worker_file = write_properties(folder / "worker.properties", worker_properties(bootstrap, name, **given))
        self._guard = Guard(stop_rest, folder)
        rest = [sys.executable, "-m", "sluiceway.cli.main", "rest", str(self.worker_file)]
        self._rest = BackgroundProcess("rest", rest, folder)
        self._rest.start()
        self._rest.wait_until(lambda: port_is_open("127.0.0.1", port), START_SECONDS)
        self.client = ConnectClient(f"http://127.0.0.1:{port}")
        Cluster(bootstrap).create(name)
        config = {
            "connector.class": "VerifiableSource",
            "topic": name,
            "tasks.max": str(tasks),
            "throughput": str(RATE),
            "batch.size": "10",
            "complete.record.data": "true",
        }
        self.client.create(name, config)
        self.written = Records(bootstrap, name, tasks, "read_uncommitted")
        self.committed = Records(bootstrap, name, tasks, "read_committed")
        self.poller = Poller(lambda: self.client.status(name), self.written)
        self.supervisor = submitter(deployment, name, self.worker_file, config)

    def start(self) -> float:
        """Submit the driver and wait until all tasks make records; return the seconds that this took."""
        started = time.time()
        self.supervisor.start()
        return self.await_stable(started) - started

    def await_stable(self, since: float, seconds: float = 2.0, within: float = START_SECONDS) -> float:
        """Wait until all tasks have been RUNNING for some seconds after a time; return when they began to be."""

        def stable() -> float:
            began = self.poller.stable_since
            return began if began is not None and time.time() - max(began, since) >= seconds else 0.0

        try:
            return eventually(stable, within=within, what=f"RUNNING tasks of {self.name}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.poller.story(since)}\n{self.supervisor.log_tail()}") from None

    def pause(self) -> None:
        """Pause the connector and wait for the end of its driver."""
        self.client.pause(self.name)
        eventually(lambda: not self.supervisor.is_running(), what=f"the end of the driver\n{self.supervisor.log_tail()}")

    def await_executors(self, within: float = LIMIT) -> None:
        """Wait until the application has an executor for each task, so that killing one is always possible."""
        eventually(lambda: len(self.executors()) >= self.tasks, within=within, what=f"the executors of {self.name}")

    def executors(self) -> list[psutil.Process]:
        """Return the JVMs of the executors."""
        return self.deployment.executors(self.name)

    def drivers(self) -> list[psutil.Process]:
        """Return the Python drivers, of which there should be one."""
        return self.deployment.drivers(self.name)

    def driver_jvm(self) -> psutil.Process | None:
        """Return spark-submit's process, in client mode the driver's JVM; None if there is none."""
        return self.supervisor.jvm

    def worker_id(self) -> str:
        """Return the driver that publishes the connector's status, by the last answer of the REST API."""
        return self.poller.worker_id

    def exits(self) -> list[int]:
        """Return the exit codes of spark-submit, in client mode those of the drivers."""
        return list(self.supervisor.exit_codes())

    def log_tail(self) -> str:
        return self.supervisor.log_tail()

    def missing(self) -> int:
        return sum(each.missing for each in self.committed.tasks)

    def doubled(self) -> list[int]:
        """Return the number of repeated records of each task."""
        return [each.doubled for each in self.committed.tasks]

    def close(self) -> None:
        self.supervisor.stop()
        self.poller.close()
        for each in (self.written, self.committed):
            each.close()
        self.client.close()
        self._guard.close()


@contextlib.contextmanager
def on_cluster(
    deployment: Deployment,
    bootstrap: str,
    folder: Path,
    name: str,
    *,
    exactly_once: bool,
    submitter: SubmitterOf = Supervisor,
) -> Iterator[ClusterConnector]:
    """Yield a connector whose tasks run; kill its driver at the end."""
    made = ClusterConnector(deployment, bootstrap, folder / name, name, exactly_once=exactly_once, submitter=submitter)
    try:
        made.start()
        yield made
    finally:
        made.close()

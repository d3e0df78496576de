"""Sinks of several formats in one shared Spark application, with a REST server and a supervisor of the driver."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from sluiceway.rest.client import ConnectClient, RestError
from sluiceway.stack.ports import free_port, port_is_open
from sluiceway.stack.process import BackgroundProcess
from support.clusters.connector import START_SECONDS, stop_rest
from support.clusters.deployments import Deployment
from support.clusters.supervisor import Supervisor
from support.driver import worker_properties, write_properties
from support.eventually import eventually
from support.frames.outputs import Offsets, Output
from support.guard import Guard

_CHANGE_SECONDS = 60.0  # for a pause, a stop or a start on a busy machine

_POLL_SECONDS = 0.2  # a poll lists all files of a sink


@dataclass(frozen=True)
class Sink:
    """A sink connector and what it writes."""

    name: str
    output: Output


class SinkApplication:
    """A driver that hosts a sink of each output, all of one topic.

    Args:
        deployment: where the driver runs.
        bootstrap: the broker's address.
        folder: a folder of its own.
        name: the application's name, also that of its worker group.
        topic: the topic that all sinks read.
        outputs: what the sinks write.
        more: more config keys of each sink.
    """

    def __init__(
        self, deployment: Deployment, bootstrap: str, folder: Path, name: str, topic: str, outputs: Sequence[Output], **more: str
    ) -> None:
        self.deployment, self.bootstrap, self.name, self.topic = deployment, bootstrap, name, topic
        self.sinks = [Sink(f"{name}-{output.format}-{number}", output) for number, output in enumerate(outputs)]
        folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        settings = {"listeners": f"http://127.0.0.1:{port}", "offset.flush.interval.ms": "1000"}
        worker = write_properties(folder / "worker.properties", worker_properties(bootstrap, name, **settings))
        self._guard = Guard(stop_rest, folder)
        self._rest = BackgroundProcess("rest", [sys.executable, "-m", "sluiceway.cli.main", "rest", str(worker)], folder)
        self._rest.start()
        self._rest.wait_until(lambda: port_is_open("127.0.0.1", port), START_SECONDS)
        self.client = ConnectClient(f"http://127.0.0.1:{port}")
        given = {key.replace("_", "."): text for key, text in more.items()}
        for sink in self.sinks:
            self.client.create(sink.name, {**self._config(sink), **given})
        self.supervisor = Supervisor(deployment, name, worker, {}, shared=True)

    def _config(self, sink: Sink) -> dict[str, str]:
        return {
            **sink.output.config(sink.name, self.topic),
            "topics": self.topic,
            "tasks.max": "1",
            "sluiceway.application": self.name,
            "consumer.override.session.timeout.ms": "6000",
            "consumer.override.heartbeat.interval.ms": "1000",
        }

    def start(self) -> None:
        """Submit the driver and wait until all tasks run."""
        self.supervisor.start()
        self.await_states("RUNNING", within=START_SECONDS)

    # What kills need.

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
        """Return the driver that publishes the status of the first sink."""
        return str(self.client.status(self.sinks[0].name)["connector"]["worker_id"])

    # States and offsets in the REST API.

    def states(self, sink: Sink) -> list[str]:
        status = self.client.status(sink.name)
        return [status["connector"]["state"], *(each["state"] for each in status["tasks"])]

    def await_states(self, state: str, within: float = _CHANGE_SECONDS) -> None:
        """Wait until connectors and tasks are in a state; STOPPED connectors have no tasks."""
        expected = [state] if state == "STOPPED" else [state, state]
        for sink in self.sinks:
            eventually(
                lambda sink=sink: self.states(sink) == expected,
                within=within,
                what=f"{state} of {sink.name}\n{self.client.status(sink.name)}\n{self.supervisor.log_tail()}",
            )

    def offsets(self, sink: Sink) -> Offsets:
        """Return the offsets in the REST API, without partitions that have none."""
        found = self.client.offsets(sink.name)
        return {each["partition"]["kafka_partition"]: each["offset"]["kafka_offset"] for each in found if each["offset"]}

    def stop_sinks(self) -> None:
        for sink in self.sinks:
            self.client.stop(sink.name)
        self.await_states("STOPPED")

    def resume_sinks(self) -> None:
        for sink in self.sinks:
            self.client.resume(sink.name)

    def set_offset(self, sink: Sink, partition: int, offset: int) -> None:
        """Set an offset of a stopped sink as soon as its consumer group is empty."""
        edit = {
            "partition": {"kafka_topic": self.topic, "kafka_partition": partition},
            "offset": {"kafka_offset": offset},
        }

        def altered() -> bool:
            try:
                self.client.alter_offsets(sink.name, [edit])
            except RestError as error:
                refused.append(str(error))
                return False
            return True

        refused: list[str] = []
        try:
            eventually(altered, within=_CHANGE_SECONDS, what=f"PATCH of the offsets of {sink.name}")
        except AssertionError as error:
            raise AssertionError(f"{error}: {refused[-1:]}") from None

    def await_data(self, expected: Offsets, within: float) -> dict[str, float]:
        """Wait until all sinks have committed these offsets with their data; return each format's time, in monotonic seconds."""
        reached: dict[str, float] = {}

        def all_reached() -> bool:
            time.sleep(_POLL_SECONDS)
            for sink in self.sinks:
                if sink.output.format not in reached and _covers(sink.output.offsets(), expected):
                    reached[sink.output.format] = time.monotonic()
            return len(reached) == len(self.sinks)

        try:
            eventually(all_reached, within=within, what=f"data up to {expected}")
        except AssertionError as error:
            late = [sink for sink in self.sinks if sink.output.format not in reached]
            seen = [f"{sink.name}: {sink.output.offsets()} {self.client.status(sink.name)}" for sink in late]
            raise AssertionError("\n".join([str(error), *seen, self.supervisor.log_tail()])) from None
        return reached

    def close(self) -> None:
        self.supervisor.stop()
        self.client.close()
        self._guard.close()


@contextlib.contextmanager
def sink_application(
    deployment: Deployment, bootstrap: str, folder: Path, name: str, topic: str, outputs: Sequence[Output], **more: str
) -> Iterator[SinkApplication]:
    """Yield an application whose sinks run; kill its driver at the end."""
    made = SinkApplication(deployment, bootstrap, folder / name, name, topic, outputs, **more)
    try:
        made.start()
        yield made
    finally:
        made.close()


def _covers(found: Offsets, expected: Offsets) -> bool:
    return all(found.get(partition, 0) >= offset for partition, offset in expected.items())

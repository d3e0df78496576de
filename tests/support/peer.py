"""Runs Kafka Connect 4.3.0 workers beside Sluiceway, for comparisons and handovers."""

from __future__ import annotations

import contextlib
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import httpx
import psutil

from sluiceway.errors import ConnectError
from sluiceway.java_runtime import find_java
from sluiceway.stack import maven
from sluiceway.stack.broker import JVM_OPTIONS, KAFKA_VERSION, LOGGING_COORDINATES
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.eventually import LIMIT, eventually
from support.guard import Guard, stop

if TYPE_CHECKING:
    from typing_extensions import Self

COORDINATES = (
    *(f"org.apache.kafka:connect-{part}:{KAFKA_VERSION}" for part in ("runtime", "file", "json", "transforms")),
    *LOGGING_COORDINATES,
)
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"

_JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
_LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %X{connector.context}%m (%c:%L)%n
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
"""


class _Peer:
    """A Connect worker process with its REST address. Use it as a context manager, which stops it."""

    def __init__(
        self,
        main_class: str,
        workdir: Path,
        worker: Mapping[str, str],
        connectors: Sequence[Path] = (),
        plugins: Sequence[Path] = (),
    ) -> None:
        self.workdir = workdir.absolute()
        self.workdir.mkdir(parents=True, exist_ok=True)
        port = free_port()
        self.rest = f"http://127.0.0.1:{port}"
        # Kafka's own plugins have manifests, whose reading takes a fraction of a scan. Other plugins may have none.
        discovery = "only_scan" if plugins or "plugin.path" in worker else "service_load"
        properties = {"listeners": self.rest, "plugin.discovery": discovery, **worker}
        config, log4j = self.workdir / "worker.properties", self.workdir / "log4j2.properties"
        write_properties(config, properties)
        log4j.write_text(_LOG4J)
        jars = maven.resolve(COORDINATES, title=f"Kafka Connect {KAFKA_VERSION}")
        options = shlex.split(os.environ.get(JVM_OPTIONS, ""))  # as Kafka's scripts do
        command: list[str | Path] = [
            find_java().executable,
            "-Xms256m",
            "-Xmx2g",
            *options,
            f"-Dlog4j2.configurationFile={log4j}",
        ]
        command += ["-cp", maven.classpath([*jars, *plugins]), main_class, config, *connectors]
        self._process = BackgroundProcess("connect", command, self.workdir)
        self._guard: Guard | None = None

    @property
    def log(self) -> Path:
        """The worker's log file."""
        return self._process.log

    @property
    def pid(self) -> int | None:
        """The worker's process id while it runs."""
        return self._process.status().pid

    def start(self, timeout: float = 90.0) -> None:
        """Start the worker and wait until its REST API serves requests that need the cluster."""
        self._guard = self._guard or Guard(stop, self.workdir, self._process.name)
        self._process.start()
        try:
            self._process.wait_until(lambda: rest_answers(self.rest), timeout)
        except ConnectError:
            self._process.stop()
            raise

    def stop(self) -> None:
        """Stop the worker with SIGTERM, so that it commits its offsets, and wait until it has ended."""
        self._process.stop(timeout=60)
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def cpu_seconds(self) -> float:
        """Return the worker's CPU time in seconds, user and system."""
        pid = self.pid
        if pid is None:
            msg = f"the worker does not run; its log: {self.log}"
            raise ConnectError(msg)
        times = psutil.Process(pid).cpu_times()
        return times.user + times.system

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


class PeerDistributed(_Peer):
    """A distributed worker. ``topics`` names the config, offset and status topic; ``extra`` are worker properties."""

    def __init__(
        self, bootstrap: str, group_id: str, workdir: Path, topics: tuple[str, str, str], extra: Mapping[str, str] | None = None
    ) -> None:
        worker = {"bootstrap.servers": bootstrap, "group.id": group_id}
        worker |= {"key.converter": _JSON_CONVERTER, "value.converter": _JSON_CONVERTER}
        for store, topic in zip(("config", "offset", "status"), topics, strict=True):
            worker |= {f"{store}.storage.topic": topic, f"{store}.storage.replication.factor": "1"}
        worker |= {"offset.storage.partitions": "5", "offset.flush.interval.ms": "1000"}
        # No other worker joins, so the group need not wait for a worker that left.
        worker |= {"scheduled.rebalance.max.delay.ms": "0"}
        super().__init__("org.apache.kafka.connect.cli.ConnectDistributed", workdir, worker | dict(extra or {}))


class PeerStandalone(_Peer):
    """A standalone worker with the given connectors, each a dict of properties; its offsets are in ``offsets_file``.

    ``plugins`` are further jars for its class path.
    """

    def __init__(
        self,
        bootstrap: str,
        workdir: Path,
        connectors: Sequence[Mapping[str, str]],
        worker: Mapping[str, str] | None = None,
        plugins: Sequence[Path] = (),
    ) -> None:
        workdir.mkdir(parents=True, exist_ok=True)
        self.offsets_file = Path((worker or {}).get("offset.storage.file.filename", workdir.absolute() / "connect.offsets"))
        properties = {"bootstrap.servers": bootstrap, "offset.storage.file.filename": str(self.offsets_file)}
        properties |= {"key.converter": _JSON_CONVERTER, "value.converter": _JSON_CONVERTER}
        properties |= {"offset.flush.interval.ms": "1000"}
        files = [workdir.absolute() / f"connector-{number}.properties" for number in range(len(connectors))]
        for file, config in zip(files, connectors, strict=True):
            write_properties(file, config)
        super().__init__(
            "org.apache.kafka.connect.cli.ConnectStandalone", workdir, properties | dict(worker or {}), files, plugins
        )


def write_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Write a Java .properties file."""
    lines = (f"{key}={value}".replace("\\", "\\\\") for key, value in properties.items())
    path.write_text("\n".join(lines) + "\n")


def rest_answers(rest: str) -> bool:
    """Return True if a Connect REST API serves requests for connectors, not only its version."""
    with contextlib.suppress(httpx.HTTPError):
        answer = httpx.get(f"{rest}/connectors", timeout=5)
        return answer.status_code == httpx.codes.OK and bool(answer.content)  # it has none at first
    return False


def list_connectors(rest: str) -> list[str]:
    """Return the names of the connectors."""
    return _call("GET", f"{rest}/connectors")


def put_config(rest: str, name: str, config: Mapping[str, str]) -> dict[str, Any]:
    """Create a connector or change its config."""
    return _call("PUT", f"{rest}/connectors/{name}/config", dict(config))


def get_config(rest: str, name: str) -> dict[str, str]:
    """Return a connector's config."""
    return _call("GET", f"{rest}/connectors/{name}/config")


def get_status(rest: str, name: str) -> dict[str, Any]:
    """Return a connector's status from the REST API."""
    return _call("GET", f"{rest}/connectors/{name}/status")


def get_offsets(rest: str, name: str) -> dict[str, Any]:
    """Return a connector's stored offsets."""
    return _call("GET", f"{rest}/connectors/{name}/offsets")


def change_state(rest: str, name: str, verb: str) -> None:
    """Send ``pause``, ``resume`` or ``stop`` to a connector."""
    _call("PUT", f"{rest}/connectors/{name}/{verb}")


def restart(rest: str, name: str) -> None:
    """Restart a connector with its tasks."""
    _call("POST", f"{rest}/connectors/{name}/restart?includeTasks=true")


def delete_connector(rest: str, name: str) -> None:
    """Delete a connector."""
    _call("DELETE", f"{rest}/connectors/{name}")


def states(rest: str, name: str) -> list[str]:
    """Return the states of a connector and of its tasks, in this order; empty while it has no status."""
    response = httpx.get(f"{rest}/connectors/{name}/status", timeout=LIMIT)
    if response.status_code == httpx.codes.NOT_FOUND:
        return []
    status = response.raise_for_status().json()
    return [status["connector"]["state"], *(task["state"] for task in status["tasks"])]


def wait_for_state(rest: str, name: str, state: str, tasks: int = 1, within: float = LIMIT) -> None:
    """Wait until the connector and exactly ``tasks`` tasks are in a state."""
    wanted = [state] * (tasks + 1)
    eventually(lambda: states(rest, name) == wanted, within=within, what=f"{name} {state}")


def _call(method: str, url: str, body: object = None) -> Any:
    # A worker returns 409 during a rebalance of its group, which ends.
    deadline = time.monotonic() + 30
    while True:
        response = httpx.request(method, url, json=body, timeout=LIMIT)
        if response.status_code != httpx.codes.CONFLICT or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    if response.is_error:
        msg = f"{method} {url}: {response.status_code} {response.text}"
        raise ConnectError(msg)
    return response.json() if response.content else None

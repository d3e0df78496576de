"""Runs the embedded broker: a single Apache Kafka node (KRaft) as a background process on this machine."""

from __future__ import annotations

import base64
import logging
import os
import re
import shlex
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sluiceway import class_archives
from sluiceway.errors import ConnectError, MissingToolError
from sluiceway.folders import file_lock, private_folder, write_atomically
from sluiceway.java_runtime import find_java
from sluiceway.stack import maven
from sluiceway.stack.ports import can_bind, free_port, port_is_open, port_owner, preferred_port, release_port
from sluiceway.stack.process import PRIVATE_UMASK, BackgroundProcess

log = logging.getLogger(__name__)

KAFKA_VERSION = "4.3.0"
#: The log libraries of Kafka's distribution. Kafka is built with slf4j 1.7.
LOGGING_COORDINATES = ("org.apache.logging.log4j:log4j-slf4j-impl:2.25.4",)
COORDINATES = (f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}", *LOGGING_COORDINATES)

_HOST = "127.0.0.1"
_READY_SECONDS = 90.0
_STOP_SECONDS = 30.0
_FORMAT_SECONDS = 120
_STARTED = "Kafka Server started"
_JVM_FLAGS = ("-Xms128m", "-Xmx768m", "-XX:+UseSerialGC", "-Djava.awt.headless=true")
JVM_OPTIONS = "KAFKA_JVM_PERFORMANCE_OPTS"
"""The environment variable with further options of the broker's JVM, which Kafka's own scripts read too."""

_PORT = re.compile(r"^\d{1,5}$")

# Settings for a single machine. Internal topics have few partitions, because each costs files and start time.
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    # Consumer groups on one machine are small: their first member need not wait for others.
    "group.initial.rebalance.delay.ms": "0",
    # Without records that say nothing, written twice a second to show other controllers how far they are. Each of them costs the
    # broker more with each partition it has.
    "metadata.max.idle.interval.ms": "0",
}

_LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = [%d] %p %m (%c{1})%n
rootLogger.level = WARN
rootLogger.appenderRef.out.ref = out
logger.kafka.name = kafka
logger.kafka.level = INFO
logger.server.name = org.apache.kafka.server
logger.server.level = INFO
"""


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """State of the broker at one moment. ``bootstrap`` is where it listens, or will listen after a start, if known."""

    running: bool
    pid: int | None
    bootstrap: str | None
    log: Path
    data: Path


class EmbeddedBroker:
    """A broker with its data, port, log and pid file in ``state_dir``. It outlives the Python process that started it.

    Args:
        state_dir: the broker's folder. Objects with the same folder stand for the same broker.
        port: the port to listen on; by default the port of the last start, or a free one.
        properties: Kafka broker settings that override the defaults here.
        preferred: the port of the first start, if it is free. With it, a port of the last start that is in use is replaced.
        recorded_classes: a file into which the broker writes an archive of its classes when it ends.
    """

    def __init__(
        self,
        state_dir: Path,
        port: int | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        preferred: int | None = None,
        recorded_classes: Path | None = None,
    ) -> None:
        self.state_dir = state_dir.absolute()
        self.port = port
        self._preferred = preferred
        self._recording = class_archives.recording(recorded_classes) if recorded_classes else []
        self.properties = dict(properties or {})
        self.data = self.state_dir / "data"
        self._config = self.state_dir / "server.properties"
        self._port_file = self.state_dir / "port"
        self._process = BackgroundProcess("kafka", [], self.state_dir)

    def start(self, progress: maven.Progress | None = None, timeout: float = _READY_SECONDS) -> str:
        """Start the broker unless it runs, wait up to ``timeout`` seconds until it accepts requests, and return ``host:port``.

        The first start on a machine downloads Kafka (about 50 MB) and reports that to ``progress``.

        Raises:
            MissingToolError: no Java was found, the download failed, or the port is in use.
            ConnectError: the broker ended during its start, was not ready in time, or already runs on another port.
        """
        private_folder(self.state_dir)
        with file_lock(self.state_dir / "start.lock"):
            if self._process.is_running():
                return self._running_address(timeout)
            jars = broker_jars(progress)
            port = self._choose_port()
            given = os.environ.get(JVM_OPTIONS, "")
            classes = class_options(jars, given)
            java = [str(find_java().executable), *_JVM_FLAGS, *classes, *shlex.split(given), "-cp", maven.classpath(jars)]
            write_atomically(self._config, self._settings(port), mode=0o600)
            log4j = self.state_dir / "log4j2.properties"
            write_atomically(log4j, _LOG4J, mode=0o600)
            self._format(java)
            write_atomically(self._port_file, str(port), mode=0o600)
            command = [*java, *self._recording, f"-Dlog4j2.configurationFile={log4j}", "kafka.Kafka", str(self._config)]
            self._process = BackgroundProcess("kafka", command, self.state_dir)
            self._process.start()
            try:
                self._wait(port, timeout)
                release_port(port)
            except (ConnectError, KeyboardInterrupt):
                self._process.stop(_STOP_SECONDS)  # the caller never learns its address, so it must not keep running
                raise
            return f"{_HOST}:{port}"

    def stop(self, timeout: float = _STOP_SECONDS) -> bool:
        """Stop the broker, wait until it has ended, and return False if it did not run. Its data stays.

        Waits for a start in another process, which would otherwise leave a broker running.
        """
        with file_lock(self.state_dir / "start.lock"):
            return self._process.stop(timeout)

    def status(self) -> BrokerStatus:
        """Return the broker's current state."""
        process = self._process.status()
        port = self._recorded_port() if process.running else self.port or self._recorded_port()
        bootstrap = f"{_HOST}:{port}" if port else None
        return BrokerStatus(process.running, process.pid, bootstrap, self._process.log, self.data)

    def _running_address(self, timeout: float) -> str:
        port = self._recorded_port()
        if port is None or (self.port is not None and port != self.port):
            msg = f"The broker in {self.state_dir} already runs on port {port}, not on {self.port}. Stop it first."
            raise ConnectError(msg)
        self._wait(port, timeout)
        return f"{_HOST}:{port}"

    def _wait(self, port: int, timeout: float) -> None:
        """Wait for the port and for the log's start message: the port opens some time before the broker answers requests."""

        def ready() -> bool:
            return _STARTED in self._process.log.read_text(errors="replace") and port_is_open(_HOST, port)

        self._process.wait_until(ready, timeout)

    def _choose_port(self) -> int:
        port = self.port or self._recorded_port()
        if port is None:
            return preferred_port(self._preferred, _HOST) if self._preferred else free_port(_HOST)
        if not can_bind(_HOST, port):
            if self._preferred and port != self.port:
                return preferred_port(self._preferred, _HOST)
            owner = port_owner(port)
            user = f" by {owner}" if owner else ""
            msg = f"The broker cannot listen on port {port}: it is in use{user}. Stop that process, or choose another port."
            raise MissingToolError(msg)
        return port

    def _recorded_port(self) -> int | None:
        try:
            text = self._port_file.read_text().strip()
        except FileNotFoundError:
            return None
        return int(text) if _PORT.match(text) else None

    def _settings(self, port: int) -> str:
        controller = free_port(_HOST)
        while controller == port:
            controller = free_port(_HOST)
        settings = {
            **_SETTINGS,
            "listeners": f"PLAINTEXT://{_HOST}:{port},CONTROLLER://{_HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{_HOST}:{port}",
            "controller.quorum.voters": f"1@{_HOST}:{controller}",
            "log.dirs": str(self.data),
            **self.properties,
        }
        lines = (f"{key}={value}".replace("\\", "\\\\") for key, value in settings.items())
        return "# Overwritten at each start of the embedded broker.\n" + "\n".join(lines) + "\n"

    def _format(self, java: list[str]) -> None:
        """Format the data folder unless that has been done."""
        if (self.data / "meta.properties").is_file():
            return
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).rstrip(b"=").decode()
        # With an equals sign, because an id may begin with a dash.
        arguments = ["format", "--ignore-formatted", f"--cluster-id={cluster_id}", "--config", str(self._config)]
        command = [*java, "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=ERROR", "kafka.tools.StorageTool", *arguments]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_FORMAT_SECONDS,
                check=False,
                umask=PRIVATE_UMASK,
            )
        except subprocess.TimeoutExpired as error:
            msg = f"Formatting Kafka's data folder {self.data} did not end within {_FORMAT_SECONDS} s. Try again."
            raise ConnectError(msg) from error
        if done.returncode != 0:
            output = (done.stdout + done.stderr).strip()
            msg = f"Kafka's storage tool cannot format the data folder {self.data}. Its output:\n{output}"
            raise ConnectError(msg)
        log.debug("Formatted %s: %s", self.data, done.stdout.strip())


def broker_jars(progress: maven.Progress | None = None) -> list[Path]:
    """Return the jars of the broker's class path, which the first call on a machine downloads. Raises MissingToolError."""
    return maven.resolve(COORDINATES, title=f"Apache Kafka {KAFKA_VERSION} (about 50 MB)", progress=progress)


def broker_archive(jars: Sequence[Path]) -> Path:
    """Return the path of the archive of the broker's classes, whether it exists or not. Raises MissingToolError."""
    return class_archives.archive_path("broker-classes", find_java(), jars)


def class_options(jars: Sequence[Path], java_opts: str) -> list[str]:
    """Return the options with which a JVM uses the archive of the broker's classes, if it exists and ``java_opts`` allow it."""
    archive = broker_archive(jars)
    if class_archives.are_chosen_by(java_opts):
        return []
    if not archive.is_file():
        log.debug("There is no class archive %s: the broker starts without it", archive)
        return []
    return class_archives.using(archive)

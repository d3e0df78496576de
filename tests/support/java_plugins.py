"""Provides real Java plugins for tests: Connect's runtime, plugin folders of published jars, and plugins compiled from source."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil

from sluiceway import discovery
from sluiceway.api import Transform
from sluiceway.api.transform import R
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.folders import cache_home, file_lock
from sluiceway.herder.reconcile import desired_task_configs
from sluiceway.java_plugins import finder
from sluiceway.java_plugins.host import MAIN_CLASS
from sluiceway.java_plugins.hosts import close_shared_host
from sluiceway.java_plugins.runtime_jars import RUNTIME_JARS, fetched_home, install_runtime, runtime_jars
from sluiceway.java_runtime import find_java
from sluiceway.stack import maven
from sluiceway.storage.interfaces import OffsetBackingStore
from sluiceway.worker.worker_connector import WorkerConnector
from support.database import HOST, DatabaseForTest
from support.engine import Offsets
from support.eventually import eventually

CONNECT_FILE = ("org.apache.kafka:connect-file:4.3.0",)
DEBEZIUM_POSTGRES = ("io.debezium:debezium-connector-postgres:3.7.0.Final",)
DEBEZIUM_MARIADB = ("io.debezium:debezium-connector-mariadb:3.5.0.Final",)
DEBEZIUM_MYSQL = ("io.debezium:debezium-connector-mysql:3.5.0.Final",)
DEBEZIUM_JDBC = ("io.debezium:debezium-connector-jdbc:3.3.1.Final",)
CAMEL_TIMER = ("org.apache.camel.kafkaconnector:camel-timer-kafka-connector:0.7.2",)

SCRIPTED = sorted((Path(__file__).parent / "java").glob("*.java"))
"""The sources of plugins for tests."""

# A plugin folder has no jars of Kafka's: they come from the runtime.
_NOT_IN_PLUGINS = ("org.apache.kafka:connect-api", "org.apache.kafka:kafka-clients", "org.slf4j:slf4j-api")


@functools.cache
def fetch_runtime() -> None:
    """Download the jars of Connect's runtime, unless they are there."""
    with file_lock(cache_home() / "java-plugins" / "tests.lock"):
        if not all((fetched_home() / "libs" / jar.file_name).is_file() for jar in RUNTIME_JARS):
            coordinates = [jar.coordinates for jar in RUNTIME_JARS]
            install_runtime(maven.resolve(coordinates, title="Kafka Connect's runtime"), fetched_home())


def plugin_folder(plugin_path: Path, name: str, coordinates: Sequence[str], exclude: Sequence[str] = _NOT_IN_PLUGINS) -> Path:
    """Make a plugin location with the jars of published artifacts, without Kafka's own, and return it."""
    folder = plugin_path / name
    folder.mkdir(parents=True)
    for jar in maven.resolve(coordinates, exclude=exclude, title=name):
        (folder / jar.name).symlink_to(jar)
    return folder


def forget_plugins() -> None:
    """Find no Java plugins any more in this process, not even those in folders of earlier tests."""
    finder._folders.clear()
    discovery.use_finder(None)


def debezium_jdbc_folder(plugin_path: Path) -> Path:
    """Make the plugin location of Debezium's JDBC sink, without Jackson, which its archive lacks, too.

    Hibernate would load modules of two Jacksons.
    """
    folder = plugin_folder(plugin_path, "debezium-jdbc", DEBEZIUM_JDBC)
    for jar in folder.glob("jackson-*.jar"):
        jar.unlink()
    return folder


def compiled_plugin(
    plugin_path: Path, name: str, sources: Iterable[Path], services: Mapping[str, Sequence[str]] | None = None
) -> Path:
    """Compile Java sources into a jar in a plugin location, and return the location.

    ``services`` has the names of plugin classes by Kafka's class, for manifests; without them the jar has none.
    """
    fetch_runtime()
    folder = plugin_path / name
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as classes:
        class_path = os.pathsep.join(map(str, runtime_jars()))
        javac = str(find_java().home / "bin" / "javac")
        command = [javac, "--release", "17", "-proc:none", "-cp", class_path, "-d", classes, *map(str, sources)]
        subprocess.run(command, check=True)
        for service, plugins in (services or {}).items():
            manifest = Path(classes, "META-INF", "services", service)
            manifest.parent.mkdir(parents=True, exist_ok=True)
            manifest.write_text("\n".join(plugins))
        archive = shutil.make_archive(str(folder / name), "zip", classes)
    Path(archive).rename(folder / f"{name}.jar")
    return folder


def plugin_from(plugin_path: Path, name: str, sources: Mapping[str, str]) -> Path:
    """Compile Java classes, whose sources are given by class name, like ``compiled_plugin``."""
    with tempfile.TemporaryDirectory() as folder:
        files = {Path(folder, f"{class_name}.java"): text for class_name, text in sources.items()}
        for file, text in files.items():
            file.write_text(text)
        return compiled_plugin(plugin_path, name, files)


def debezium_postgres(database: DatabaseForTest, prefix: str, slot: str, **more: str) -> dict[str, str]:
    """Return a config of Debezium's PostgreSQL connector, without schemas; keyword arguments have underscores for dots.

    The slot and the publication have the same name.
    """
    json = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": HOST,
        "database.port": str(database.port),
        "database.user": database.user,
        "database.password": database.password,
        "database.dbname": database.name,
        "topic.prefix": prefix,
        "plugin.name": "pgoutput",
        "slot.name": slot,
        "publication.autocreate.mode": "filtered",
        "publication.name": slot,
        "poll.interval.ms": "50",
        **{f"{part}.converter": json for part in ("key", "value")},
        **{f"{part}.converter.schemas.enable": "false" for part in ("key", "value")},
        **{key.replace("_", "."): value for key, value in more.items()},
    }


def first_task_config(config: Mapping[str, str]) -> dict[str, str]:
    """Return the config of a connector's first task, as the connector generates it."""
    connector = connector_class(config["connector.class"])()
    connector.initialize(_NoContext())
    connector.start(config)
    try:
        return desired_task_configs(connector, config)[0]
    finally:
        connector.stop()


class _NoContext:
    """A ``ConnectorContext`` that fails the test."""

    def request_task_reconfiguration(self) -> None:
        raise AssertionError("the connector requests a reconfiguration")

    def raise_error(self, error: BaseException) -> None:
        raise error

    def waiting(self, reason: object = None, seconds: float = 0.0) -> None:
        raise AssertionError(f"the connector waits: {reason}")


class Driven:
    """A connector as a driver runs it, and the events so far."""

    def __init__(self, config: dict[str, str], offsets: OffsetBackingStore | None = None) -> None:
        worker = WorkerConfig.of({"bootstrap.servers": "localhost:1", "plugin.path": "x"})
        self.connector = WorkerConnector("c", worker, lambda _: nullcontext(offsets or Offsets()), lambda: None, self._wait)
        self.events: list[Any] = []
        self.connector.start(config)

    def _wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        try:
            eventually(condition, within=seconds)
        except AssertionError:
            return False
        return True

    def until(self, kind: type) -> Any:
        def found() -> bool:
            self.events += self.connector.events()
            return any(isinstance(event, kind) for event in self.events)

        eventually(found, what=str(kind))
        return next(event for event in self.events if isinstance(event, kind))


class Same(Transform):
    """A transform in Python that changes nothing."""

    def apply(self, record: R) -> R | Sequence[R] | None:
        return record


class Exclaim(Transform):
    """A transform in Python that adds an exclamation mark to text."""

    def apply(self, record: R) -> R | Sequence[R] | None:
        return record.new_record(value=f"{record.value}!")


def java_processes() -> list[int]:
    """Return ``all_java_processes`` after the end of the process that validates configs, which lasts otherwise."""
    close_shared_host()
    return all_java_processes()


def all_java_processes() -> list[int]:
    """Return the process ids of the plugins' Java processes below this process, and of those that are orphans."""
    orphans = [each for each in psutil.process_iter(["ppid"]) if each.info["ppid"] == 1]
    own = psutil.Process().children(recursive=True)
    return [each.pid for each in [*own, *orphans] if MAIN_CLASS in " ".join(_command_line(each))]


def _command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it has ended
        return []

"""Provides real Java plugins for tests: Connect's runtime, plugin folders of published jars, and plugins compiled from source."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from sluiceway.folders import cache_home, file_lock
from sluiceway.java_plugins.runtime_jars import EXCLUDED, RUNTIME_JARS, fetched_home, install_runtime, runtime_jars
from sluiceway.java_runtime import find_java
from sluiceway.stack import maven

CONNECT_FILE = ("org.apache.kafka:connect-file:4.3.0",)
DEBEZIUM_POSTGRES = ("io.debezium:debezium-connector-postgres:3.7.0.Final",)
CAMEL_TIMER = ("org.apache.camel.kafkaconnector:camel-timer-kafka-connector:0.7.2",)

# A plugin folder has no jars of Kafka's: they come from the runtime.
_NOT_IN_PLUGINS = ("org.apache.kafka:connect-api", "org.apache.kafka:kafka-clients", "org.slf4j:slf4j-api")


@functools.cache
def fetch_runtime() -> None:
    """Download the jars of Connect's runtime, unless they are there."""
    with file_lock(cache_home() / "java-plugins" / "tests.lock"):
        if not (fetched_home() / "libs").is_dir():
            coordinates = [jar.coordinates for jar in RUNTIME_JARS]
            install_runtime(maven.resolve(coordinates, exclude=EXCLUDED, title="Kafka Connect's runtime"), fetched_home())


def plugin_folder(plugin_path: Path, name: str, coordinates: Sequence[str]) -> Path:
    """Make a plugin location with the jars of published artifacts, without Kafka's own, and return it."""
    folder = plugin_path / name
    folder.mkdir(parents=True)
    for jar in maven.resolve(coordinates, exclude=_NOT_IN_PLUGINS, title=name):
        (folder / jar.name).symlink_to(jar)
    return folder


def compiled_plugin(plugin_path: Path, name: str, sources: dict[str, str], services: dict[str, str] | None = None) -> Path:
    """Compile Java sources, by file name, into a jar in a plugin location, and return the location."""
    fetch_runtime()
    folder = plugin_path / name
    work = folder / "work"
    (work / "classes").mkdir(parents=True)
    for file, text in sources.items():
        (work / file).write_text(text)
    javac = find_java().home / "bin" / "javac"
    class_path = os.pathsep.join(map(str, runtime_jars()))
    files = [str(work / file) for file in sources]
    subprocess.run(
        [str(javac), "--release", "17", "-proc:none", "-cp", class_path, "-d", str(work / "classes"), *files],
        check=True,
        capture_output=True,
        text=True,
    )
    for service, class_name in (services or {}).items():
        manifest = work / "classes" / "META-INF" / "services" / service
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(class_name + "\n")
    shutil.make_archive(str(folder / name), "zip", work / "classes")
    (folder / f"{name}.zip").rename(folder / f"{name}.jar")
    shutil.rmtree(work)
    return folder

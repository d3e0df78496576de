"""Packs Java and Singer plugins, with Kafka Connect's runtime for those in Java, into an archive for Spark's ``--archives``."""

from __future__ import annotations

import gzip
import hashlib
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sluiceway.errors import ConfigError
from sluiceway.folders import sha256_of
from sluiceway.java_plugins.locations import plugin_locations, singer_locations
from sluiceway.java_plugins.runtime_jars import runtime_jars

PLUGINS, RUNTIME = "path", "runtime"
"""The archive's folder of plugins, which is one of ``plugin.path``, and that of the runtime, which is a ``KAFKA_HOME``."""


class PluginArchive(NamedTuple):
    """A packed archive, and the names of the plugins in it. ``in_java`` is whether some need Kafka Connect's runtime."""

    path: Path
    names: tuple[str, ...]
    in_java: bool = True


def pack_plugins(folder: Path, target: Path) -> PluginArchive:
    """Pack the plugins in a folder of ``plugin.path``, and the runtime's jars; equal files give an equal archive.

    Args:
        folder: the folder of plugins.
        target: the folder for the archive, whose name has a hash of the files.

    Raises:
        ConfigError: the folder has no plugins, or the archive cannot be written.
        MissingToolError: the runtime's jars, which plugins in Java need, are not on this machine.
    """
    in_java = list(plugin_locations([folder]))
    locations = [*in_java, *singer_locations(folder)]
    if not locations:
        raise ConfigError("--plugins", str(folder), "has no plugins. Install some with 'sluiceway plugins install'")
    runtime = runtime_jars() if in_java else ()
    files = sorted([*_of_plugins(folder, locations), *((f"{RUNTIME}/libs/{jar.name}", jar) for jar in runtime)])
    digest = hashlib.sha256("\n".join(f"{name} {sha256_of(file)}" for name, file in files).encode()).hexdigest()[:12]
    path = target.absolute() / f"sluiceway-plugins-{digest}.tar.gz"
    try:
        with tempfile.TemporaryDirectory(dir=target, prefix=".sluiceway-plugins-") as work:
            made = Path(work, path.name)
            with made.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=0) as zipped:
                _write(zipped, files)
            made.replace(path)
    except OSError as error:
        raise ConfigError("--plugins", str(path), f"cannot be written: {error}") from error
    return PluginArchive(path, tuple(location.name for location in locations), bool(in_java))


def _of_plugins(folder: Path, locations: Iterable[Path]) -> Iterator[tuple[str, Path]]:
    """Yield the files of plugins with their names in the archive. Python's caches differ from machine to machine."""
    for location in locations:
        for file in [location] if location.is_file() else sorted(location.rglob("*")):
            if file.is_file() and file.parent.name != "__pycache__":
                yield f"{PLUGINS}/{file.relative_to(folder)}", file


def _write(target: gzip.GzipFile, files: list[tuple[str, Path]]) -> None:
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name, file in files:
            info = tarfile.TarInfo(name)
            info.size, info.mode = file.stat().st_size, 0o644
            with file.open("rb") as content:
                tar.addfile(info, content)

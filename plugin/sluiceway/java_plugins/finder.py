"""Offers the Java plugins of ``plugin.path`` to ``sluiceway.discovery`` as Python classes."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sluiceway import discovery
from sluiceway.config.providers.built_in import CONFIG_PROVIDERS
from sluiceway.errors import ConnectError
from sluiceway.java.version_range import version_key
from sluiceway.java_plugins.index import HYBRID_FAIL, HYBRID_WARN, JavaPlugin, PluginIndex
from sluiceway.java_plugins.versions import check_versions

JAVA = "plugin.java"
DISCOVERY = "plugin.discovery"

PREFER, FALLBACK, OFF = "prefer", "fallback", "off"
"""The values of ``plugin.java``."""

_GROUPS = {
    "sluiceway.connectors": ("source", "sink"),
    "sluiceway.transforms": ("transformation",),
    "sluiceway.predicates": ("predicate",),
    "sluiceway.converters": ("converter",),
    "sluiceway.header_converters": ("header_converter",),
}
_GROUP_OF = {kind: group for group, kinds in _GROUPS.items() for kind in kinds} | {"configprovider": CONFIG_PROVIDERS}
_DOCUMENTATION = "https://kafka.apache.org/documentation.html#connect_plugindiscovery"

_OF_RUNTIME = tuple(f"org.apache.kafka.connect.{part}." for part in ("converters", "json", "storage", "transforms"))

_lock = threading.Lock()
_folders: list[Path] = []


class JavaFinder:
    """Finds Java plugins for ``sluiceway.discovery``."""

    def __init__(self, index: PluginIndex, *, preferred: bool = False) -> None:
        self.index = index
        self._preferred = preferred

    @property
    def preferred(self) -> bool:
        """Whether Java plugins are used rather than Python ones with the same name."""
        return self._preferred

    def named(self, group: str, name: str) -> Iterator[type]:
        """Yield the classes with this full name or alias, the newest version first."""
        kinds = _GROUPS.get(group, ())
        found = [plugin for plugin in self.index.all_versions(name) if plugin.kind in kinds and not _superseded(plugin)]
        if len(found) > 1:  # the choice needs exact versions
            check_versions(self.index, {plugin.location for plugin in found})
            found = [plugin for plugin in self.index.all_versions(name) if plugin.kind in kinds and not _superseded(plugin)]
        yield from _classes(reversed(found))

    def classes(self, group: str) -> list[type]:
        """Return all classes of a group, of each version."""
        check_versions(self.index, self.index.locations)
        kinds = _GROUPS.get(group, ())
        return list(_classes(plugin for plugin in self.index.plugins() if plugin.kind in kinds))


def use_java_plugins(folders: Sequence[Path], worker: Mapping[str, str]) -> JavaFinder | None:
    """Use the Java plugins in these folders of ``plugin.path``, besides those of earlier calls, in the whole process.

    Returns the finder, None without folders or with ``plugin.java=off``. Reads no jar, unless ``plugin.discovery`` is
    ``hybrid_fail``.

    Raises ConnectError for plugins without manifests that ``hybrid_fail`` refuses.
    """
    if not folders:
        return None
    choice, mode = _choice(worker), worker.get(DISCOVERY, HYBRID_WARN).strip().lower()
    with _lock:
        if choice == OFF:
            discovery.use_finder(None)
            return None
        _folders.extend(folder for folder in folders if folder not in _folders)
        finder = _finder(tuple(_folders), mode, choice == PREFER)
        discovery.use_finder(finder)
    if mode == HYBRID_FAIL:
        _refuse_without_manifest(finder.index.without_manifest())
    return finder


def used_language(plugin: JavaPlugin, worker: Mapping[str, str]) -> str | None:
    """Return the language of the class that configs get for a Java plugin's name; None if ``plugin.java=off`` leaves none."""
    choice = _choice(worker)
    in_python = discovery.python_named(_GROUP_OF[plugin.kind], plugin.class_name) is not None
    if in_python and (choice != PREFER or _superseded(plugin)):
        return "python"
    return None if choice == OFF else "java"


_last: tuple[object, JavaFinder] | None = None


def _finder(folders: tuple[Path, ...], mode: str, preferred: bool) -> JavaFinder:
    """Return the finder of the last call if nothing has changed, because it knows the plugins already."""
    global _last
    key = (folders, mode, preferred)
    if _last is None or _last[0] != key:
        _last = (key, JavaFinder(PluginIndex(folders, mode), preferred=preferred))
    return _last[1]


def _choice(worker: Mapping[str, str]) -> str:
    return worker.get(JAVA, FALLBACK).strip().lower()


def _superseded(plugin: JavaPlugin) -> bool:
    """Return whether Connect's runtime has a newer version of a class, as of converters that connectors bring along."""
    kafka_own = plugin.class_name.startswith(_OF_RUNTIME)
    return kafka_own and version_key(plugin.version) <= version_key(discovery.CONNECT_VERSION)


def _classes(plugins: Iterator[JavaPlugin]) -> Iterator[type]:
    for plugin in plugins:
        from sluiceway.java_plugins.classes import plugin_class  # not needed by the many processes without a Java plugin

        found = plugin_class(plugin)
        if found is not None:
            yield found


def _refuse_without_manifest(plugins: Sequence[JavaPlugin]) -> None:
    if plugins:
        rows = "\n".join(f"{each.location}\t{each.class_name}\t{each.kind}\t{each.version}" for each in plugins)
        raise ConnectError(
            f"One or more plugins are missing ServiceLoader manifests may not be usable with {DISCOVERY}=service_load: "
            f"[\n{rows}\n]\nRead the documentation at {_DOCUMENTATION} for instructions on migrating your plugins to take "
            f"advantage of the performance improvements of service_load mode. To silence this error, set "
            f"{DISCOVERY}={HYBRID_WARN} in the worker config."
        )

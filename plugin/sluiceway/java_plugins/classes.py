"""Makes the Python classes of Java plugins, which the rest of Sluiceway uses like those of Python plugins."""

from __future__ import annotations

import functools
from typing import Protocol

from sluiceway.java_plugins.connector import JavaSinkConnector, JavaSourceConnector
from sluiceway.java_plugins.definitions import stage_config_def
from sluiceway.java_plugins.hosts import PluginLocation
from sluiceway.java_plugins.sink_task import JavaSinkTask
from sluiceway.java_plugins.source_task import JavaSourceTask
from sluiceway.java_plugins.stages import JavaConverter, JavaHeaderConverter, JavaPredicate, JavaTransform

_STAGES: dict[str, type] = {
    "transformation": JavaTransform,
    "predicate": JavaPredicate,
    "converter": JavaConverter,
    "header_converter": JavaHeaderConverter,
}


class FoundPlugin(PluginLocation, Protocol):
    """A plugin's entry in the index (``JavaPlugin``)."""

    @property
    def kind(self) -> str:
        """``source``, ``sink``, ``transformation`` or another type of the REST API."""

    @property
    def version(self) -> str: ...

    def __hash__(self) -> int: ...


@functools.cache
def plugin_class(plugin: FoundPlugin) -> type | None:
    """Return the Python class of a Java plugin, always the same for the same plugin; None for a kind that cannot be used."""
    if plugin.kind == "source":
        task = _subclass(plugin, JavaSourceTask)
        return _subclass(plugin, JavaSourceConnector, task_class=task)
    if plugin.kind == "sink":
        return _subclass(plugin, JavaSinkConnector, task_class=_subclass(plugin, JavaSinkTask))
    stage = _STAGES.get(plugin.kind)
    return None if stage is None else _subclass(plugin, stage, config_def=classmethod(stage_config_def))


def _subclass(plugin: FoundPlugin, base: type, **attributes: object) -> type:
    """Return a subclass of ``base`` that has the names of the Java class."""
    package, _, name = plugin.class_name.rpartition(".")
    common = {"__module__": package, "__qualname__": name, "java_class": plugin.class_name, "plugin": plugin}
    return type(name, (base,), {**common, "plugin_version": plugin.version, **attributes})

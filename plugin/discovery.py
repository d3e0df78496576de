"""Finds connectors, converters and transforms by what a config names: an alias, a Java class name, or a dotted Python path.

Classes come from entry points (groups ``sluiceway.connectors``, ``sluiceway.converters``, ``sluiceway.transforms``), as
Java's come from service files. A dotted Python path is only followed for packages that are installed or on sys.path.
"""

from __future__ import annotations

import functools
import importlib
from importlib.metadata import entry_points
from typing import Any

from sluiceway.api import Connector, Converter, SinkConnector, SourceConnector
from sluiceway.errors import ConfigError, NotFoundError

# What the package brings itself, so that a copy shipped to executors as a zip, which has no metadata, finds it too.
_BUILT_IN = {
    "sluiceway.connectors": {
        "FileStreamSource": "sluiceway.connectors.file.source:FileStreamSourceConnector",
        "FileStreamSink": "sluiceway.connectors.file.sink:FileStreamSinkConnector",
    },
    "sluiceway.converters": {
        "JsonConverter": "sluiceway.converters.json_converter:JsonConverter",
        "StringConverter": "sluiceway.converters.string_converter:StringConverter",
    },
}


def load(path: str) -> Any:
    """Return the object at ``package.module:Name`` or ``package.module.Name``; raises NotFoundError."""
    module, _, name = path.replace(":", ".").rpartition(".")
    if not module:
        raise NotFoundError(f"{path} is neither a known alias nor a dotted path.")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:  # the latter two for names that are no module's
        raise NotFoundError(f"Cannot load {path}: {error}.") from error


@functools.cache
def plugins(group: str) -> dict[str, type]:
    """Return the classes of an entry point group by alias, ours first. A plugin that fails to load is left out."""
    paths = dict(_BUILT_IN.get(group, {}))
    for entry_point in entry_points(group=group):
        paths.setdefault(entry_point.name, entry_point.value)
    found: dict[str, type] = {}
    for alias, path in paths.items():
        try:
            found[alias] = load(path)
        except NotFoundError as error:
            import logging

            logging.getLogger(__name__).warning("Plugin %s of %s is not usable: %s", alias, group, error)
    return found


def _find(group: str, name: str, suffix: str, base: type) -> type:
    for alias, cls in plugins(group).items():
        java_class = getattr(cls, "java_class", None) or ""
        names = {alias, alias.removesuffix(suffix), cls.__name__, cls.__name__.removesuffix(suffix),
                 f"{cls.__module__}.{cls.__qualname__}", java_class, java_class.rpartition(".")[2]}  # fmt: skip
        if name and name in names:
            return cls
    found = load(name)
    if not (isinstance(found, type) and issubclass(found, base)):
        raise NotFoundError(f"{name} is not a {base.__name__}.")
    return found


def connector_class(name: str) -> type[Connector]:
    """Return the connector class that ``connector.class`` names; raises NotFoundError with those that exist."""
    try:
        return _find("sluiceway.connectors", name, "Connector", Connector)
    except NotFoundError as error:
        available = ", ".join(sorted(plugins("sluiceway.connectors")))
        raise NotFoundError(
            f"Failed to find any class that implements Connector and which name matches {name}, "
            f"available connectors are: {available}"
        ) from error


def converter_class(name: str) -> type[Converter]:
    """Return the converter class that ``key.converter`` or ``value.converter`` names; raises ConfigError."""
    try:
        return _find("sluiceway.converters", name, "Converter", Converter)
    except NotFoundError as error:
        raise ConfigError(f"Class {name} could not be found.") from error


def is_sink(connector: type[Connector]) -> bool:
    """Whether a connector class is a sink; raises ConfigError if it is neither source nor sink."""
    if issubclass(connector, SinkConnector):
        return True
    if issubclass(connector, SourceConnector):
        return False
    raise ConfigError(f"{connector.__name__} is neither a SourceConnector nor a SinkConnector.")

"""Finds the keys of a config that are declared with type password. Imports the plugins that the config names; no other I/O."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from sluiceway.config.connector import CONNECTOR_CLASS, CONNECTOR_VERSION
from sluiceway.config.definition import ConfigDef, Type
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.errors import ConnectError
from sluiceway.herder.enrichment import CONVERTERS, framework_def
from sluiceway.herder.plugin_classes import plugin_class


def password_keys(config: Mapping[str, str]) -> frozenset[str]:
    """Return the keys that the connector and its transforms, predicates, and converters declare with type password.

    Of a class that is not installed here, none are known.
    """
    found: set[str] = set()
    try:
        connector = connector_class(config.get(CONNECTOR_CLASS, ""), config.get(CONNECTOR_VERSION))
        found.update(_passwords(connector.config_def()))
        found.update(_passwords(framework_def(connector, config, _worker())))
    except (ConnectError, ValueError):  # not installed, a jar that is broken, or no version
        pass
    for key in CONVERTERS.keys() & config.keys():
        try:
            cls = plugin_class(config[key], None).cls
        except ConnectError:
            continue
        found.update(f"{key}.{name}" for name in _passwords(getattr(cls, "config_def", ConfigDef)()))
    return frozenset(found)


@functools.cache
def _worker() -> WorkerConfig:
    """Return a worker with the defaults: its own converters have no keys in a connector's config."""
    return WorkerConfig.of({})


def _passwords(definition: ConfigDef) -> Iterator[str]:
    return (key.name for key in definition if key.type is Type.PASSWORD)

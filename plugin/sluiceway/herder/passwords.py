"""Finds the keys of a config that are declared with type password. Imports the plugins that the config names; no other I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sluiceway.config.connector import CONNECTOR, HEADER_CONVERTER, KEY_CONVERTER, SINK, SOURCE, VALUE_CONVERTER
from sluiceway.config.definition import ConfigDef, Type
from sluiceway.config.plugin_keys import CLASS, plugin_keys, prefix_of, wanted_version
from sluiceway.discovery import connector_class, converter_class, header_converter_class, predicate_class, transform_class
from sluiceway.errors import ConnectError

_FIND: dict[str, Callable[[str, str | None], type[Any]]] = {
    CLASS: connector_class,
    KEY_CONVERTER: converter_class,
    VALUE_CONVERTER: converter_class,
    HEADER_CONVERTER: header_converter_class,
    "transforms": transform_class,
    "predicates": predicate_class,
}
_FRAMEWORK = {key.name for key in (*CONNECTOR, *SINK, *SOURCE)}


def password_keys(config: Mapping[str, str]) -> frozenset[str]:
    """Return the keys that the connector and its transforms, predicates, and converters declare with type password.

    Of a class that is not installed here, none are known. Of one that cannot say what it declares, such as a jar that is broken,
    any key may be one.
    """
    return frozenset(name for key in plugin_keys(config) for name in _passwords(config, key))


def _passwords(config: Mapping[str, str], key: str) -> Iterable[str]:
    """Return the keys of type password of the plugin whose class ``key`` names."""
    prefix = prefix_of(key)
    try:
        cls = _FIND[key if key in _FIND else key.partition(".")[0]](config.get(key, ""), wanted_version(config, key))
    except ConnectError:
        return ()
    try:
        definition: ConfigDef = getattr(cls, "config_def", ConfigDef)()
    except ConnectError:
        return {name for name in config if name.startswith(prefix)} - {*_FRAMEWORK, key}
    return [f"{prefix}{each.name}" for each in definition if each.type is Type.PASSWORD]

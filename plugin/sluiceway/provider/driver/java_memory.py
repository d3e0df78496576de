"""Estimates the memory of the Java processes of plugins, which Spark does not count. No I/O except that of finding plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sluiceway.config.common_keys import HEADER_CONVERTER, KEY_CONVERTER, TRANSFORMS, VALUE_CONVERTER
from sluiceway.config.connector import CONNECTOR_CLASS, JAVA_OPTS
from sluiceway.discovery import connector_class, converter_class, header_converter_class, transform_class
from sluiceway.errors import ConnectError
from sluiceway.java_plugins.jvm_options import heap_mb

_BESIDE_HEAP_MB = 150  # class metadata, compiled code, threads, and buffers


def java_memory(config: Mapping[str, str]) -> int:
    """Return the megabytes of the Java process of each of a connector's tasks; 0 if its own config names no Java plugin."""
    if not any(_is_java(find, name) for find, name in _named(config)):
        return 0
    return heap_mb(config.get(JAVA_OPTS, "")) + _BESIDE_HEAP_MB


def _named(config: Mapping[str, str]) -> Iterator[tuple[Callable[[str], type], str]]:
    finders: dict[str, Callable[[str], type]] = {
        CONNECTOR_CLASS: connector_class,
        KEY_CONVERTER: converter_class,
        VALUE_CONVERTER: converter_class,
        HEADER_CONVERTER: header_converter_class,
    }
    yield from ((find, config[key]) for key, find in finders.items() if key in config)
    for alias in config.get(TRANSFORMS, "").split(","):
        name = config.get(f"{TRANSFORMS}.{alias.strip()}.type")
        if name is not None:
            yield transform_class, name


def _is_java(find: Callable[[str], type], name: str) -> bool:
    try:
        return hasattr(find(name.strip()), "plugin")
    except (ConnectError, ImportError):  # the driver reports it
        return False

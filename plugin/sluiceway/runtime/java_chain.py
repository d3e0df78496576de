"""Decides whether a connector's whole chain of transforms and converters can run in Java, and describes it for the Java task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluiceway.config.common_keys import HEADER_CONVERTER, KEY_CONVERTER, PREDICATES, TRANSFORMS, VALUE_CONVERTER
from sluiceway.config.parsing import Type, parse_value
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import all_named, converter_class, header_converter_class, predicate_class, transform_class
from sluiceway.java_plugins.hosts import reference
from sluiceway.runtime.task_converters import class_and_options
from sluiceway.runtime.transforms.chain_config import NEGATE, PREDICATE, TYPE, VERSION, aliases

_OF_KAFKA = "org.apache.kafka.connect."
"""Kafka's own transforms and converters are on the class path of every Java process."""


def java_chain(config: Mapping[str, str], worker: WorkerConfig) -> dict[str, object] | None:
    """Return the chain in the form that ``Chain.java`` reads, or None if a stage has no Java class.

    References in the config must be resolved. Raises ConfigError for a class that is not found.
    """
    transforms = [java_transform(alias, config) for alias in aliases(config, TRANSFORMS)]
    converters = {
        "key": _converter(KEY_CONVERTER, config, worker, converter_class),
        "value": _converter(VALUE_CONVERTER, config, worker, converter_class),
        "header": _converter(HEADER_CONVERTER, config, worker, header_converter_class),
    }
    if None in transforms or None in converters.values():
        return None
    return {"transforms": transforms, **converters}


def java_transform(alias: str, config: Mapping[str, str]) -> dict[str, object] | None:
    """Return a transform with its predicate, as ``Chain.java`` reads it, or None if it needs Python."""
    options = _below(f"{TRANSFORMS}.{alias}.", config)
    plugin = _transform_plugin(transform_class(options.get(TYPE, "").strip(), options.get(VERSION)))
    name, negate = options.pop(PREDICATE, None), options.pop(NEGATE, "false")
    predicate = None if name is None else _predicate(name.strip(), config)
    if plugin is None or (name is not None and predicate is None):
        return None
    negated = parse_value(NEGATE, negate, Type.BOOLEAN)
    return {"alias": alias, "plugin": plugin, "config": options, "predicate": predicate, "negate": negated}


def _predicate(alias: str, config: Mapping[str, str]) -> dict[str, object] | None:
    options = _below(f"{PREDICATES}.{alias}.", config)
    plugin = _plugin(predicate_class(options.pop(TYPE, "").strip(), options.get(VERSION)))
    return None if plugin is None else {"plugin": plugin, "config": options}


def _converter(key: str, config: Mapping[str, str], worker: WorkerConfig, find: Any) -> dict[str, object] | None:
    name, options = class_and_options(key, config, worker)
    plugin = _plugin(find(name, options.get(VERSION)))
    return None if plugin is None else {"plugin": plugin, "config": options}


def _plugin(cls: type) -> dict[str, object] | None:
    plugin = getattr(cls, "plugin", None)
    if plugin is not None:
        return reference(plugin)
    name = getattr(cls, "java_class", None) or ""
    return {"class": name} if name.startswith(_OF_KAFKA) else None


def _transform_plugin(cls: type) -> dict[str, object] | None:
    """Return a transform's Java class; for a Python one with a Java name that of a jar in ``plugin.path``, if there is one.

    A Java connector's chain then stays in Java, as it does with Kafka's own transforms.
    """
    plugin = _plugin(cls)
    if plugin is not None:
        return plugin
    same = all_named("sluiceway.transforms", name) if (name := getattr(cls, "java_class", None)) else []
    return next((found for each in same if (found := _plugin(each)) is not None), None)


def _below(prefix: str, config: Mapping[str, str]) -> dict[str, str]:
    return {key[len(prefix) :]: value for key, value in config.items() if key.startswith(prefix)}

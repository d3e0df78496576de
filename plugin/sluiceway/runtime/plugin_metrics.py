"""Describes the plugins that a task runs with, for Kafka Connect's metrics of classes and versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sluiceway import discovery
from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.config.parsing import parse_list
from sluiceway.metrics.beans import CONNECT, Bean, Value
from sluiceway.metrics.task_metrics import TaskMetrics
from sluiceway.runtime.task import TaskSpec
from sluiceway.runtime.task_converters import Converters

_KINDS: Mapping[str, Callable[[str], type]] = {
    "transform": discovery.transform_class,
    "predicate": discovery.predicate_class,
}


def describe_plugins(metrics: TaskMetrics, spec: TaskSpec, task: type, converters: Converters | None) -> None:
    """Report the classes and versions of a task's plugins.

    ``converters`` is None if the Java process of the task converts and transforms; then only the classes in the config are known.
    """
    config = spec.config
    values: dict[str, Value] = {
        "connector-class": config.get(CONNECTOR_CLASS, ""),
        "connector-type": "sink" if spec.sink else "source",
        "task-class": f"{task.__module__}.{task.__qualname__}",
    }
    if spec.version is not None:
        values |= {"connector-version": spec.version, "task-version": spec.version}
    if converters is not None:
        for kind, converter in (("key", converters.key), ("value", converters.value), ("header", converters.header)):
            named = config.get(f"{kind}.converter") or discovery.java_name(type(converter))
            values |= {f"{kind}-converter-class": named, f"{kind}-converter-version": discovery.version_of(type(converter))}
    metrics.describe(values, list(_chain(config, metrics, versions=converters is not None)))


def _chain(config: Mapping[str, str], metrics: TaskMetrics, *, versions: bool) -> Iterator[Bean]:
    for kind, class_named in _KINDS.items():
        for alias in parse_list(config.get(f"{kind}s")):
            name = config.get(f"{kind}s.{alias}.type", "")
            values: dict[str, Value] = {f"{kind}-class": name}
            if versions:
                values[f"{kind}-version"] = discovery.version_of(class_named(name))
            yield Bean(CONNECT, f"connector-{kind}-metrics", {**metrics.tags, kind: alias}, values)

"""Kafka Connect's metrics that only say which plugins a task uses. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.config.parsing import parse_list
from sluiceway.metrics.beans import CONNECT, Bean, Value

_CONVERTERS = ("key.converter", "value.converter", "header.converter")


def task_plugins(config: Mapping[str, str], *, sink: bool) -> dict[str, Value]:
    """Return the classes in ``connector-task-metrics`` that a task's config names."""
    values: dict[str, Value] = {
        "connector-class": config.get(CONNECTOR_CLASS, ""),
        "connector-type": "sink" if sink else "source",
    }
    return values | {f"{key.replace('.', '-')}-class": config[key] for key in _CONVERTERS if config.get(key)}


def chain_beans(config: Mapping[str, str], tags: Mapping[str, str]) -> Iterator[Bean]:
    """Yield a bean for each transform and each predicate that a config names."""
    for kind in ("transform", "predicate"):
        for alias in parse_list(config.get(f"{kind}s")):
            values: dict[str, Value] = {f"{kind}-class": config.get(f"{kind}s.{alias}.type", "")}
            yield Bean(CONNECT, f"connector-{kind}-metrics", {**tags, kind: alias}, values)

"""Determines the consumer group of a sink connector. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluiceway.config.worker import WorkerConfig

GROUP = "consumer.override.group.id"
_WORKER_GROUP = "consumer.group.id"


def sink_group(worker: WorkerConfig, name: str, config: Mapping[str, str | None]) -> str:
    """Return the consumer group in which the tasks of sink ``name`` read and commit.

    As in Kafka Connect (``Worker.baseConsumerConfigs``), the connector's ``consumer.override.group.id`` wins over the worker's
    ``consumer.group.id``, which wins over ``connect-<name>``. An empty value counts as not set. Validation checks
    whether the connector may override the group.
    """
    return config.get(GROUP) or worker.raw.get(_WORKER_GROUP) or default_group(name)


def default_group(name: str) -> str:
    """Return the consumer group of sink ``name`` if neither the connector nor the worker sets one."""
    return f"connect-{name}"

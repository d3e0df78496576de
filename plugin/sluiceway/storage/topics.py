"""Derives the names and settings of the three internal topics from worker properties. No I/O."""

from __future__ import annotations

import logging
from dataclasses import replace

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.admin import InternalTopic

log = logging.getLogger(__name__)

_NOT_TOPIC_SETTINGS = {"topic", "partitions", "replication.factor", "file.filename"}


def config_topic(worker: WorkerConfig) -> InternalTopic:
    """Return the config topic. It always has one partition, so that its records are totally ordered."""
    return _topic(worker, "config.storage", "connector configurations", partitions=1, single_partition=True)


def history_topic_name(worker: WorkerConfig) -> str:
    """Return the name of the topic with the changes of connectors; empty if they are not recorded."""
    name = worker.values["sluiceway.history.topic"]
    return f"{worker.config_topic}-history" if name is None else str(name).strip()


def offset_topic(worker: WorkerConfig, name: str | None = None) -> InternalTopic:
    """Return the worker's offsets topic, or a connector's own one named ``name`` with the same settings."""
    topic = _topic(worker, "offset.storage", "source connector offsets", worker.number("offset.storage.partitions"))
    return topic if name is None else replace(topic, name=name)


def status_topic(worker: WorkerConfig) -> InternalTopic:
    """Return the status topic."""
    return _topic(worker, "status.storage", "connector and task statuses", worker.number("status.storage.partitions"))


def _topic(worker: WorkerConfig, prefix: str, purpose: str, partitions: int, *, single_partition: bool = False) -> InternalTopic:
    settings = {key: value for key, value in worker.with_prefix(f"{prefix}.").items() if key not in _NOT_TOPIC_SETTINGS}
    if settings.pop("cleanup.policy", "compact") != "compact":
        log.warning("Ignoring '%s.cleanup.policy' because internal topics are always compacted", prefix)
    return InternalTopic(
        name=worker.text(f"{prefix}.topic"),
        prefix=prefix,
        purpose=purpose,
        partitions=partitions,
        replication_factor=worker.number(f"{prefix}.replication.factor"),
        single_partition=single_partition,
        settings=settings,
    )

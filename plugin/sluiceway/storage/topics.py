"""The three internal topics as a worker's properties describe them. Pure: no I/O."""

from __future__ import annotations

import logging
from dataclasses import replace

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.admin import InternalTopic

log = logging.getLogger(__name__)

_NOT_TOPIC_SETTINGS = {"topic", "partitions", "replication.factor", "file.filename"}


def config_topic(worker: WorkerConfig) -> InternalTopic:
    """Return the topic of connector configs: always one partition, so that its records have one order."""
    return _topic(worker, "config.storage", "connector configurations", partitions=1, single_partition=True)


def offset_topic(worker: WorkerConfig, name: str | None = None) -> InternalTopic:
    """Return the topic of source offsets: the worker's, or a connector's own of this name, made as the worker's is."""
    topic = _topic(worker, "offset.storage", "source connector offsets", worker.number("offset.storage.partitions"))
    return topic if name is None else replace(topic, name=name)


def status_topic(worker: WorkerConfig) -> InternalTopic:
    """Return the topic of states."""
    return _topic(worker, "status.storage", "connector and task statuses", worker.number("status.storage.partitions"))


def _topic(worker: WorkerConfig, prefix: str, purpose: str, partitions: int, *, single_partition: bool = False) -> InternalTopic:
    settings = {key: value for key, value in worker.with_prefix(f"{prefix}.").items() if key not in _NOT_TOPIC_SETTINGS}
    if settings.pop("cleanup.policy", "compact") != "compact":
        log.warning("Ignoring '%s.cleanup.policy': an internal topic is always compacted", prefix)
    return InternalTopic(
        name=worker.text(f"{prefix}.topic"),
        prefix=prefix,
        purpose=purpose,
        partitions=partitions,
        replication_factor=worker.number(f"{prefix}.replication.factor"),
        single_partition=single_partition,
        settings=settings,
    )

"""Distinguishes a new cluster without an offsets topic from one whose offsets topic was lost."""

from __future__ import annotations

from collections.abc import Mapping

from sluiceway import discovery
from sluiceway.config.connector import CONNECTOR_CLASS
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, InternalTopicError
from sluiceway.kafka.admin import partition_count
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.kafka_based_log import KafkaBasedLog, LogRecord
from sluiceway.storage.config_state import ConfigState
from sluiceway.storage.model import ClusterState


def refuse_if_sources_have_run(worker: WorkerConfig) -> None:
    """Raise InternalTopicError if source connectors of this cluster had tasks, so that the offsets topic must have existed.

    Kafka Connect and Sluiceway both create the offsets topic before they commit task configs. Reads the config topic.
    """
    if names := sources_that_ran(_config_topic(worker)):
        partitions = worker.number("offset.storage.partitions")
        raise InternalTopicError(
            f"Topic '{worker.offset_topic}' supplied via the 'offset.storage.topic' property does not exist, but "
            f"'{worker.config_topic}' shows that source connectors of this cluster have run ({', '.join(sorted(names))}). It was "
            "deleted, or renamed in the worker's properties. With a new one they would all start from the beginning. Restore "
            f"it. To start from the beginning on purpose, or to set the offsets afterwards, create an empty one: "
            f"kafka-topics.sh --create --topic {worker.offset_topic} --partitions {partitions if partitions > 0 else 25} "
            "--config cleanup.policy=compact"
        )


def sources_that_ran(state: ClusterState) -> list[str]:
    """Return the names of the source connectors that have had task configs. No I/O."""
    return [
        name
        for name, entry in state.connectors.items()
        if entry.config is not None and entry.applied_config is not None and _is_source(entry.config)
    ]


def _is_source(config: Mapping[str, str]) -> bool:
    try:
        return not discovery.is_sink(discovery.connector_class(config.get(CONNECTOR_CLASS, "")))
    except ConnectError:  # the class may be installed elsewhere; only sinks must set topics
        return "topics" not in config and "topics.regex" not in config


def _config_topic(worker: WorkerConfig) -> ClusterState:
    admin = admin_client(worker)
    state = ConfigState()
    partitions = partition_count(admin, worker.config_topic)
    if partitions is None:
        return state.snapshot()

    def apply(record: LogRecord) -> None:
        state.apply(record.offset, record.key, record.value)

    reader = KafkaBasedLog(worker, worker.config_topic, partitions, f"{worker.group_id}-configs", apply, admin=admin)
    try:
        reader.start()
        return state.snapshot()
    finally:
        reader.stop()

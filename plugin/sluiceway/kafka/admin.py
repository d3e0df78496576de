"""Sends admin requests about topics, their settings and offsets. Every call blocks until the cluster answers.

Offsets are requested through an admin client because a consumer's offset requests wait behind its pending fetches, which
takes 0.4 s for each partition. An admin client gets those of all partitions in a millisecond.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import (
    IsolationLevel,
    KafkaError,
    TopicCollection,
)
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from sluiceway.api.task import TopicPartition
from sluiceway.config.parsing import parse_list
from sluiceway.errors import ConnectError, InternalTopicError, KafkaClientError
from sluiceway.kafka.answers import answer, refusal
from sluiceway.kafka.errors import MISSING_TOPIC, mapped_errors, to_connect_error
from sluiceway.kafka.leaders import forget_leaders, list_topics, without_leader

log = logging.getLogger(__name__)

_REQUEST_SECONDS = 30.0
_LEADER_SECONDS = 60.0  # as Java's clients (default.api.timeout.ms): a broker without CPU time takes long to lead
# Errors that occur while a topic is new, its leader moves or brokers restart, with the seconds to retry each.
_TRANSIENT = {
    KafkaError._TRANSPORT: 15.0,
    KafkaError.FENCED_LEADER_EPOCH: _LEADER_SECONDS,
    KafkaError.UNKNOWN_LEADER_EPOCH: _LEADER_SECONDS,
    KafkaError.REPLICA_NOT_AVAILABLE: _LEADER_SECONDS,
    KafkaError.UNKNOWN_TOPIC_OR_PART: 1.0,
    KafkaError._NOENT: 1.0,  # not in the metadata of all topics: missing, or new
    KafkaError.NOT_LEADER_FOR_PARTITION: _LEADER_SECONDS,
    KafkaError.LEADER_NOT_AVAILABLE: _LEADER_SECONDS,
    KafkaError.OFFSET_NOT_AVAILABLE: _LEADER_SECONDS,
}
_NO_COORDINATOR = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
_COORDINATOR_SECONDS = 15.0
_NOT_ALLOWED = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """One of Connect's internal topics, as the worker's properties describe it.

    ``prefix`` is the prefix of its keys (``config.storage``); ``purpose`` describes its contents in error messages.
    ``partitions`` and ``replication_factor`` apply when it is created; -1 is the broker's default. ``single_partition``
    also applies to an existing topic.
    """

    name: str
    prefix: str
    purpose: str
    partitions: int
    replication_factor: int
    single_partition: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The worker's key that names the topic."""
        return f"{self.prefix}.topic"


def ensure_internal_topic(admin: AdminClient, topic: InternalTopic, *, may_create: Callable[[], None] = lambda: None) -> int:
    """Create the topic if it is missing, otherwise check that it can be used. Return its number of partitions.

    ``may_create`` is called before the topic is created. It raises InternalTopicError to prevent that.

    Raises:
        InternalTopicError: it is not compacted, has too many partitions, or cannot be created. Names the key to change.
        KafkaClientError: the cluster did not answer.
    """
    description, created = _describe(admin, topic.name), False
    if description is None:
        may_create()
        created = _create(admin, topic)
    # Another process may have created it a moment ago.
    count = _led_partitions(description) or await_leaders(admin, topic.name)
    if created:
        return count
    if topic.single_partition and count > 1:
        raise InternalTopicError(
            f"Topic '{topic.name}' supplied via the '{topic.key}' property is required to have a single partition in order "
            f"to guarantee consistency of {topic.purpose}, but found {count} partitions."
        )
    _check_compaction(admin, topic)
    return count


def partition_count(admin: AdminClient, topic: str, timeout: float = _REQUEST_SECONDS) -> int | None:
    """Return a topic's number of partitions, or None if it does not exist. Never creates it. ``timeout`` is in seconds."""
    description = _describe(admin, topic, timeout)
    return None if description is None else len(description.partitions)


def partition_counts(admin: AdminClient) -> dict[str, int]:
    """Return the number of partitions of every topic that may be described. Raises KafkaClientError."""
    with mapped_errors("list the topics of the Kafka cluster"):
        topics = list_topics(admin).topics
    return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}


def topic_id(admin: AdminClient, topic: str) -> str | None:
    """Return the topic id, which a topic created again under the same name does not share. None if it does not exist."""
    description = _describe(admin, topic)
    return None if description is None else str(description.topic_id)


def await_leaders(admin: AdminClient, topic: str) -> int:
    """Wait until each partition of a topic that exists has a leader, before which it has no offsets. Return their number.

    Raises ConnectError after 15 s, and KafkaClientError.
    """
    deadline = time.monotonic() + _LEADER_SECONDS
    while True:
        if count := _led_partitions(_describe(admin, topic)):
            return count
        if time.monotonic() > deadline:
            raise ConnectError(
                f"Not every partition of topic '{topic}' has a leader after {_LEADER_SECONDS:.0f} s. Are all brokers up?"
            )
        time.sleep(0.02)


def create_topic(
    admin: AdminClient,
    topic: str,
    partitions: int = -1,
    replication_factor: int = -1,
    settings: Mapping[str, str] | None = None,
) -> bool:
    """Create a topic and return True, or return False if it exists. Raises KafkaClientError.

    -1 as ``partitions`` or ``replication_factor`` is the broker's default.
    """
    new = NewTopic(topic, partitions, replication_factor, config=dict(settings or {}))
    future = admin.create_topics([new], request_timeout=_REQUEST_SECONDS)[topic]
    try:
        answer(future, f"create topic '{topic}'")
    except KafkaClientError as error:
        if error.code == "TOPIC_ALREADY_EXISTS":
            return False
        raise
    log.info("Created topic %s", topic)
    return True


def topic_settings(admin: AdminClient, topic: str) -> dict[str, str]:
    """Return a topic's settings including defaults. Raises KafkaClientError."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = _answer(admin.describe_configs([resource], request_timeout=_REQUEST_SECONDS), f"read the settings of '{topic}'")
    return {name: entry.value for name, entry in entries.items() if entry.value is not None}


def beginning_offsets(admin: AdminClient, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the offset of the first available record by partition. Raises as ``end_offsets`` does."""
    return _offsets(admin, partitions, OffsetSpec.earliest(), read_committed=False)


def end_offsets(
    admin: AdminClient, partitions: Collection[TopicPartition], *, read_committed: bool = True
) -> dict[TopicPartition, int]:
    """Return the offset after the last record by partition; with ``read_committed``, the last stable offset.

    Raises:
        InternalTopicError: a topic or partition does not exist.
        KafkaClientError: the cluster did not answer.
    """
    return _offsets(admin, partitions, OffsetSpec.latest(), read_committed=read_committed)


def offsets_at(
    admin: AdminClient,
    partitions: Collection[TopicPartition],
    milliseconds: int,
    *,
    latest: float = math.inf,
    read_committed: bool = False,
) -> dict[TopicPartition, int]:
    """Return the offset of the first record at or after a time (milliseconds since the epoch), by partition.

    The offset is -1 if there is no such record, and if its time is after ``latest``; with ``read_committed``, also while a
    transaction before it is open. Raises as ``end_offsets`` does.
    """
    return _offsets(admin, partitions, OffsetSpec.for_timestamp(milliseconds), read_committed=read_committed, latest=latest)


def await_coordinator(admin: AdminClient, group: str, doing: str) -> None:
    """Wait until the group's coordinator knows that it is that. Raises KafkaClientError.

    A new cluster has none yet, and it may have moved. The answer to this request says so, while the same answer to a request
    that changes offsets would end the whole process by a segmentation fault (librdkafka's issue 5040, open in 2.16).
    """
    until = time.monotonic() + _COORDINATOR_SECONDS
    while True:
        error = refusal(admin.describe_consumer_groups([group], request_timeout=_REQUEST_SECONDS)[group])
        if error is None or error.code() not in _NO_COORDINATOR:
            return  # also after another error, which the request for offsets will have too
        if time.monotonic() > until:
            raise to_connect_error(error, doing)
        time.sleep(0.05)


def _answer(futures: Mapping[Any, Future[Any]], doing: str) -> Any:
    return answer(next(iter(futures.values())), doing)


def _offsets(
    admin: AdminClient,
    partitions: Collection[TopicPartition],
    spec: OffsetSpec,
    *,
    read_committed: bool,
    latest: float = math.inf,
) -> dict[TopicPartition, int]:
    isolation = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
    started = time.monotonic()
    offsets: dict[TopicPartition, int] = {}
    while missing := set(partitions) - offsets.keys():
        refusals = without_leader(admin, missing)
        specs = {TopicPartitionOffset(*each): spec for each in missing - refusals.keys()}
        futures = admin.list_offsets(specs, isolation_level=isolation, request_timeout=_REQUEST_SECONDS) if specs else {}
        for asked, future in futures.items():
            partition = TopicPartition(asked.topic, asked.partition)
            if (error := refusal(future)) is None:
                found = future.result()
                offsets[partition] = found.offset if found.timestamp <= latest else -1
            else:
                refusals[partition] = error
        if refusals:
            _check_refusals(admin, refusals, time.monotonic() - started)
            forget_leaders(admin, refusals)
            time.sleep(0.03)
    return offsets


def _check_refusals(admin: AdminClient, refusals: Mapping[TopicPartition, KafkaError], seconds: float) -> None:
    """Raise the error of a partition that is not worth waiting for, ``seconds`` after its offset was first asked for."""
    for partition, error in refusals.items():
        code, patience = error.code(), _TRANSIENT.get(error.code(), 0)
        if seconds > patience and code == KafkaError._NOENT and _exists(admin, partition):
            code, patience = KafkaError.LEADER_NOT_AVAILABLE, _LEADER_SECONDS
        if seconds > patience:
            missing = code == KafkaError._NOENT or code in MISSING_TOPIC
            raise _offsets_error(partition, error, missing=missing)


def _exists(admin: AdminClient, partition: TopicPartition) -> bool:
    return (partition_count(admin, partition.topic) or 0) > partition.partition


def _offsets_error(partition: TopicPartition, error: KafkaError, *, missing: bool) -> ConnectError:
    topic, number = partition
    if missing:
        return InternalTopicError(
            f"Topic '{topic}' has no partition {number}: {error.str()}. If it was deleted, restore it from a backup. With an "
            "empty topic every connector would start from the beginning."
        )
    return to_connect_error(error, f"read the offsets of topic '{topic}'")


def _describe(admin: AdminClient, topic: str, timeout: float = _REQUEST_SECONDS) -> Any | None:
    future = admin.describe_topics(TopicCollection([topic]), request_timeout=timeout)[topic]
    error = refusal(future)
    if error is not None and error.code() in MISSING_TOPIC | {KafkaError.TOPIC_EXCEPTION}:  # a name that no topic can have
        return None
    return answer(future, f"describe topic '{topic}'")


def _led_partitions(description: Any | None) -> int:
    """Return the number of a topic's partitions, or 0 unless the topic is known and each of them has a leader."""
    if description is None or any(each.leader is None for each in description.partitions):
        return 0
    return len(description.partitions)


def _create(admin: AdminClient, topic: InternalTopic) -> bool:
    settings = {**topic.settings, "cleanup.policy": "compact"}
    try:
        return create_topic(admin, topic.name, topic.partitions, topic.replication_factor, settings)
    except KafkaClientError as error:
        if error.code == "INVALID_REPLICATION_FACTOR":
            raise InternalTopicError(
                f"Cannot create topic '{topic.name}' with {topic.replication_factor} replicas: {error} Set "
                f"'{topic.prefix}.replication.factor' in the worker's properties to at most the number of brokers, or to -1 "
                "for the broker's default."
            ) from error
        if error.code in _NOT_ALLOWED:
            raise InternalTopicError(
                f"Topic '{topic.name}' does not exist and may not be created: {error} Create it with cleanup.policy=compact, "
                f"or name another one in '{topic.key}'."
            ) from error
        raise


def _check_compaction(admin: AdminClient, topic: InternalTopic) -> None:
    try:
        policy = topic_settings(admin, topic.name).get("cleanup.policy", "")
    except KafkaClientError as error:
        if error.code in _NOT_ALLOWED:
            log.warning("Cannot check that topic %s is compacted: this principal may not read its settings", topic.name)
            return
        raise
    if {each.lower() for each in parse_list(policy)} != {"compact"}:
        raise InternalTopicError(
            f"Topic '{topic.name}' supplied via the '{topic.key}' property is required to have 'cleanup.policy=compact' to "
            f"guarantee consistency and durability of {topic.purpose}, but found the topic currently has "
            f"'cleanup.policy={policy}'. Records would be lost in time, and connectors would not resume where they stopped. "
            f"Set the topic's cleanup.policy to compact, or name a compacted topic in '{topic.key}'."
        )

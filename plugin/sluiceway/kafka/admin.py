"""What is asked of the cluster rather than of a topic's records: topics, their settings, and offsets. Blocks until answered.

Offsets are asked for here and not on a consumer: a consumer's questions wait behind its own parked fetches, which cost
0.4 s for each partition; an admin client answers for all partitions in a millisecond.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, OffsetSpec, ResourceType

from sluiceway.api.task import TopicPartition as Place
from sluiceway.errors import ConnectError, InternalTopicError, KafkaClientError
from sluiceway.kafka.errors import MISSING_TOPIC, mapped_errors, to_connect_error

log = logging.getLogger(__name__)

_REQUEST_SECONDS = 30.0
_LIST_SECONDS = 10.0
_LEADER_SECONDS = 15.0
# What is answered while a topic is new, its leader moves or the brokers restart, and for how many seconds that is believed.
_TRANSIENT = {
    KafkaError._TRANSPORT: 15.0,
    KafkaError.FENCED_LEADER_EPOCH: 15.0,
    KafkaError.UNKNOWN_LEADER_EPOCH: 15.0,
    KafkaError.REPLICA_NOT_AVAILABLE: 15.0,
    KafkaError.UNKNOWN_TOPIC_OR_PART: 1.0,
    KafkaError._NOENT: 1.0,  # librdkafka knows no leader; it does not say whether there is such a partition
    KafkaError.NOT_LEADER_FOR_PARTITION: 15.0,
    KafkaError.LEADER_NOT_AVAILABLE: 15.0,
    KafkaError.OFFSET_NOT_AVAILABLE: 15.0,
}
_NOT_ALLOWED = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that Connect keeps its own data in, as the worker's properties describe it.

    ``prefix`` is that of its keys (``config.storage``), ``purpose`` what it holds, for error texts. ``partitions`` and
    ``replication_factor`` count when it is created, -1 being the broker's default; ``single_partition`` is required of
    an existing topic too.
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
    """Create the topic if there is none, else check that it may be used, and return its number of partitions.

    ``may_create`` is called before it is created, and raises InternalTopicError to refuse that.

    Raises:
        InternalTopicError: it is not compacted, has too many partitions, or cannot be created; says which key to change.
        KafkaClientError: the cluster cannot be asked.
    """
    count = partition_count(admin, topic.name)
    if count is None:
        may_create()
        if _create(admin, topic):
            return _wait_for_leaders(admin, topic.name)
        count = _wait_for_leaders(admin, topic.name)  # another process was quicker
    if topic.single_partition and count > 1:
        raise InternalTopicError(
            f"Topic '{topic.name}' supplied via the '{topic.key}' property is required to have a single partition in order "
            f"to guarantee consistency of {topic.purpose}, but found {count} partitions."
        )
    _check_compaction(admin, topic)
    return count


def partition_count(admin: AdminClient, topic: str) -> int | None:
    """Return a topic's number of partitions, or None if it does not exist. Never creates it."""
    description = _describe(admin, topic)
    return None if description is None else len(description.partitions)


def partition_counts(admin: AdminClient) -> dict[str, int]:
    """Return the number of partitions of every topic that may be described. Raises KafkaClientError."""
    with mapped_errors("list the topics of the Kafka cluster"):
        topics = admin.list_topics(timeout=_LIST_SECONDS).topics
    return {name: len(topic.partitions) for name, topic in topics.items() if topic.error is None}


def topic_id(admin: AdminClient, topic: str) -> str | None:
    """Return what tells a topic from an earlier or later one of the same name, or None if it does not exist."""
    description = _describe(admin, topic)
    return None if description is None else str(description.topic_id)


def create_topic(
    admin: AdminClient,
    topic: str,
    partitions: int = -1,
    replication_factor: int = -1,
    settings: Mapping[str, str] | None = None,
) -> bool:
    """Create a topic, -1 being the broker's default; return False if it exists already. Raises KafkaClientError."""
    new = NewTopic(topic, partitions, replication_factor, config=dict(settings or {}))
    future = admin.create_topics([new], request_timeout=_REQUEST_SECONDS)[topic]
    try:
        with mapped_errors(f"create topic '{topic}'"):
            future.result()
    except KafkaClientError as error:
        if error.code == "TOPIC_ALREADY_EXISTS":
            return False
        raise
    log.info("Created topic %s", topic)
    return True


def topic_settings(admin: AdminClient, topic: str) -> dict[str, str]:
    """Return a topic's settings, defaults included. Raises KafkaClientError."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    entries = _answer(admin.describe_configs([resource], request_timeout=_REQUEST_SECONDS), f"read the settings of '{topic}'")
    return {name: entry.value for name, entry in entries.items() if entry.value is not None}


def beginning_offsets(admin: AdminClient, places: Collection[Place]) -> dict[Place, int]:
    """Return the offset of the first record still there, by partition. Raises as ``end_offsets`` does."""
    return _offsets(admin, places, OffsetSpec.earliest(), read_committed=False)


def end_offsets(admin: AdminClient, places: Collection[Place], *, read_committed: bool = True) -> dict[Place, int]:
    """Return the offset after the last record, by partition; with ``read_committed``, up to the first open transaction.

    Raises:
        InternalTopicError: a topic or partition does not exist.
        KafkaClientError: the cluster cannot be asked.
    """
    return _offsets(admin, places, OffsetSpec.latest(), read_committed=read_committed)


def offsets_at(admin: AdminClient, places: Collection[Place], milliseconds: int) -> dict[Place, int]:
    """Return the offset of the first record that is not older than a time (milliseconds since the epoch), by partition.

    -1 where there is none. Raises as ``end_offsets`` does.
    """
    return _offsets(admin, places, OffsetSpec.for_timestamp(milliseconds), read_committed=False)


def group_offsets(admin: AdminClient, group: str) -> dict[Place, int]:
    """Return a consumer group's committed offsets; empty if it has none or does not exist. Raises KafkaClientError."""
    futures = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)], request_timeout=_REQUEST_SECONDS)
    found = _answer(futures, f"read the offsets of consumer group '{group}'").topic_partitions or []
    return {Place(each.topic, each.partition): each.offset for each in found if each.offset >= 0 and each.error is None}


def _answer(futures: Mapping[Any, Future[Any]], doing: str) -> Any:
    with mapped_errors(doing):
        return next(iter(futures.values())).result()


def _offsets(admin: AdminClient, places: Collection[Place], spec: OffsetSpec, *, read_committed: bool) -> dict[Place, int]:
    isolation = IsolationLevel.READ_COMMITTED if read_committed else IsolationLevel.READ_UNCOMMITTED
    started = time.monotonic()
    offsets: dict[Place, int] = {}
    while missing := set(places) - offsets.keys():
        wanted = {TopicPartition(*place): spec for place in missing}
        futures = admin.list_offsets(wanted, isolation_level=isolation, request_timeout=_REQUEST_SECONDS)
        for place, future in futures.items():
            try:
                offsets[Place(place.topic, place.partition)] = future.result().offset
            except KafkaException as exception:
                error = exception.args[0]
                if time.monotonic() - started > _TRANSIENT.get(error.code(), 0):
                    raise _offsets_error(admin, error, place) from exception
        if len(offsets) < len(places):
            time.sleep(0.03)
            _refresh_leaders(admin)
    return offsets


def _refresh_leaders(admin: AdminClient) -> None:
    """Have librdkafka ask again who leads: it would go on with what it knew before the brokers restarted, and be refused."""
    with suppress(KafkaException):
        admin.list_topics(timeout=2.0)


def _offsets_error(admin: AdminClient, error: KafkaError, place: TopicPartition) -> ConnectError:
    missing = error.code() in MISSING_TOPIC
    if error.code() == KafkaError._NOENT:
        missing = (partition_count(admin, place.topic) or 0) <= place.partition
    if missing:
        return InternalTopicError(
            f"Topic '{place.topic}' has no partition {place.partition}: {error.str()}. If it was deleted, create it again from "
            "a backup; starting with an empty one would start every connector from the beginning."
        )
    return to_connect_error(error, f"read the offsets of topic '{place.topic}'")


def _describe(admin: AdminClient, topic: str) -> Any | None:
    futures = admin.describe_topics(TopicCollection([topic]), request_timeout=_REQUEST_SECONDS)
    try:
        return futures[topic].result()
    except KafkaException as exception:
        if exception.args[0].code() in MISSING_TOPIC:
            return None
        raise to_connect_error(exception.args[0], f"describe topic '{topic}'") from exception


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


def _wait_for_leaders(admin: AdminClient, topic: str) -> int:
    deadline = time.monotonic() + _LEADER_SECONDS
    while True:
        description = _describe(admin, topic)
        if description is not None and all(each.leader is not None for each in description.partitions):
            return len(description.partitions)
        if time.monotonic() > deadline:
            raise ConnectError(f"Topic '{topic}' was created but has no leaders yet. Are all brokers up?")
        time.sleep(0.02)


def _check_compaction(admin: AdminClient, topic: InternalTopic) -> None:
    try:
        policy = topic_settings(admin, topic.name).get("cleanup.policy", "")
    except KafkaClientError as error:
        if error.code in _NOT_ALLOWED:
            log.warning("Cannot check that topic %s is compacted, since its settings may not be read", topic.name)
            return
        raise
    if {part.strip().lower() for part in policy.split(",") if part.strip()} != {"compact"}:
        raise InternalTopicError(
            f"Topic '{topic.name}' supplied via the '{topic.key}' property is required to have 'cleanup.policy=compact' to "
            f"guarantee consistency and durability of {topic.purpose}, but found the topic currently has "
            f"'cleanup.policy={policy}'. Records would be lost in time, and connectors would not start where they left off. "
            f"Set the topic's cleanup.policy to compact, or name a compacted topic in '{topic.key}'."
        )

"""Knows which partitions have a leader that an admin client has heard of, so that no other partition is asked for offsets.

librdkafka (2.16) waits for the next change of its metadata when it is asked for the offsets of a partition without a leader. Two
threads may then finish the same request, or a change may touch the memory of one that has ended: the process ends with a
segmentation fault or ``double free or corruption`` (``rd_kafka_topic_partition_list_query_leaders_async``).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from weakref import WeakKeyDictionary

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, ClusterMetadata, TopicMetadata

from sluiceway.api.task import TopicPartition

_KNOWN_SECONDS = 300.0
"""For how long leaders count as known. librdkafka drops them 15 minutes after the last metadata (``metadata.max.age.ms``)."""

_LIST_SECONDS = 10.0


class _Leaders:
    """The partitions whose leaders a client knows, with the time at which it heard of them."""

    def __init__(self) -> None:
        self.asking = threading.Lock()
        self._heard: dict[TopicPartition, float] = {}

    def unknown(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        since = time.monotonic() - _KNOWN_SECONDS
        return {each for each in partitions if self._heard.get(each, since) <= since}

    def learn(self, partitions: Collection[TopicPartition]) -> None:
        self._heard = dict.fromkeys(partitions, time.monotonic())

    def forget(self, partitions: Collection[TopicPartition]) -> None:
        self._heard = {each: at for each, at in self._heard.items() if each not in partitions}


_clients: WeakKeyDictionary[AdminClient, _Leaders] = WeakKeyDictionary()
_clients_lock = threading.Lock()


def list_topics(admin: AdminClient, timeout: float = _LIST_SECONDS) -> ClusterMetadata:
    """Return the metadata of all topics, and remember which partitions have leaders. Raises KafkaException.

    A request for some topics would create those that do not exist. ``timeout`` is in seconds.
    """
    cluster = admin.list_topics(timeout=timeout)
    _of(admin).learn(
        [
            TopicPartition(name, number)
            for name, topic in cluster.topics.items()
            for number, partition in topic.partitions.items()
            if partition.leader >= 0
        ]
    )
    return cluster


def without_leader(admin: AdminClient, partitions: Collection[TopicPartition]) -> dict[TopicPartition, KafkaError]:
    """Return the partitions that must not be asked for offsets, with the reason.

    The code is ``_NOENT`` for a partition that is not in the cluster's metadata, ``LEADER_NOT_AVAILABLE`` for one without a
    leader, or that of an error of the request.
    """
    leaders = _of(admin)
    if not leaders.unknown(partitions):
        return {}
    with leaders.asking:  # one request is enough for all threads
        if not (unknown := leaders.unknown(partitions)):
            return {}
        try:
            topics = list_topics(admin).topics
        except KafkaException as error:
            return dict.fromkeys(unknown, error.args[0])
    return {each: KafkaError(_reason(topics, each)) for each in leaders.unknown(partitions)}


def forget_leaders(admin: AdminClient, partitions: Collection[TopicPartition]) -> None:
    """Hear of these partitions' leaders again before they are asked: after a broker's restart a client asks the former ones."""
    if partitions:
        _of(admin).forget(partitions)


def _of(admin: AdminClient) -> _Leaders:
    with _clients_lock:
        return _clients.setdefault(admin, _Leaders())


def _reason(topics: Mapping[str, TopicMetadata], partition: TopicPartition) -> int:
    topic = topics.get(partition.topic)
    known = topic is not None and partition.partition in topic.partitions
    return KafkaError.LEADER_NOT_AVAILABLE if known else KafkaError._NOENT

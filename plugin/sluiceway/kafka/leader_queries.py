"""Lets one thread at a time make an admin client learn which brokers lead partitions.

A request for offsets of partitions whose leaders the client does not know waits for a change of its metadata. If another answer
changes them in that moment, both librdkafka's thread and the caller's finish the request, and the process ends with a
segmentation fault or ``double free or corruption`` (``rd_kafka_topic_partition_list_query_leaders_async``, in 2.16).

This makes that rare. It still happens after a request for a partition that has no leader, whose memory the next change may touch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from confluent_kafka.admin import AdminClient

from sluiceway.api.task import TopicPartition

_KNOWN_SECONDS = 300.0
"""How long leaders count as known. librdkafka forgets those that it does not hear of for 15 minutes (``metadata.max.age.ms``)."""


class _Leaders:
    """The leaders that a client knows: the time of the last answer by partition."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._answered: dict[TopicPartition, float] = {}

    def know(self, partitions: Collection[TopicPartition]) -> bool:
        since = time.monotonic() - _KNOWN_SECONDS
        return all(self._answered.get(each, since) > since for each in partitions)

    def learn(self, partitions: Collection[TopicPartition], answered: Collection[TopicPartition]) -> None:
        now = time.monotonic()
        for each in partitions:
            self._answered.pop(each, None)
        self._answered.update(dict.fromkeys(answered, now))


_clients: WeakKeyDictionary[AdminClient, _Leaders] = WeakKeyDictionary()
_clients_lock = threading.Lock()


@contextmanager
def leader_query(admin: AdminClient, partitions: Collection[TopicPartition] = ()) -> Iterator[list[TopicPartition]]:
    """Wait until no other thread changes the client's metadata, unless the client knows the leaders of all these partitions.

    Without partitions, for requests of metadata. The caller adds the partitions whose leaders have answered to the list.
    """
    with _clients_lock:
        leaders = _clients.setdefault(admin, _Leaders())
    answered: list[TopicPartition] = []
    try:
        if partitions and leaders.know(partitions):
            yield answered
        else:
            with leaders.lock:
                yield answered
    finally:
        leaders.learn(partitions, answered)

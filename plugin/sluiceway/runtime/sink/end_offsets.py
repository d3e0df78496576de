"""Asks for the end offsets of a sink task's topic partitions, from which its lag is computed.

librdkafka learns end offsets from fetches, and does not fetch while its queue is full. Without this, the lag of a task that is
slower than its topic would shrink until the queue has room again, instead of growing.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping

from sluiceway.api import TopicPartition
from sluiceway.errors import ConnectError
from sluiceway.kafka.clients import OFFSET_END, Consumer, TopicPartitionOffset
from sluiceway.kafka.errors import mapped_errors

log = logging.getLogger(__name__)

_INTERVAL_SECONDS = 10.0
_TIMEOUT_SECONDS = 1.0

Report = Callable[[Mapping[TopicPartition, int]], None]


class EndOffsets:
    """Reports end offsets to ``report``. Runs on the task's thread. Does nothing if ``report`` is None."""

    def __init__(self, consumer: Consumer, report: Report | None) -> None:
        self._consumer = consumer
        self._report = report
        self._due = 0.0

    def refresh(self, partitions: Collection[TopicPartition]) -> None:
        """Ask the brokers, with one request to the leaders of these partitions, unless that was less than 10 s ago.

        An error is logged only: the lag is that of the last answer then.
        """
        now = time.monotonic()
        if self._report is None or now < self._due or not partitions:
            return
        self._due = now + _INTERVAL_SECONDS
        wanted = [TopicPartitionOffset(*partition, OFFSET_END) for partition in partitions]
        try:
            with mapped_errors("list the end offsets"):
                # A timestamp of -1 stands for the end in Kafka's ListOffsets request.
                found = self._consumer.offsets_for_times(wanted, timeout=_TIMEOUT_SECONDS)
        except ConnectError as error:
            log.debug("%s The lag is computed from the end offsets that are known.", error)
            return
        ends = {TopicPartition(each.topic, each.partition): each.offset for each in found if each.error is None}
        self._report({partition: end for partition, end in ends.items() if end >= 0})

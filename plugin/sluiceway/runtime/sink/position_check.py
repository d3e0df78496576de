"""Warns if a consumer continues at another offset than expected, so that records are lost to the sink or repeated."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping

from sluiceway.api import TopicPartition

log = logging.getLogger(__name__)

_CHECK_SECONDS = 60.0


class PositionCheck:
    """Compares the offsets read with those expected. Logs every jump, whatever ``auto.offset.reset`` is.

    Offsets may have gaps (compaction, transaction markers). So after a jump forward, ``beginning_offset`` is called to find
    out whether records were deleted, at most once a minute for each partition.
    """

    def __init__(
        self, beginning_offset: Callable[[TopicPartition], int | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._beginning_offset = beginning_offset
        self._clock = clock
        self._expected: dict[TopicPartition, int] = {}
        self._next_check: dict[TopicPartition, float] = {}

    def expect(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the next offsets to be read."""
        self._expected.update(offsets)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the expected offsets of partitions that are no longer assigned."""
        for partition in partitions:
            self._expected.pop(partition, None)
            self._next_check.pop(partition, None)

    def read(self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
        """Compare the first offsets of a batch with the expected ones. ``ends`` are expected next."""
        for partition, start in starts.items():
            expected = self._expected.get(partition, start)
            if start < expected:
                self._log_backward(partition, expected, start)
            elif start > expected and self._clock() >= self._next_check.get(partition, 0.0):
                self._check_forward(partition, expected, start)
        self._expected.update(ends)

    def _check_forward(self, partition: TopicPartition, expected: int, start: int) -> None:
        self._next_check[partition] = self._clock() + _CHECK_SECONDS
        beginning = self._beginning_offset(partition)
        if beginning is not None and beginning > expected:
            log.warning(
                "Offset %d of %s-%d, the next to read, no longer exists: the partition begins at %d. Continuing at %d; %d "
                "offsets were deleted before they were read. Check the topic's retention and the speed of the target system.",
                expected,
                *partition,
                beginning,
                start,
                start - expected,
            )

    @staticmethod
    def _log_backward(partition: TopicPartition, expected: int, start: int) -> None:
        log.warning(
            "Offset %d of %s-%d, the next to read, does not exist: the topic was truncated or recreated, or the consumer group's "
            "offsets were set too high. Continuing at %d as auto.offset.reset says; up to %d records may be repeated.",
            expected,
            *partition,
            start,
            expected - start,
        )

"""Notices when reading goes on somewhere else than where it stopped: records are lost to the sink, or come again."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping

from sluiceway.api import TopicPartition

log = logging.getLogger(__name__)

_LOOK_SECONDS = 60.0


class PositionCheck:
    """The next offset expected of each partition. A jump is never silent, whatever ``auto.offset.reset`` says.

    Offsets may have gaps (compaction, transactions' markers), so of a jump ahead it is asked where the partition begins
    now (``begin``), at most once a minute.
    """

    def __init__(self, begin: Callable[[TopicPartition], int | None], clock: Callable[[], float] = time.monotonic) -> None:
        self._begin = begin
        self._clock = clock
        self._expected: dict[TopicPartition, int] = {}
        self._next_look: dict[TopicPartition, float] = {}

    def expect(self, offsets: Mapping[TopicPartition, int]) -> None:
        """These are the next offsets to be read."""
        self._expected.update(offsets)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._expected.pop(partition, None)
            self._next_look.pop(partition, None)

    def read(self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]) -> None:
        """Compare the first offsets of a batch with what was expected; ``ends`` are expected next."""
        for partition, start in starts.items():
            expected = self._expected.get(partition, start)
            if start < expected:
                self._tell_backward(partition, expected, start)
            elif start > expected and self._clock() >= self._next_look.get(partition, 0.0):
                self._look(partition, expected, start)
        self._expected.update(ends)

    def _look(self, partition: TopicPartition, expected: int, start: int) -> None:
        self._next_look[partition] = self._clock() + _LOOK_SECONDS
        begin = self._begin(partition)
        if begin is not None and begin > expected:
            log.warning(
                "Offset %d of %s-%d, where reading was to go on, is not there any more: the partition begins at %d. Reading goes "
                "on at %d; %d offsets were deleted before they were read (retention, or the target is too slow).",
                expected,
                *partition,
                begin,
                start,
                start - expected,
            )

    @staticmethod
    def _tell_backward(partition: TopicPartition, expected: int, start: int) -> None:
        log.warning(
            "Offset %d of %s-%d, where reading was to go on, is not there: the topic was truncated or made anew, or its offsets "
            "were set too high. Reading goes on at %d as auto.offset.reset says; up to %d records may come again.",
            expected,
            *partition,
            start,
            expected - start,
        )

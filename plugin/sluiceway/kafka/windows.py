"""The offsets that a run reads of each partition, as a config key has them. No I/O."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sluiceway.api.records import TopicPartition

Span = tuple[int, int]
"""Offsets from the first to before the second."""

_MOST_OFFSET = 2**63


@dataclass(frozen=True, slots=True)
class Window:
    """The offsets of one partition that a run reads.

    Attributes:
        start: the first offset to read.
        closed: the closing of the interval's start: records from there on with times before the interval are late ones.
        end: the closing of the interval's end.
        left: spans of offsets from there on with records of the interval that others have left to it.
    """

    start: int
    closed: int
    end: int
    left: tuple[Span, ...] = ()

    @property
    def last(self) -> int:
        """The offset before which the last record of the interval is."""
        return self.left[-1][1] if self.left else self.end

    def has_left(self, offset: int) -> bool:
        """Return whether others have left a record of the interval at this offset to it."""
        number = bisect_right(self.left, (offset, _MOST_OFFSET))
        return number > 0 and offset < self.left[number - 1][1]


def encode_windows(of: Mapping[TopicPartition, Window]) -> str:
    """Return windows as the value of a config key."""
    return text_of({partition: [window.start, window.closed, window.end, *window.left] for partition, window in of.items()})


def decode_windows(text: str) -> dict[TopicPartition, Window]:
    """Return the windows of ``encode_windows``."""
    decoded = by_partition(text)
    return {
        partition: Window(start, closed, end, tuple((first, last) for first, last in left))
        for partition, (start, closed, end, *left) in decoded
    }


def text_of(values: Mapping[TopicPartition, int | list[int | Span]]) -> str:
    """Return values by topic and partition as JSON."""
    nested: dict[str, dict[str, int | list[int | Span]]] = {}
    for (topic, partition), value in sorted(values.items()):
        nested.setdefault(topic, {})[str(partition)] = value
    return json.dumps(nested, separators=(",", ":"))


def by_partition(text: str) -> Iterator[tuple[TopicPartition, Any]]:
    """Yield the values of ``text_of``."""
    for topic, partitions in json.loads(text).items():
        for number, value in partitions.items():
            yield TopicPartition(topic, int(number)), value

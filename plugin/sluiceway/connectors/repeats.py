"""Tells the records apart that transforms have made of one message. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sluiceway.api import SinkRecord


def repeats(records: Sequence[SinkRecord]) -> dict[int, int]:
    """Return the numbers, from 1, of further records that were made of a message, by the records' identities.

    The same records have the same numbers when a put is repeated.
    """
    counts: Counter[tuple[str, int, int]] = Counter()
    found: dict[int, int] = {}
    for record in records:
        message = (*record.original_topic_partition, record.original_kafka_offset)
        if counts[message]:
            found[id(record)] = counts[message]
        counts[message] += 1
    return found

"""Replaces the rows of an interval that a run moves again, by ``airflow.interval.column``. No I/O.

Each row has the start of its interval in the column. A later attempt has one task, which keeps its rows until it has read all of
the interval, and then writes them in the transaction that deletes those of earlier attempts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluiceway.api import TopicPartition
from sluiceway.config.intervals import COLUMN, POSITIONS, IntervalRun, interval_text
from sluiceway.kafka.windows import decode_windows


@dataclass(frozen=True, slots=True)
class IntervalReplacement:
    """The rows to replace.

    Attributes:
        column: the column with the start of the interval.
        value: its value in the rows of this interval.
        ends: the offsets before which the records of the interval are, of partitions that have some.
    """

    column: str
    value: str
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Mapping[str, str]) -> IntervalReplacement | None:
        """Return what a run with this config replaces; None if it only adds rows."""
        run, column = IntervalRun.of(config), config.get(COLUMN)
        if run is None or not column or run.attempt == 1:
            return None
        read = decode_windows(config.get(POSITIONS, "{}"))
        ends = {partition: window.last for partition, window in read.items() if window.start < window.last}
        return cls(column, interval_text(run.interval), ends)

    def is_complete(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Return whether all records of the interval are before these offsets."""
        return all(offsets.get(partition, 0) >= end for partition, end in self.ends.items())

    def is_done(self, stored: Mapping[TopicPartition, int | None]) -> bool:
        """Return whether a killed task has replaced the rows, by the offsets that the target has stored."""
        return bool(self.ends) and self.is_complete({each: offset or 0 for each, offset in stored.items()})


def interval_column(config: Mapping[str, str]) -> str | None:
    """Return the column that each row of a run must have; None for a config without one."""
    return (config.get(COLUMN) or None) if IntervalRun.of(config) is not None else None

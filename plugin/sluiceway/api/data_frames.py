"""Base classes of tasks that read or write Spark DataFrames. They run on the driver, where a Spark session is.

The runtime works in rounds. A round of a sink is one DataFrame with the records of a range of offsets in each partition; a
round of a source is a DataFrame for each split. Spark's executors read, convert and write the records of a round in parallel.
Everything else is as for other tasks: commands, statuses, offsets and errors.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Protocol

from sluiceway.api.records import Offset, Partition, SinkRecord, SourceRecord
from sluiceway.api.task import SinkTask, SourceTask
from sluiceway.errors import ConnectError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Offsets = Sequence[tuple[Partition, "Offset | None"]]
"""Source partitions and the offsets to store for them; None deletes an offset."""


class DataFrameSinkTask(SinkTask):
    """Writes the records of its topics as DataFrames. Delivery is at least once: a round may be written again after a failure."""

    spark: SparkSession
    """The task's own session, in the time zone UTC. Set before ``start``."""

    flush_size: int = 500_000
    """The largest number of offsets of a partition in a round. Like the next four, set it in ``start``."""

    flush_bytes: int = 256 << 20
    """The largest number of bytes of a partition's keys and values in a round, which has one record of it at least."""

    rotate_seconds: float = 10.0
    """The maximum time in seconds that records wait for more before a smaller round is written."""

    skip_nulls: bool = False
    """Whether records without a value are skipped. Otherwise they are errors, because a table cannot hold them."""

    replace_nulls: bool = True
    """Whether a null of an optional field that has a default is written as the default."""

    @classmethod
    def needs_schemas(cls, config: Mapping[str, str]) -> bool:
        return True  # they become the columns

    @abc.abstractmethod
    def write(self, frame: DataFrame) -> None:
        """Write a round's records, a row for each. When this returns, they must be durable; then their offsets are committed.

        Raise RetriableError to get the same round again. The frame is cached, so reading it twice is cheap.
        """

    def put(self, records: Sequence[SinkRecord]) -> NoReturn:
        raise _needs_spark(self)


class SplitReader(Protocol):
    """Reads the rows of a split on its executor, without Spark's JVM. Picklable."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the split's ``frame``, with its columns in their order. May be called again after a failure."""


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a round that one executor reads and produces to Kafka, exactly once in a single transaction.

    ``offsets`` are stored with the records of ``frame``, which is read as a single partition. They must differ from those of
    all earlier splits: a split whose offsets are stored already has been produced, and is skipped.

    The splits of a ``slot`` are produced one after the other, by one producer with the slot's transactional id. A split that is
    planned again must have the same slot, because that fences an executor which still produces it.
    """

    frame: DataFrame
    offsets: Offsets
    slot: int = 0
    reader: SplitReader | None = None
    """Used instead of ``frame`` if all splits of the round have one. Then ``frame`` only has the schema."""


@dataclass(frozen=True, slots=True)
class Round:
    """The next splits of a source.

    Attributes:
        topic: the topic of the records.
        schema_name: the name of the records' schema.
        splits: the splits. Their slots are produced in parallel.
        begin: offsets that are stored before the splits are produced, and must still be stored when each of them is. They hold
            the round's plan, from which ``next_round`` returns the same round again after a failure.
        end: offsets that are stored when all splits have been produced.
    """

    topic: str
    splits: Sequence[Split]
    schema_name: str | None = None
    begin: Offsets = ()
    end: Offsets = ()


class DataFrameSourceTask(SourceTask):
    """Reads rounds of DataFrames, whose rows become records."""

    spark: SparkSession
    """The task's own session, in the time zone UTC. Set before ``start``."""

    @abc.abstractmethod
    def next_round(self) -> Round | None:
        """Return the next round, as the stored offsets say, or None if no rows are available.

        Called again after a failure, when some of the last round's splits may have been produced.
        """

    @property
    @abc.abstractmethod
    def poll_seconds(self) -> float:
        """Seconds to wait after ``next_round`` has returned None."""

    @property
    @abc.abstractmethod
    def slots(self) -> int:
        """The largest number of slots of a round. Each has a transactional id of its own."""

    def poll(self) -> Sequence[SourceRecord]:
        raise _needs_spark(self)


def _needs_spark(task: SinkTask | SourceTask) -> ConnectError:
    return ConnectError(f"{type(task).__name__} reads or writes DataFrames and runs on a Spark driver only.")

"""A round of a source: executors read its splits and produce their rows, each split in a transaction of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from sluiceway.api import Column, ColumnBatch, NotColumnar, SourceColumns, SourceRecord
from sluiceway.api.data_frames import Offsets, Round
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.config.variables import resolver
from sluiceway.data import Schema
from sluiceway.errors import ConnectError, FencedError, RetriableError, trace_of
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.runtime.columns import ColumnAttempts
from sluiceway.runtime.garbage import raise_gc_threshold
from sluiceway.runtime.source.exactly_once_delivery import TransactionLostError
from sluiceway.runtime.source.failed_sends import describe_source_record
from sluiceway.runtime.source.source_task_builder import SourceTaskParts, build_source_task
from sluiceway.runtime.source.submitted_records import SubmittedRecords
from sluiceway.runtime.source.transaction_boundary import CommitAction
from sluiceway.runtime.task import TaskServices
from sluiceway.runtime.transforms.batch_transform import transform_batch
from sluiceway.spark.rounds.arrow_rows import to_values
from sluiceway.spark.rounds.spark_schemas import row_schema
from sluiceway.storage.model import State
from sluiceway.worker.executor import Assignment
from sluiceway.worker.log_context import log_to_stderr

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ROW, _SPLIT = "row", "split"
# A split whose transaction was ended from outside: a split of a driver that was replaced may still have run.
_RETRIABLE = (FencedError, TransactionLostError, RetriableError)
_RESULT = "split int, records long, topics array<string>, failure string, retriable boolean"
_RESULT_ARROW = pa.schema(
    [
        pa.field("split", pa.int32()),
        pa.field("records", pa.int64()),
        pa.field("topics", pa.list_(pa.string())),
        pa.field("failure", pa.string()),
        pa.field("retriable", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True)
class SplitResult:
    """The outcome of a split that has rows."""

    split: int
    records: int
    topics: tuple[str, ...]
    failure: str | None
    retriable: bool

    def check(self) -> None:
        """Raise ConnectError if the split could not be produced, RetriableError if another attempt may succeed."""
        if self.failure is not None:
            raise RetriableError(self.failure) if self.retriable else ConnectError(self.failure)


class SourceRound:
    """One round, on the driver."""

    def __init__(self, spark: SparkSession, assignment: Assignment, round_: Round) -> None:
        self._spark = spark
        self._assignment = assignment
        self._round = round_

    def run(self) -> list[SplitResult]:
        """Produce the splits in one Spark job; return the results of those that have rows."""
        from pyspark.sql import functions

        splits = self._round.splits
        schema = row_schema(splits[0].frame.schema, self._round.schema_name)
        frames = [
            split.frame.coalesce(1).select(functions.struct("*").alias(_ROW), functions.lit(number).alias(_SPLIT))
            for number, split in enumerate(splits)
        ]
        union = frames[0]
        for frame in frames[1:]:
            union = union.unionAll(frame)
        offsets = tuple(tuple(split.offsets) for split in splits)
        produce = ProduceSplits(self._assignment, self._round.topic, schema, tuple(self._round.begin), offsets)
        rows = union.mapInArrow(produce, _RESULT).collect()
        return [SplitResult(row["split"], row["records"], tuple(row["topics"]), row["failure"], row["retriable"]) for row in rows]


@dataclass(frozen=True, slots=True)
class ProduceSplits:
    """The function that mapInArrow calls with the rows of a split. Picklable; runs on executors.

    ``begin`` and ``offsets`` are those of the round and of its splits.
    """

    assignment: Assignment
    topic: str
    schema: Schema
    begin: Offsets
    offsets: tuple[Offsets, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _Rows(batches)
        if rows.split is None:
            return
        spec = self.assignment.spec
        log_to_stderr(f"[{spec.id.connector}|task-{spec.id.task}] ")
        raise_gc_threshold()
        use_plugin_path(spec.worker.raw)
        spec = replace(spec, config=resolver(spec.worker).resolve(spec.config))
        services = self.assignment.services.open(self.assignment.spec)
        topics: set[str] = set()
        records, failure, retriable = 0, None, False
        try:
            with ExitStack() as resources:
                parts = build_source_task(spec, _with_topics(services, topics), resources, slot=rows.split)
                records = _SplitProducer(self, parts).run(rows.split, rows)
        except Exception as error:  # noqa: BLE001 (the other splits of the round do not fail with this one)
            failure, retriable = trace_of(error), isinstance(error, _RETRIABLE)
        finally:
            services.close()
        result = {"split": rows.split, "records": records, "topics": sorted(topics), "failure": failure, "retriable": retriable}
        yield pa.RecordBatch.from_pylist([result], schema=_RESULT_ARROW)


class _Rows:
    """The rows of a partition, which are those of one split. ``split`` is its number, None if there are no rows."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = (batch for batch in batches if batch.num_rows)
        self._first = next(self._batches, None)
        self.split: int | None = None if self._first is None else int(self._first.column(1)[0].as_py())

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        if self._first is not None:
            yield self._first
        yield from self._batches


class _SplitProducer:
    """Produces one split, unless its offsets are stored already."""

    def __init__(self, job: ProduceSplits, parts: SourceTaskParts) -> None:
        self._job = job
        self._parts = parts
        self._attempts = ColumnAttempts()

    def run(self, split: int, rows: Iterable[pa.RecordBatch]) -> int:
        """Return the number of rows. Raises ConnectError, and FencedError if another driver produces the split."""
        parts, offsets = self._parts, self._job.offsets[split]
        # From here on, nobody else can commit this split, so what is stored now stays true until this commit.
        parts.delivery.start()
        stored = self._stored(offsets)
        if all(stored):
            return 0
        if any(stored) or not all(self._stored(self._job.begin)):
            raise RetriableError("The split is no longer part of the stored plan: offsets were stored after it was made.")
        try:
            records = 0
            for batch in rows:
                self._send(batch)
                records += batch.num_rows
            for partition, offset in offsets:
                parts.offsets.add(partition, offset)
            while parts.offsets.pending:
                parts.delivery.apply(CommitAction.COMMIT)
        except Exception as error:
            parts.delivery.fail(error)
            raise
        return records

    def _stored(self, offsets: Offsets) -> list[bool]:
        """Return for each offset whether it is the stored one."""
        if not offsets:
            return []
        stored = self._parts.context.offset_storage_reader.offsets([partition for partition, _ in offsets])
        return [_same(found, offset) for found, (_, offset) in zip(stored, offsets, strict=True)]

    def _send(self, batch: pa.RecordBatch) -> None:
        """Produce rows: as columns if converters and transforms can, else one by one."""
        parts = self._parts
        if parts.encode_columns is not None and self._attempts.next():
            try:
                encoded = parts.encode_columns(self._columns(batch))
            except (NotColumnar, pa.ArrowException):
                self._attempts.failed()
            else:
                self._attempts.succeeded()
                parts.delivery.send(encoded)
                return
        records = self._records(batch)
        made = transform_batch(
            parts.chain, records, parts.tolerance, describe=describe_source_record, original=lambda record: record
        )
        if made.failure is not None:
            raise made.failure
        parts.delivery.send(SubmittedRecords(made.records, records, made.origins))
        parts.tolerance.poll_deliveries()

    def _columns(self, batch: pa.RecordBatch) -> SourceColumns:
        values = batch.column(0).cast(arrow_type(self._job.schema), safe=False)
        columns = ColumnBatch(
            topic=self._job.topic,
            partition=None,
            key=Column(None, None),
            value=Column(self._job.schema, values),
            count=batch.num_rows,
        )
        return SourceColumns(batch=columns, source_partition=None, source_offset=None, records=lambda: self._records(batch))

    def _records(self, batch: pa.RecordBatch) -> list[SourceRecord]:
        schema, topic = self._job.schema, self._job.topic
        return [SourceRecord(None, None, topic, value, schema) for value in to_values(schema, batch.column(0))]


def _same(stored: Mapping[str, object] | None, wanted: Mapping[str, object] | None) -> bool:
    return (None if stored is None else dict(stored)) == (None if wanted is None else dict(wanted))


def _with_topics(services: TaskServices, topics: set[str]) -> TaskServices:
    """Return services whose reporter collects topics, which the driver reports."""
    return replace(services, reporter=_TopicCollector(topics))


class _TopicCollector:
    """A ``TaskReporter`` for a part of a task, whose state only the driver reports."""

    def __init__(self, topics: set[str]) -> None:
        self._topics = topics

    def report(self, state: State, trace: str | None = None) -> None:
        """Do nothing."""

    def topic(self, topic: str) -> None:
        self._topics.add(topic)

"""A round of a source: executors read its splits and produce their rows, each split in a transaction of its own."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute

from sluiceway.api import Column, ColumnBatch, NotColumnar, OffsetStorageReader, SourceColumns, SourceRecord
from sluiceway.api.data_frames import Offsets, Round, SplitReader
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.columns.refused_values import refused_values
from sluiceway.config.variables import resolution_for_use
from sluiceway.data import Schema
from sluiceway.errors import ConnectError, FencedError, RetriableError, trace_of
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.runtime.garbage import raise_gc_threshold
from sluiceway.runtime.source.exactly_once_delivery import TransactionLostError
from sluiceway.runtime.source.failed_sends import describe_source_record
from sluiceway.runtime.source.source_task_builder import SourceTaskParts, build_source_task
from sluiceway.runtime.source.submitted_records import SubmittedRecords
from sluiceway.runtime.source.transaction_boundary import CommitAction
from sluiceway.runtime.task import TaskServices, TaskSpec
from sluiceway.runtime.transforms.batch_transform import transform_batch
from sluiceway.spark.rounds.arrow_rows import to_values
from sluiceway.spark.rounds.spark_schemas import row_schema
from sluiceway.storage.model import State
from sluiceway.worker.executor import TaskAssignment
from sluiceway.worker.log_context import log_to_stderr

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pc: Any = pyarrow.compute  # its stubs do not know all functions

_SPLIT, _END = "split", "end"
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

    def __init__(self, spark: SparkSession, assignment: TaskAssignment, round_: Round) -> None:
        self._spark = spark
        self._assignment = assignment
        self._round = round_

    def run(self, done: Collection[int] = ()) -> list[SplitResult]:
        """Produce the splits, except ``done``, in one Spark job; return the results of those that have rows."""
        splits = self._round.splits
        # Each slot is one Spark task, which reads its splits one after the other.
        slots: dict[int, list[int]] = {}
        for number, split in enumerate(splits):
            if number not in done:
                slots.setdefault(split.slot, []).append(number)
        if not slots:
            return []
        direct = all(split.reader is not None for split in splits)
        schema = row_schema(splits[0].frame.schema, self._round.schema_name)
        jobs = tuple(SplitJob(split.slot, tuple(split.offsets), split.reader if direct else None) for split in splits)
        produce = ProduceSplits(self._assignment, self._round.topic, schema, tuple(self._round.begin), jobs)
        rows = (self._numbers(slots) if direct else self._rows(slots)).mapInArrow(produce, _RESULT).collect()
        return [SplitResult(row["split"], row["records"], tuple(row["topics"]), row["failure"], row["retriable"]) for row in rows]

    def _rows(self, slots: Mapping[int, Sequence[int]]) -> DataFrame:
        """Return the rows of the slots' splits, a partition for each slot."""
        frames = [[_numbered(self._round.splits[number].frame, number) for number in numbers] for numbers in slots.values()]
        return _union([_union([*each, _end(each[0])]).coalesce(1) for each in frames])

    def _numbers(self, slots: Mapping[int, Sequence[int]]) -> DataFrame:
        """Return the numbers of the slots' splits, a partition for each slot."""
        from pyspark.sql import functions

        row = self._spark.range(1).coalesce(1)
        texts = [[*map(str, numbers), _END] for numbers in slots.values()]
        return _union([row.select(functions.explode(functions.lit(each)).alias(_SPLIT)) for each in texts])


def _numbered(frame: DataFrame, number: int) -> DataFrame:
    """Return the rows as one partition, with the split's number as a last column.

    It is text because Spark compiles code for each number, but passes a text to the code that it has compiled. Columns are
    renamed because Spark cannot pass names with dots, or the same one twice, to Python.
    """
    from pyspark.sql import functions

    names = (f"column{index}" for index in range(len(frame.columns)))
    return frame.coalesce(1).toDF(*names).withColumn(_SPLIT, functions.lit(str(number)))


def _end(like: DataFrame) -> DataFrame:
    """Return the last row of a slot, by which the executor knows that it was sent all rows."""
    from pyspark.sql import functions

    nulls = [functions.lit(None).cast(column.dataType).alias(column.name) for column in like.schema.fields[:-1]]
    return like.sparkSession.range(1).coalesce(1).select(*nulls, functions.lit(_END).alias(_SPLIT))


def _union(frames: Sequence[DataFrame]) -> DataFrame:
    union = frames[0]
    for frame in frames[1:]:
        union = union.unionAll(frame)
    return union


class SplitJob(NamedTuple):
    """A split, as an executor needs it."""

    slot: int
    offsets: Offsets
    reader: SplitReader | None = None


@dataclass(frozen=True, slots=True)
class ProduceSplits:
    """The function that mapInArrow calls with the rows of a slot's splits. Picklable; runs on executors.

    ``begin`` are the round's offsets. ``splits`` are all of the round.
    """

    assignment: TaskAssignment
    topic: str
    schema: Schema
    begin: Offsets
    splits: tuple[SplitJob, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = ((number, self._read(number, rows)) for number, rows in splits_of(batches))
        first = next(parts, None)
        if first is None:
            return
        spec = self.assignment.spec
        log_to_stderr(f"[{spec.id.connector}|task-{spec.id.task}] ")
        raise_gc_threshold()
        use_plugin_path(spec.worker.raw)
        spec = replace(spec, config=resolution_for_use(spec.worker, spec.config).config)
        services = self.assignment.services.open(self.assignment.spec)
        try:
            with ExitStack() as resources:
                yield from self._produce(spec, services, resources, itertools.chain([first], parts))
        finally:
            services.close()

    def _read(self, split: int, rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Return the rows that Spark sent, or those of the split's reader; then Spark sends the split's number alone."""
        reader = self.splits[split].reader
        if reader is None:
            return rows
        collections.deque(rows, maxlen=0)
        return reader.batches()

    def _produce(
        self, spec: TaskSpec, services: TaskServices, resources: ExitStack, parts: Iterator[SplitRows]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the result of each split. Ends with the first one that fails."""
        producer: _SlotProducer | None = None
        topics: set[str] = set()
        for number, rows in parts:
            records, failure, retriable = 0, None, False
            try:
                if producer is None:
                    slot = self.splits[number].slot
                    source = build_source_task(spec, _with_topics(services, topics), resources, slot=slot)
                    producer = _SlotProducer(self, source, slot)
                records = producer.run(number, rows)
            except Exception as error:  # noqa: BLE001 (the splits of other slots do not fail with this one)
                failure, retriable = trace_of(error), isinstance(error, _RETRIABLE)
            result = {"split": number, "records": records, "topics": sorted(topics), "failure": failure, "retriable": retriable}
            yield pa.RecordBatch.from_pylist([result], schema=_RESULT_ARROW)
            if failure is not None:
                return


SplitRows = tuple[int, Iterator[pa.RecordBatch]]
"""A split's number and its rows."""


def splits_of(batches: Iterable[pa.RecordBatch]) -> Iterator[SplitRows]:
    """Yield each split with its rows, without the last column, which has the split's number. Read all rows of one first.

    The rows of a split that was cut off raise RetriableError. PyArrow takes a connection that Spark's JVM closes between two
    batches, because it was killed or the job canceled, for the end of the rows.
    """
    for number, group in itertools.groupby(_until_end(batches), key=lambda part: part[0]):
        yield int(number), (rows for _, rows in group)


def _until_end(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    at_end = False
    for batch in batches:  # to their end, because Spark does not use a Python worker again that has left rows
        for number, rows in _parts(batch):
            at_end = number == _END
            if not at_end:
                yield number, rows
    if not at_end:
        raise RetriableError("Spark closed the connection before it had sent all rows of a split.")


def _parts(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Cut a batch, in which rows of the same split follow each other, into pairs of a split's number and its rows."""
    last = batch.num_columns - 1
    runs: Any = pc.run_end_encode(batch.column(last))
    rows = batch.remove_column(last)
    start = 0
    for number, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield number, rows.slice(start, end - start)
        start = end


class _SlotProducer:
    """Produces the splits of one slot, unless their offsets are stored already. Raises FencedError if it was replaced."""

    def __init__(self, job: ProduceSplits, parts: SourceTaskParts, slot: int) -> None:
        self._job = job
        self._parts = parts
        parts.delivery.start()
        # From here on, nobody else can commit the slot's splits exactly once, so what is stored stays true but for what this
        # producer commits. It is read once because the end of a topic with transactions is found only after a while.
        splits = {number: split.offsets for number, split in enumerate(job.splits) if split.slot == slot}
        self._produced = produced_splits(parts.context.offset_storage_reader, job.begin, splits)

    def run(self, split: int, rows: Iterable[pa.RecordBatch]) -> int:
        """Return the number of rows. Raises ConnectError, and FencedError if another driver produces the split."""
        if split in self._produced:
            collections.deque(rows, maxlen=0)
            return 0
        parts = self._parts
        try:
            records = 0
            for batch in rows:
                self._send(batch)
                records += batch.num_rows
            for partition, offset in self._job.splits[split].offsets:
                parts.offsets.add(partition, offset)
            while parts.offsets.pending:
                parts.delivery.apply(CommitAction.COMMIT)
        except Exception as error:
            parts.delivery.fail(error)
            raise
        return records

    def _send(self, batch: pa.RecordBatch) -> None:
        """Produce rows: as columns if converters and transforms can, else one by one."""
        parts = self._parts
        if self._sent_as_columns(batch):
            return
        records = self._records(batch)
        made = transform_batch(
            parts.chain, records, parts.tolerance, describe=describe_source_record, original=lambda record: record
        )
        if made.failure is not None:
            raise made.failure
        parts.delivery.send(SubmittedRecords(made.records, records, made.origins))
        parts.tolerance.poll_deliveries()

    def _sent_as_columns(self, batch: pa.RecordBatch) -> bool:
        """Produce rows as columns; return False if they must be produced one by one."""
        parts, forms = self._parts, self._parts.forms
        if parts.encode_columns is None or not forms.next():
            forms.rows(None)
            return False
        try:
            encoded = parts.encode_columns(self._columns(batch))
        except NotColumnar as error:
            forms.failed()
            forms.rows(error.refusal._replace(schema=self._job.schema), self._job.topic)
            return False
        forms.columnar()
        parts.delivery.send(encoded)
        return True

    def _columns(self, batch: pa.RecordBatch) -> SourceColumns:
        """Return rows as columns. Raises NotColumnar for values that those of the schema cannot hold."""
        kind: Any = arrow_type(self._job.schema)
        fields = [kind.field(index) for index in range(kind.num_fields)]
        with refused_values(self._job.schema):
            values = [
                column if column.type == field.type else column.cast(field.type, safe=False)
                for column, field in zip(batch.columns, fields, strict=True)
            ]
            structs = pa.StructArray.from_arrays(values, fields=fields)
        columns = ColumnBatch(
            topic=self._job.topic,
            partition=None,
            key=Column(None, None),
            value=Column(self._job.schema, structs),
            count=batch.num_rows,
        )
        return SourceColumns(batch=columns, source_partition=None, source_offset=None, records=lambda: self._records(batch))

    def _records(self, batch: pa.RecordBatch) -> list[SourceRecord]:
        schema, topic = self._job.schema, self._job.topic
        values = to_values(schema, batch.to_struct_array())
        return [SourceRecord(None, None, topic, value, schema) for value in values]


def produced_splits(reader: OffsetStorageReader, begin: Offsets, splits: Mapping[int, Offsets]) -> set[int]:
    """Return the numbers of those splits of a round whose offsets are stored.

    Raises RetriableError if others remain although the round that began with ``begin`` is not the stored one.
    """
    begun, *stored = stored_offsets(reader, [begin, *splits.values()])
    produced = {number for number, each in zip(splits, stored, strict=True) if each and all(each)}
    remaining = [each for number, each in zip(splits, stored, strict=True) if number not in produced]
    if any(map(any, remaining)) or (remaining and not all(begun)):
        raise RetriableError("The splits are no longer part of the stored plan: offsets were stored after it was made.")
    return produced


def stored_offsets(reader: OffsetStorageReader, groups: Sequence[Offsets]) -> list[list[bool]]:
    """Return for each group of offsets which of them are the stored ones."""
    stored = iter(reader.offsets([partition for group in groups for partition, _ in group]))
    return [[_same(next(stored), offset) for _, offset in group] for group in groups]


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

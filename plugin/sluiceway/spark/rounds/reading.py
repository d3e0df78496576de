"""Reads ranges of offsets and converts their records to Arrow. Runs on executors, inside mapInArrow."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, cast

import pyarrow as pa

from sluiceway.api import ColumnBatch, NotColumnar, RowFormReason, SinkRecord
from sluiceway.api.data_frames import DataFrameSinkTask
from sluiceway.columns.defaults import with_defaults
from sluiceway.columns.refused_values import refused_values
from sluiceway.config.variables import resolution_for_use
from sluiceway.data import Schema, Type
from sluiceway.data.null_values import null_value_schema
from sluiceway.data.schema_advice import schema_advice
from sluiceway.errors import ConnectError, DataError, trace_of
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.kafka import clients
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.kafka.errors import mapped_errors, to_connect_error
from sluiceway.metrics.task_metrics import TaskMetrics
from sluiceway.runtime.columns import BatchForms
from sluiceway.runtime.errors.errant_record_reporter import consumer_record_of
from sluiceway.runtime.errors.error_handling import retry_with_tolerance_operator
from sluiceway.runtime.errors.processing_context import ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.runtime.garbage import raise_gc_threshold
from sluiceway.runtime.sink.consumer_settings import sink_consumer
from sluiceway.runtime.sink.partition_reader import PERMANENT
from sluiceway.runtime.sink.sink_batches import SinkBatches
from sluiceway.runtime.sink.sink_records import SinkBatch
from sluiceway.runtime.task import TaskSpec
from sluiceway.runtime.task_converters import task_converters
from sluiceway.runtime.transforms.transformation_chain import TransformationChain, chain_of
from sluiceway.runtime.worker_task import log_errors
from sluiceway.spark.rounds.arrow_rows import arrow_field, arrow_type, to_array
from sluiceway.spark.rounds.ranges import OffsetRange
from sluiceway.worker.log_context import log_to_stderr

log = logging.getLogger(__name__)

CHUNK = "range int, records long, end long, failure string, schema binary, data binary"
"""Spark's schema of the rows that ``ReadRanges`` returns.

``data`` is an Arrow stream of records of one ``schema``. The last row of a range has its number of records and its ``end``.
"""

_FIELDS: list[pa.Field[Any]] = [
    pa.field("range", pa.int32()),
    pa.field("records", pa.int64()),
    pa.field("end", pa.int64()),
    pa.field("failure", pa.string()),
    pa.field("schema", pa.binary()),
    pa.field("data", pa.binary()),
]
_CHUNK = pa.schema(_FIELDS)

_CHUNK_RECORDS = 20_000
_CONSUME_RECORDS = 10_000
_CONSUME_SECONDS = 1.0
_STALLED_SECONDS = 120.0  # without a record or error from the broker
_FLUSH_SECONDS = 1.0
_END = "_PARTITION_EOF"
_VALUE = "value"  # the column of records whose values are not structs
_NULLS = "behavior.on.null.values"


@dataclass(frozen=True, slots=True)
class ReadRanges:
    """The function that mapInArrow calls with the numbers of ranges. Picklable."""

    spec: TaskSpec
    ranges: Sequence[OffsetRange]
    skip_nulls: bool
    most_bytes: int
    replace_nulls: bool = True

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        log_to_stderr(f"[{self.spec.id.connector}|task-{self.spec.id.task}] ")
        raise_gc_threshold()
        use_plugin_path(self.spec.worker.raw)
        spec = replace(self.spec, config=resolution_for_use(self.spec.worker, self.spec.config).config)
        for batch in batches:
            for number in map(int, batch.column(0).to_numpy()):
                with ExitStack() as resources:
                    reader = RangeReader(
                        spec, number, self.ranges[number], self.skip_nulls, self.most_bytes, resources, self.replace_nulls
                    )
                    yield from reader.read()


@dataclass(frozen=True, slots=True)
class DecodeChunks:
    """The function that mapInArrow calls with the ``data`` of chunks; returns their records with one schema. Picklable."""

    schema: bytes

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.ipc.read_schema(pa.py_buffer(self.schema))
        for batch in batches:
            for data in batch.column(0):
                for chunk in pa.ipc.open_stream(data.as_buffer()):
                    yield _with_schema(chunk, schema)


def _with_schema(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        pa.nulls(batch.num_rows, each.type)
        if (index := batch.schema.get_field_index(each.name)) < 0
        else batch.column(index).cast(each.type)
        for each in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(slots=True)
class RangeReader:
    """Reads one range, or its first ``most_bytes``. ``end`` is the offset after the last message that was handled."""

    spec: TaskSpec
    number: int
    range: OffsetRange
    skip_nulls: bool
    most_bytes: int
    resources: ExitStack
    replace_nulls: bool = True
    end: int = 0
    records: int = 0
    failure: str | None = None
    _waiting: list[SinkRecord] = field(default_factory=list)

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the range's records in chunks, then its end. A failure ends the range before the record that caused it."""
        self.end = self.range.start
        tolerance = retry_with_tolerance_operator(self.spec, time.sleep)
        self.resources.callback(tolerance.close)
        try:
            yield from self._read(tolerance)
            yield from self._chunks(tolerance)
        except Exception as error:  # noqa: BLE001 (the other ranges of the round, and the records before it, do not fail)
            self.failure = trace_of(error)
            yield from self._chunks(tolerance)
        # A dead letter queue record must be in Kafka before the offset after it can be committed.
        while not tolerance.flush(_FLUSH_SECONDS):
            pass
        yield self._last()

    def _read(self, tolerance: RetryWithToleranceOperator) -> Iterator[pa.RecordBatch]:
        spec = self.spec
        converters = task_converters(spec.config, spec.worker)
        self.resources.callback(log_errors, "Closing the converters", converters.close)
        chain: TransformationChain[SinkRecord] = chain_of(spec.config)
        self.resources.callback(chain.close)
        forms = BatchForms(spec.id, TaskMetrics(spec.id, sink=True))  # metrics of rounds are not published
        batches = SinkBatches(converters, chain, tolerance, lambda _topic: None, forms, needs_schemas=True)
        for messages in self._messages():
            for part in batches.parts(messages, one_topic=True):
                batch = batches.batch(part)
                if batch.columns is not None:
                    try:
                        table = _columns_of(batch.columns, replace_nulls=self.replace_nulls)
                    except NotColumnar as error:
                        batch = batches.not_columnar(part, error)
                    else:
                        batches.columns_put()
                        yield self._chunk(table)
                        self.end = batch.ends[self.range.topic_partition]
                        continue
                self._take(batch, tolerance)
                if len(self._waiting) >= _CHUNK_RECORDS:
                    yield from self._chunks(tolerance)
        self.end = self.range.end

    def _take(self, batch: SinkBatch, tolerance: RetryWithToleranceOperator) -> None:
        for record in batch.records:
            problem = self._problem(record)
            if problem is not None:
                self._refuse(record, DataError(problem), tolerance)
            elif record.value is not None:
                self._waiting.append(record)
        self.end = batch.ends.get(self.range.topic_partition, self.end)
        if batch.failure is not None:
            raise batch.failure

    def _refuse(self, record: SinkRecord, error: DataError, tolerance: RetryWithToleranceOperator) -> None:
        self.end = record.original_kafka_offset  # in case that it fails the task
        what = f"the record at offset {self.end} of {self.range.topic}-{self.range.partition} cannot be written"
        context = ProcessingContext(Stage.TASK_PUT, DataFrameSinkTask, consumer_record_of(record))
        tolerance.execute_failed(what, error, context)

    def _problem(self, record: SinkRecord) -> str | None:
        if record.value is None:
            return None if self.skip_nulls else f"its value is null, which no table can hold. {_NULLS}=ignore skips such records."
        if record.value_schema is None:
            return f"its value has no schema, so it has no columns. {schema_advice()}."
        return None

    def _messages(self) -> Iterator[list[ConsumedMessage]]:
        """Yield the range's messages. Offsets may have gaps: compacted records, transaction markers, aborted transactions."""
        settings, _ = sink_consumer(self.spec)
        place = clients.TopicPartitionOffset(self.range.topic, self.range.partition, self.range.start)
        consumer = clients.consumer({**settings, "enable.partition.eof": "true"})
        self.resources.callback(consumer.close)
        what = f"read {self.range}"
        with mapped_errors(what):
            consumer.assign([place])
        position, stalled_at = self.range.start, time.monotonic() + _STALLED_SECONDS
        limit = ByteLimit(self.most_bytes)
        while position < self.range.end:
            with mapped_errors(what):
                found = consumer.consume(min(_CONSUME_RECORDS, self.range.end - position), _CONSUME_SECONDS)
            messages = cast("list[ConsumedMessage]", [each for each in found if each.error() is None])
            at_end = _at_end(found, what)
            if messages:
                taken = limit.taken(messages)
                position = taken[-1].offset() + 1 if taken else position
                yield [each for each in taken if each.offset() < self.range.end]
                if limit.reached:
                    self.range = replace(self.range, end=min(position, self.range.end))
                    return
            elif not at_end and time.monotonic() > stalled_at:
                raise ConnectError(f"Cannot {what}: no record arrived within {_STALLED_SECONDS:g} s")
            if at_end:
                break
            if messages:
                stalled_at = time.monotonic() + _STALLED_SECONDS

    def _chunks(self, tolerance: RetryWithToleranceOperator) -> Iterator[pa.RecordBatch]:
        """Yield the waiting records. Those that Spark's types cannot hold are bad records."""
        waiting, self._waiting = self._waiting, []
        for _, group in groupby(waiting, key=lambda record: id(record.value_schema)):
            records = list(group)
            schema = null_value_schema(cast("Schema", records[0].value_schema), replace=self.replace_nulls)
            try:
                table = _table_of(schema, [record.value for record in records])
            except DataError:
                records = self._writable(schema, records, tolerance)
                if not records:
                    continue
                table = _table_of(schema, [record.value for record in records])
            yield self._chunk(table)

    def _writable(self, schema: Schema, records: Sequence[SinkRecord], tolerance: RetryWithToleranceOperator) -> list[SinkRecord]:
        end, writable = self.end, []
        for record in records:
            try:
                _table_of(schema, [record.value])
                writable.append(record)
            except DataError as error:
                self._waiting = writable  # written even if this record fails the task
                self._refuse(record, error, tolerance)
        self.end, self._waiting = end, []
        return writable

    def _chunk(self, data: pa.RecordBatch) -> pa.RecordBatch:
        self.records += data.num_rows
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, data.schema) as writer:
            writer.write_batch(data)
        schema = data.schema.serialize().to_pybytes()
        chunk = {"range": self.number, "schema": schema, "data": stream.getvalue().to_pybytes()}
        return pa.RecordBatch.from_pylist([chunk], schema=_CHUNK)

    def _last(self) -> pa.RecordBatch:
        last = {"range": self.number, "records": self.records, "end": self.end, "failure": self.failure}
        return pa.RecordBatch.from_pylist([last], schema=_CHUNK)


class ByteLimit:
    """Takes messages until their keys and values have a number of bytes; always the first one."""

    def __init__(self, most: int) -> None:
        self._left = most
        self._is_first = True
        self.reached = False

    def taken(self, messages: list[ConsumedMessage]) -> list[ConsumedMessage]:
        """Return the next messages, without those beyond the limit."""
        for number, message in enumerate(messages):
            self._left -= len(message.key() or b"") + len(message.value() or b"")
            if self._left < 0 and not self._is_first:
                self.reached = True
                return messages[:number]
            self._is_first = False
        return messages


def _table_of(schema: Schema, values: Sequence[Any]) -> pa.RecordBatch:
    """Return records of one schema as columns: the fields of a struct, or one column for other values."""
    if schema.type is Type.STRUCT:
        return pa.RecordBatch.from_struct_array(to_array(schema, values))
    return pa.RecordBatch.from_arrays([to_array(schema, values)], schema=pa.schema([arrow_field(_VALUE, schema)]))


def _columns_of(batch: ColumnBatch, *, replace_nulls: bool) -> pa.RecordBatch:
    """Return a batch of columns as ``_table_of`` returns its records. Raises NotColumnar if they must be handled one by one."""
    schema, values, _ = batch.value
    if schema is None or schema.type is not Type.STRUCT or values is None:
        raise NotColumnar(f"values of {schema} are not the columns of a table", RowFormReason.TASK)
    if values.null_count:
        raise NotColumnar("records without a value")
    try:
        wanted = arrow_type(schema)
    except DataError as error:
        raise NotColumnar(str(error), RowFormReason.SCHEMA) from error
    with refused_values(schema):  # such as a null struct with required fields
        structs: Any = with_defaults(null_value_schema(schema, replace=replace_nulls), values).cast(wanted)
        return pa.RecordBatch.from_struct_array(structs)


def _at_end(messages: Sequence[clients.Message], what: str) -> bool:
    """Return True if the partition's end was reached. Raises KafkaClientError for an error that waiting does not solve."""
    at_end = False
    for message in messages:
        error = message.error()
        if error is None:
            continue
        if error.name() == _END:
            at_end = True
        elif error.fatal() or error.name() in PERMANENT:
            raise to_connect_error(error, what)
        else:
            log.warning("Reading from Kafka: %s (%s)", error.str(), error.name())
    return at_end

"""Passes records and columns on to the files they belong to, and commits where a file ends. Runs on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from sluiceway.api import SinkRecord
from sluiceway.api.columns import Column, ColumnBatch, NotColumnar, RowFormReason
from sluiceway.connectors.files.formats import Format
from sluiceway.connectors.files.formats.base import Piece
from sluiceway.connectors.files.naming import topic_element
from sluiceway.connectors.files.options import FileOptions
from sluiceway.connectors.files.partition_writer import FileKey, PartitionWriter, Span
from sluiceway.data import Schema
from sluiceway.data.projection import project
from sluiceway.errors import ConnectError, DataError, RetriableError, SchemaProjectorError

if TYPE_CHECKING:
    import numpy as np

    from sluiceway.api.columns import AnyArray

    Numbers = np.ndarray[Any, Any]


Report = Callable[[PartitionWriter, SinkRecord, Exception], None]


@dataclass(slots=True)
class _Group:
    """Records of one file with the same schema, with the values to write."""

    key: FileKey
    schema: Schema | None
    records: list[SinkRecord] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)


class _Groups:
    """Records in the order in which they are written. A record whose schema is that of its file's last one joins its group."""

    def __init__(self, *, needs_schema: bool) -> None:
        self._needs_schema = needs_schema
        self._groups: list[_Group] = []
        self._newest: dict[FileKey, _Group] = {}
        self._last: _Group | None = None

    def add(self, folder: str, schema: Schema | None, record: SinkRecord, value: Any) -> None:
        group = self._last
        if group is None or group.schema is not schema or group.key.folder != folder or group.key.topic != record.topic:
            group = self._last = self._group(FileKey(record.topic, folder, schema if self._needs_schema else None), schema)
        group.records.append(record)
        group.values.append(value)

    def add_to_last(self, record: SinkRecord) -> bool:
        """Add a record with a value to the group of the last one, if both have the same topic partition and schema."""
        group = self._last
        if group is None or record.value_schema is not group.schema or record.value is None:
            return False
        last = group.records[-1]
        if record.kafka_partition != last.kafka_partition or record.topic != last.topic:
            return False
        group.records.append(record)
        group.values.append(record.value)
        return True

    def take(self) -> list[_Group]:
        """Return the groups, and start again."""
        groups, self._groups, self._last = self._groups, [], None
        self._newest.clear()
        return groups

    def _group(self, key: FileKey, schema: Schema | None) -> _Group:
        group = self._newest.get(key)
        if group is None or group.schema is not schema:
            self._newest[key] = group = _Group(key, schema)
            self._groups.append(group)
        return group


class RecordWriter:
    """Writes the records of one task. ``report`` reports a bad record, or raises its error."""

    def __init__(
        self, options: FileOptions, file_format: Format, report: Report, check: Callable[[Schema | None], None] | None = None
    ) -> None:
        """Take ``check``, which raises DataError for a schema that no file may have."""
        self._options = options
        self._format = file_format
        self._report = report
        self._partitioner = options.partitioner
        self._schemas = CurrentSchemas(options.compatibility if file_format.needs_schema else "NONE", check)
        interval = options.limits.interval if options.limits.by_record_time else None
        self._record_interval = interval
        self._by_partition = interval is None and self._partitioner.by_partition

    def write(self, writer: PartitionWriter, records: Sequence[SinkRecord], now: int) -> None:
        """Write records of one topic partition. Those that were written before are skipped. Raises StorageError."""
        writer.begins_at(records[0].original_kafka_offset)
        groups = _Groups(needs_schema=self._format.needs_schema)

        def flush(end: int) -> None:
            for group in groups.take():
                self._write_group(writer, group)
            writer.advance(end)

        last, written_before, room = -1, writer.position or 0, writer.rotation.room
        time: int | None = None
        for record in records:
            offset = record.original_kafka_offset
            if offset < written_before:
                continue
            last = offset
            if not (self._by_partition and groups.add_to_last(record)):
                placed = self._placed(writer, record, now)
                if placed is None:
                    continue
                folder, schema, value, time = placed
                if time is not None and writer.rotation.boundary is not None and time >= writer.rotation.boundary:
                    flush(offset)
                    writer.commit()
                    room = writer.rotation.room
                groups.add(folder, schema, record, value)
            writer.rotation.wrote(1, now, time)
            room -= 1
            if room <= 0:
                flush(offset + 1)
                writer.commit()
                room = writer.rotation.room
        if last >= 0:
            flush(last + 1)

    def _placed(self, writer: PartitionWriter, record: SinkRecord, now: int) -> tuple[str, Schema | None, Any, int | None] | None:
        """Return a record's folder, the schema and value to write, and the time by which it rotates files; None to skip it."""
        try:
            if record.value is None:
                if self._options.skip_nulls:
                    return None
                raise DataError("Files cannot hold a record without a value. Set behavior.on.null.values=ignore to skip it.")
            schema = self._schemas.target(record.topic, record.value_schema)
            value = record.value
            if schema is not record.value_schema and schema is not None and schema != record.value_schema:
                value = self._projected(record, schema)
            topic_element(record.topic)  # a commit cannot report a record any more
            folder = self._partitioner.encode(record, now)
            time = None if self._record_interval is None else self._partitioner.time_of(record, now)
            return folder, schema, value, time
        except DataError as error:
            self._report(writer, record, error)
            return None

    def _projected(self, record: SinkRecord, schema: Schema) -> Any:
        if record.value_schema is None:
            raise SchemaProjectorError("Switch between schema-based and schema-less data is not supported")
        return project(self._format.readable(record.value_schema), record.value, schema)

    def _write_group(self, writer: PartitionWriter, group: _Group) -> None:
        try:
            piece = self._format.rows(group.key.topic, group.schema, group.values)
        except RetriableError:
            raise
        except (ConnectError, NotColumnar) as error:
            if len(group.records) == 1:
                self._report(writer, group.records[0], _as_data_error(error))
                return
            for record, value in zip(group.records, group.values, strict=True):
                self._write_group(writer, _Group(group.key, group.schema, [record], [value]))
            return
        first, last = group.records[0].original_kafka_offset, group.records[-1].original_kafka_offset
        writer.write(group.key, piece, Span(len(group.records), first, last))

    def write_columns(self, writer: PartitionWriter, batch: ColumnBatch, now: int) -> None:
        """Write a batch. Raises NotColumnar, with nothing of the rest written, if its row form has to be written."""
        columns = self._columns(batch, now)
        if columns is None:
            writer.begins_at(_offset(batch, 0))
            writer.advance(max(writer.position or 0, _offset(batch, len(batch) - 1) + 1))
            return
        writer.begins_at(_offset(batch, 0))
        start = int(columns.offsets.searchsorted(writer.position or 0))
        while start < len(columns):
            end = self._end(writer, columns, start)
            if end == start:
                writer.commit()
                continue
            for key, piece, span in columns.pieces(self._format, start, end):
                writer.write(key, piece, span)
            writer.rotation.wrote(end - start, now, None if columns.times is None else int(columns.times[start]))
            writer.advance(int(columns.offsets[end - 1]) + 1)
            start = end
            if start < len(columns):
                writer.commit()
        writer.advance(max(writer.position or 0, _offset(batch, len(batch) - 1) + 1))

    def _end(self, writer: PartitionWriter, columns: _Columns, start: int) -> int:
        """Return the index after the last record that belongs to the open files; ``start`` if they end before it."""
        end = min(len(columns), start + writer.rotation.room)
        if columns.times is None or self._record_interval is None:
            return end
        boundary = writer.rotation.boundary
        if boundary is None:
            boundary = int(columns.times[start]) + self._record_interval
        late = (columns.times[start:end] >= boundary).nonzero()[0]
        return start + int(late[0]) if late.size else end

    def _columns(self, batch: ColumnBatch, now: int) -> _Columns | None:
        """Return the batch's records with values, None if there are none. Raises NotColumnar."""
        assert batch.offsets is not None  # noqa: S101 (a sink's batch has offsets)
        batch = self._with_values(batch)
        schema, values, objects = batch.value
        if not len(batch):
            return None
        if self._format.needs_schema and (schema is None or self._target(batch.topic, schema) != schema):
            raise NotColumnar("values of another schema than the open file's", RowFormReason.SCHEMA)
        try:
            topic_element(batch.topic)
        except DataError as error:
            raise NotColumnar(str(error), RowFormReason.ERROR) from error
        encoded = self._partitioner.encode_columns(batch, now)
        times = None if self._record_interval is None else self._partitioner.times_of(batch, now)
        assert batch.offsets is not None  # noqa: S101
        file_schema = schema if self._format.needs_schema else None
        keys = [FileKey(batch.topic, folder, file_schema) for folder in encoded.names]
        found = values if objects is None else objects
        assert found is not None  # noqa: S101 (there are records with values)
        return _Columns(schema, found, batch.offsets.to_numpy(), keys, encoded.indices, times)

    def _target(self, topic: str, schema: Schema) -> Schema | None:
        try:
            return self._schemas.target(topic, schema)
        except DataError as error:
            raise NotColumnar(str(error), RowFormReason.ERROR) from error

    def _with_values(self, batch: ColumnBatch) -> ColumnBatch:
        """Return a batch without tombstones, if they are skipped."""
        _, values, objects = batch.value
        if (values is not None and not values.null_count) or (objects is not None and None not in objects):
            return batch
        if not self._options.skip_nulls:
            raise NotColumnar("records without a value")
        batch = replace(batch, key=Column(batch.key.schema, None))  # no file holds keys
        from sluiceway.columns.batches import filtered, not_null  # loads Arrow

        if values is not None:
            return filtered(batch, values.is_valid())
        return replace(batch, count=0) if objects is None else filtered(batch, not_null(objects))


@dataclass(frozen=True, slots=True)
class _Columns:
    """Values without nulls, with the file of each: ``keys`` by ``indices``, or the first key for all."""

    schema: Schema | None
    values: AnyArray | Sequence[Any]
    offsets: Numbers
    keys: Sequence[FileKey]
    indices: Numbers | None
    times: Numbers | None

    def __len__(self) -> int:
        return len(self.offsets)

    def pieces(self, file_format: Format, start: int, end: int) -> list[tuple[FileKey, Piece, Span]]:
        """Convert a range of records to a piece for each file. Raises NotColumnar."""
        return [
            (key, self._piece(file_format, key.topic, values), Span(len(values), first, last))
            for key, values, first, last in self._parts(start, end)
        ]

    def _piece(self, file_format: Format, topic: str, values: Any) -> Piece:
        try:
            if self.schema is not None:
                return file_format.columns(topic, self.schema, values)
            return file_format.rows(topic, None, values)
        except ConnectError as error:  # the row form reports the record
            raise NotColumnar(str(error), RowFormReason.ERROR) from error

    def _parts(self, start: int, end: int) -> Iterator[tuple[FileKey, AnyArray | Sequence[Any], int, int]]:
        if self.indices is None:
            yield self.keys[0], self.values[start:end], int(self.offsets[start]), int(self.offsets[end - 1])
            return
        indices = self.indices[start:end]
        for number, key in enumerate(self.keys):
            rows = (indices == number).nonzero()[0] + start
            if rows.size:
                yield key, self._taken(rows), int(self.offsets[rows[0]]), int(self.offsets[rows[-1]])

    def _taken(self, rows: Numbers) -> AnyArray | Sequence[Any]:
        return [self.values[row] for row in rows] if isinstance(self.values, Sequence) else self.values.take(rows)


def _offset(batch: ColumnBatch, index: int) -> int:
    assert batch.offsets is not None  # noqa: S101 (a sink's batch has offsets)
    return int(batch.offsets[index].as_py())


def _as_data_error(error: Exception) -> Exception:
    return error if isinstance(error, DataError) else DataError(str(error))


class CurrentSchemas:
    """The schemas of the open files, by topic. Versions are those of the schemas' names, which a Schema Registry counts."""

    def __init__(self, compatibility: str, check: Callable[[Schema | None], None] | None = None) -> None:
        """Take ``check``, which raises DataError for a schema that no file may have."""
        self._compatibility = compatibility
        self._check = check
        self._current: dict[str, Schema] = {}

    def target(self, topic: str, schema: Schema | None) -> Schema | None:
        """Return the schema of the file for a value: its own, or the one that it has to be projected to.

        Raises SchemaProjectorError if the schemas have no versions to compare, or if values with and without schemas alternate.
        """
        if self._check is not None:
            self._check(schema)
        if self._compatibility == "NONE" or schema is None:
            return schema
        current = self._current.get(topic)
        if current is schema:
            return schema
        if schema.version is None:
            raise SchemaProjectorError(f"Schema version required for {self._compatibility} compatibility")
        if current is None or self._replaces(schema.version, current.version or 0):
            self._current[topic] = current = schema
        return current

    def _replaces(self, version: int, current: int) -> bool:
        return version < current if self._compatibility == "FORWARD" else version > current

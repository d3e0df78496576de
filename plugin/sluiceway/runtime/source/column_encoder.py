"""Transforms and encodes the columns that a source task returned. Loads Arrow only if the converters' columnar forms do."""

from __future__ import annotations

from collections.abc import Sequence

from sluiceway.api import (
    Column,
    ColumnBatch,
    ColumnEncoder,
    Converter,
    NotColumnar,
    RowFormReason,
    SourceColumns,
    SourceRecord,
    row_form,
)
from sluiceway.data import Schema
from sluiceway.runtime.source.submitted_records import SubmittedColumns
from sluiceway.runtime.task_converters import Converters
from sluiceway.runtime.transforms.transformation_chain import TransformationChain

_Parts = Sequence[bytes | None]


class SourceColumnEncoder:
    """Makes columns ready to be produced. Belongs to one task. Not thread-safe."""

    def __init__(self, converters: Converters, chain: TransformationChain[SourceRecord]) -> None:
        self._key, self._value = _PartEncoder(converters.key), _PartEncoder(converters.value)
        self._chain = chain

    def __call__(self, source: SourceColumns) -> SubmittedColumns:
        """Return the transformed and encoded records. Raises NotColumnar if they need the row form."""
        batches = self._chain.columns(source.batch)
        if len(batches) > 1:  # a record's place among several batches would have to be found again after a failure
            raise NotColumnar("a batch that a predicate splits", RowFormReason.PARTS)
        if not batches:
            return SubmittedColumns(source, source.batch.topic, [], None, None, None, lambda _position: source.records())
        batch = batches[0]
        keys = self._key(batch.topic, batch.key, batch.count)
        values = self._value(batch.topic, batch.value, batch.count)

        def sources_before(position: int) -> Sequence[SourceRecord]:
            return self._sources_before(source, batch, position)

        return SubmittedColumns(
            source,
            batch.topic,
            [None] * batch.count if values is None else values,
            keys,
            None if batch.timestamps is None else batch.timestamps.to_pylist(),
            batch.partition,
            sources_before,
        )

    def _sources_before(self, source: SourceColumns, batch: ColumnBatch, position: int) -> Sequence[SourceRecord]:
        records = source.records()
        if batch.count == source.batch.count:
            return records[:position]
        sent = 0
        for number, record in enumerate(records):  # transforms have dropped some
            sent += len(self._chain.apply(record))
            if sent > position:
                return records[:number]
        return records


class _PartEncoder:
    """Encodes the keys or the values."""

    def __init__(self, converter: Converter) -> None:
        self._converter = converter
        self._encoders: dict[tuple[str, Schema | None], ColumnEncoder | None] = {}

    def __call__(self, topic: str, column: Column, count: int) -> _Parts | None:
        """Return the encoded keys or values, None if all of them are null."""
        schema, values, objects = column
        if objects is not None:
            raise NotColumnar("values without a schema", RowFormReason.CONVERTER)
        if values is None:
            return self._nulls(topic, schema, count)
        if (topic, schema) not in self._encoders:
            self._encoders[topic, schema] = self._converter.column_encoder(topic, schema)
        encode = self._encoders[topic, schema]
        if encode is None:
            text = f"{type(self._converter).__name__} has no columnar form to write {schema or 'values without a schema'}"
            raise NotColumnar(text, RowFormReason.CONVERTER)
        encoded: _Parts = encode(values).to_pylist()
        return encoded

    def _nulls(self, topic: str, schema: Schema | None, count: int) -> _Parts | None:
        with row_form():
            encoded = self._converter.encoder(topic, schema)(None)
        return None if encoded is None else [encoded] * count

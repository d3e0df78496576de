"""Compares columnar forms of converters with their row forms."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, settings

from sluiceway.api import Converter, SchemaAndValue
from sluiceway.api.columns import Column, ColumnDecoder, NotColumnar
from sluiceway.columns.arrays import to_array
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.columns.rows import column_values
from sluiceway.data import Schema
from sluiceway.errors import ConnectError

COMPARED: Counter[tuple[str, str]] = Counter()
"""Messages that both forms converted alike, by converter and direction."""

EXAMPLES = int(os.environ.get("EXAMPLES", "60"))
many = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


def decoded_alike(converter: Converter, messages: Sequence[bytes | None]) -> int:
    """Assert that both forms decode messages to the same schemas and values; return how many the columnar form decoded."""
    decode, decode_columns = converter.decoder("t"), converter.column_decoder("t")
    assert decode_columns is not None
    # A part of a longer array, as it may come from a batch.
    array = pa.array([b"before", *messages, b"after"], pa.binary()).slice(1, len(messages))
    runs = decode_columns(array)
    assert [run.start for run in runs] == [0, *(run.end for run in runs)][: len(runs)]
    assert (runs[-1].end if runs else 0) == len(messages)
    count = 0
    for start, end, column, _ in runs:
        if column is not None:
            _check_column(column, [decode(message) for message in messages[start:end]])
            count += end - start
    COMPARED[_name(converter), "decoded"] += count
    return count


def _check_column(column: Column, rows: Sequence[tuple[Schema | None, Any]]) -> None:
    assert all(schema == column.schema for schema, _ in rows)
    values = [value for _, value in rows]
    assert repr(column_values(column, len(rows))) == repr(values)
    if column.schema is not None:
        assert column.values is not None
        assert column.values.type == arrow_type(column.schema)
        column.values.validate(full=True)
        assert column.values.equals(to_array(column.schema, values)) or "nan" in repr(values)


def encoded_alike(converter: Converter, schema: Schema, values: Sequence[Any]) -> int:
    """Assert that both forms encode values to the same messages; return how many the columnar form encoded."""
    encode_columns = converter.column_encoder("t", schema)
    if encode_columns is None:
        return 0
    encode = converter.encoder("t", schema)
    try:
        array = to_array(schema, values)
        messages = encode_columns(array)
        part = encode_columns(array.slice(1, max(len(values) - 2, 0)))
    except NotColumnar:
        return 0
    try:
        rows = [encode(value) for value in values]
    except ConnectError as error:
        raise AssertionError(f"the columnar form encodes what the row form refuses: {error}") from error
    assert messages.type == pa.binary()
    assert messages.to_pylist() == rows
    assert part.to_pylist() == rows[1 : max(len(values) - 1, 1)]
    COMPARED[_name(converter), "encoded"] += len(values)
    return len(values)


def _name(converter: Converter) -> str:
    return type(converter.converter if isinstance(converter, Tolerant) else converter).__name__


class Tolerant(Converter):
    """Decodes what the converter refuses to the error, so that batches with such messages can be compared."""

    def __init__(self, converter: Converter) -> None:
        self.converter = converter

    def from_connect_data(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        return self.converter.from_connect_data(topic, schema, value)

    def to_connect_data(self, topic: str, data: bytes | None) -> SchemaAndValue:
        try:
            return self.converter.to_connect_data(topic, data)
        except ConnectError as error:
            return SchemaAndValue(None, error)

    def column_decoder(self, topic: str) -> ColumnDecoder | None:
        return self.converter.column_decoder(topic)

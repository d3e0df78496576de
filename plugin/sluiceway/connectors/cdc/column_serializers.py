"""Writes many records of a table as JSON at once, from columns. The columnar form of ``serializers``. No I/O but the clock.

The functions return the same bytes as those of ``serializers``, or raise NotColumnar.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from sluiceway.api import JsonLayout, NotColumnar, RowFormReason, row_form
from sluiceway.columns.refused_values import VALUE_ERRORS, in_field, refused_values
from sluiceway.columns.text_arrays import joined, with_nulls
from sluiceway.connectors.cdc.column_forms import column_form
from sluiceway.connectors.cdc.columns import UNAVAILABLE
from sluiceway.connectors.cdc.json_forms import UNUSUAL, JsonCode, is_unusual, quote
from sluiceway.connectors.cdc.tables import RowReader, TableSchema
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.columns.text_arrays import Pieces
    from sluiceway.connectors.cdc.column_forms import ColumnForm
    from sluiceway.connectors.cdc.column_rows import RawColumn

    Texts = str | AnyArray
    """A JSON text that all records share, or that of each."""

pc: Any = pyarrow.compute  # its stubs do not know all arguments


class _Field:
    """Writes one field of a row."""

    def __init__(self, name: str, convert: Callable[[Any], Any], form: Any, schema: Schema, layout: JsonLayout) -> None:
        self.name = name
        self._encode = layout.encode
        exact = layout.text(schema)
        self._exact: Callable[[Any], str] = lambda raw: exact(convert(raw))
        self._form: ColumnForm | None = column_form(form, base64_decimals=layout.base64_decimals)
        code = JsonCode(layout)
        expression = None if form is None else form(code, "value")
        self._write: Callable[[Any], Any] = self._exact
        if expression is not None:
            self._write = code.callable(code.function("value", [f"return {expression}"]))

    def texts(self, column: RawColumn) -> AnyArray:
        values, unavailable = column
        if isinstance(values, list):
            return self._one_by_one(values)
        if not values.null_count:
            return self._present(values)
        if values.null_count == len(values):
            texts: AnyArray = pa.nulls(len(values), pa.utf8())
        else:
            texts = with_nulls(values, self._present(values.drop_null()), None)
        if unavailable is not None:
            texts = pc.if_else(unavailable, self._one_by_one([UNAVAILABLE])[0], texts)
        return texts.fill_null(self._one_by_one([None])[0]) if texts.null_count else texts

    def _present(self, values: AnyArray) -> AnyArray:
        if self._form is not None:
            try:
                return self._form(values)
            except (NotColumnar, *VALUE_ERRORS):
                pass  # some values are unusual
        return self._one_by_one(values.to_pylist())

    def _one_by_one(self, values: Sequence[Any]) -> AnyArray:
        with row_form():
            return pa.array([self._text(raw) for raw in values], pa.utf8())

    def _text(self, raw: Any) -> str:
        text: str | None = None
        if raw is not None and raw is not UNAVAILABLE:
            try:
                text = str(self._write(raw))
            except UNUSUAL as error:
                if not is_unusual(error, (raw,)):
                    raise
        return self._encode(self._exact(raw) if text is None else text).decode()


class RowTexts:
    """Writes rows as JSON objects."""

    def __init__(self, reader: RowReader, layout: JsonLayout) -> None:
        forms = reader.forms or (None,) * len(reader.fields)
        self._fields = [
            (index, _Field(field.name, convert, form, field.schema, layout))
            for (index, convert), form, field in zip(reader.fields, forms, reader.schema.fields, strict=True)
        ]

    def __call__(self, columns: Sequence[RawColumn], count: int) -> Texts:
        if not self._fields:
            return "{}"
        pieces: Pieces = []
        for index, field in self._fields:
            pieces += [f"{',' if pieces else '{'}{quote(field.name)}:", in_field(field.name, field.texts, columns[index])]
        with refused_values("rows as JSON"):  # more than 2 GB
            return joined([*pieces, "}"], count)


class ColumnSerializer:
    """Writes the records of one table, from rows of snapshots or of the log."""

    def __init__(self, table: TableSchema, key: JsonLayout | None, value: JsonLayout, *, snapshot: bool) -> None:
        source = table.envelope.field("source")
        assert source is not None  # noqa: S101 (a serializer is made for envelopes only)
        reader = table.snapshot_key if snapshot else table.key
        self.keyed = reader is not None
        self._key = None if key is None or reader is None else RowTexts(reader, key)
        self.row = RowTexts(table.snapshot_value if snapshot else table.value, value)
        self._key_layout, self._layout = key, value
        self.source_names = [field.name for field in source.schema.fields]
        self._source = [(field.name, _source_text(field.schema, value)) for field in source.schema.fields]

    def keys(self, columns: Sequence[RawColumn], count: int) -> list[bytes | None]:
        """Return the encoded keys. Raises NotColumnar if keys are not JSON."""
        if not self.keyed:
            return [None] * count
        if self._key is None or self._key_layout is None:
            raise NotColumnar("keys that are not JSON", RowFormReason.CONVERTER)
        return _encoded(self._key_layout, [self._key(columns, count)], count)

    def source_text(self, index: int, value: Any) -> str:
        """Return the JSON text of a field of the source block."""
        return self._source[index][1](value)

    def values(self, op: Texts, before: Texts, after: Texts, source: Sequence[Any], count: int) -> list[bytes | None]:
        """Return encoded change events outside of transaction metadata. ``source`` has the values of source blocks.

        A value is shared by all records, or is an array with the text of each; ``op`` has quotes.
        """
        now = str(time.time_ns())
        pieces: Pieces = ['{"before":', before, ',"after":', after, ',"source":']
        for number, ((name, write), value) in enumerate(zip(self._source, source, strict=True)):
            pieces += [f"{',' if number else '{'}{quote(name)}:", value if isinstance(value, pa.Array) else write(value)]
        times = f',"ts_ms":{now[:-6]},"ts_us":{now[:-3]},"ts_ns":{now}}}'
        return _encoded(self._layout, [*pieces, '},"transaction":null,"op":', op, times], count)


def _source_text(schema: Schema, layout: JsonLayout) -> Callable[[Any], str]:
    exact = layout.text(schema)
    return lambda value: layout.encode(exact(value)).decode()


def _encoded(layout: JsonLayout, pieces: Pieces, count: int) -> list[bytes | None]:
    with refused_values("changes as JSON"):  # more than 2 GB
        texts = joined([layout.prefix.decode(), *pieces, layout.suffix.decode()], count)
    encoded: list[bytes | None] = texts.cast(pa.binary()).to_pylist()
    return encoded


def change_records(
    table: TableSchema,
    serializer: ColumnSerializer,
    operations: Sequence[str],
    rows: Sequence[RawColumn],
    old: Sequence[RawColumn],
    source: Sequence[Any],
    *,
    tombstones: bool,
    with_old: Any = None,
) -> tuple[list[bytes | None], list[bytes | None]]:
    """Return the keys and values of the records of changes (c, u, d).

    ``rows`` has the rows after the changes, or before them for deletes; ``old`` the rows before those at ``with_old``, by default
    all updates. Raises NotColumnar if an update has changed a key, or left out a value that its old row has.
    """
    count = len(operations)
    kinds = np.array(operations)
    deleted = kinds == "d"
    row = serializer.row(rows, count)
    before: Texts = "null"
    after: Texts = row
    if old:
        chosen = np.flatnonzero(kinds == "u") if with_old is None else with_old
        _check_keys(table, rows, old, pa.array(chosen))
        shown = serializer.row(old, len(chosen))
        texts: Any = pa.array([shown] * len(chosen)) if isinstance(shown, str) else shown
        places, absent = np.zeros(count, np.int64), np.ones(count, np.bool_)
        places[chosen], absent[chosen] = np.arange(len(chosen)), False
        before = texts.take(pa.array(places, mask=absent)).fill_null("null")
    if deleted.any():
        mask = pa.array(deleted)
        before, after = pc.if_else(mask, row, before), pc.if_else(mask, "null", row)
    op: Any = pa.array([f'"{each}"' for each in operations])
    values, keys = serializer.values(op, before, after, source, count), serializer.keys(rows, count)
    if tombstones:
        for index in reversed(np.flatnonzero(deleted).tolist()):
            values.insert(index + 1, None)
            keys.insert(index + 1, keys[index])
    return keys, values


def _check_keys(table: TableSchema, rows: Sequence[RawColumn], old: Sequence[RawColumn], chosen: Any) -> None:
    keys = set() if table.key is None else {index for index, _ in table.key.fields}
    for index, new in enumerate(rows):
        if new.unavailable is not None and pc.any(new.unavailable.take(chosen)).as_py():
            raise NotColumnar("a value that the log has for the old row only")
        if index in keys:
            before = old[index].values
            if isinstance(new.values, list) or isinstance(before, list):
                raise NotColumnar("a key that Arrow cannot hold")
            same = pc.equal(new.values.take(chosen), before)
            if same.null_count or not pc.all(same).as_py():
                raise NotColumnar("a key that an update has changed")

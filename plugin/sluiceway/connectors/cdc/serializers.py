"""Generates the functions that write a table's records as JSON, straight from rows, without structs. No I/O but the clock.

The structs of ``tables`` with the converters are the reference: the functions return the same bytes, or raise one of
``json_forms.UNUSUAL``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sluiceway.api import JsonLayout, TaskConverters
from sluiceway.connectors.cdc.columns import UNAVAILABLE
from sluiceway.connectors.cdc.json_forms import JsonCode, Memo, quote
from sluiceway.connectors.cdc.tables import Row, RowReader, TableSchema
from sluiceway.data import Schema, Struct, Type

_REPEATED = frozenset(("version", "connector", "name", "db", "schema", "table", "file"))  # fields of source blocks

ToText = Callable[[Any], str]


@dataclass(slots=True)
class TableSerializer:
    """Writes the records of one table. Used by one thread.

    ``key`` and ``snapshot_key`` return encoded keys; they are None if keys are made of structs. ``row`` and ``snapshot_row``
    return JSON text.
    """

    row: ToText
    snapshot_row: ToText
    key: Callable[[Row], bytes] | None
    snapshot_key: Callable[[Row], bytes] | None
    source: Callable[[Struct], str]
    transaction: ToText
    layout: JsonLayout
    _newest: tuple[Struct | None, str] = (None, "")

    def value(self, op: str, before: str, after: str, source: Struct, transaction: Struct | None) -> bytes:
        """Return an encoded change event. ``before`` and ``after`` are the texts of rows, or ``null``."""
        now = str(time.time_ns())
        known, block = self._newest
        if source is not known:  # rows of a snapshot share their source block
            block = self.source(source)
            self._newest = source, block
        prefix, suffix, encode, _, _ = self.layout
        text = (
            f'{{"before":{before},"after":{after},"source":{block},'
            f'"transaction":{"null" if transaction is None else self.transaction(transaction)},"op":"{op}",'
            f'"ts_ms":{now[:-6]},"ts_us":{now[:-3]},"ts_ns":{now}}}'
        )
        return b"%b%b%b" % (prefix, encode(text), suffix) if prefix else encode(text)


class Serializers:
    """Creates the serializers of one task's tables."""

    def __init__(self, converters: TaskConverters) -> None:
        self._converters = converters
        self._table: TableSchema | None = None
        self._serializer: TableSerializer | None = None
        self._known: dict[int, tuple[TableSchema, TableSerializer | None]] = {}

    def of(self, table: TableSchema) -> TableSerializer | None:
        """Return the serializer of a table, or None if the converter of values does not write JSON."""
        if table is not self._table:
            found = self._known.get(id(table))
            if found is None:
                if len(self._known) > 10_000:
                    self._known.clear()
                found = self._known[id(table)] = table, self._create(table)
            self._table, self._serializer = found
        return self._serializer

    def _create(self, table: TableSchema) -> TableSerializer | None:
        layout = self._converters.value.json_layout(table.envelope)
        source, block = table.envelope.field("source"), table.envelope.field("transaction")
        if layout is None or source is None or block is None:
            return None
        return TableSerializer(
            row=row_function(table.value, layout),
            snapshot_row=row_function(table.snapshot_value, layout),
            key=self._key(table.key),
            snapshot_key=self._key(table.snapshot_key),
            source=source_function(source.schema, layout),
            transaction=layout.text(block.schema),
            layout=layout,
        )

    def _key(self, reader: RowReader | None) -> Callable[[Row], bytes] | None:
        layout = None if reader is None else self._converters.key.json_layout(reader.schema)
        if reader is None or layout is None:
            return None
        write = row_function(reader, layout)
        prefix, suffix, encode, _, _ = layout
        if not prefix:
            return lambda row: encode(write(row))
        return lambda row: b"%b%b%b" % (prefix, encode(write(row)), suffix)


def row_function(reader: RowReader, layout: JsonLayout) -> ToText:
    """Return the function from a row to the JSON text of its struct."""
    code = JsonCode(layout, UNAVAILABLE=UNAVAILABLE)
    lines: list[str] = []
    parts: list[tuple[str, str]] = []
    forms = reader.forms or (None,) * len(reader.fields)
    for number, ((index, convert), form, field) in enumerate(zip(reader.fields, forms, reader.schema.fields, strict=True)):
        raw, shown = f"v{index}", f"t{number}"
        exact = layout.text(field.schema)
        expression = None if form is None else form(code, raw)
        if expression is None:
            lines.append(f"{shown} = {code.bind(_converted(convert, exact))}({raw})")
        else:
            null = _null(code, convert, exact)
            if field.schema.type in (Type.STRING, Type.BYTES):  # large ones may be missing from the log
                expression = f"{code.bind(_text_of(UNAVAILABLE, convert, exact))} if {raw} is UNAVAILABLE else {expression}"
            lines.append(f"{shown} = {null} if {raw} is None else {expression}")
        parts.append((field.name, shown))
    width = reader.width
    used = {index for index, _ in reader.fields}
    names = "".join(f"v{index}, " if index in used else "_, " for index in range(width))
    lines.insert(0, f"[{names}] = value" if names else "[] = value")
    return code.callable(code.function("value", [*lines, f"return {_object(parts)}"]))


def source_function(schema: Schema, layout: JsonLayout) -> Callable[[Struct], str]:
    """Return the function from a source block to its JSON text."""
    code = JsonCode(layout)
    repeated = code.bind(Memo(layout.text(Schema(Type.STRING))))
    lines = [f"[{', '.join(f'v{index}' for index in range(len(schema.fields)))}] = value.values_"]
    parts = []
    for field in schema.fields:
        raw, shown = f"v{field.index}", f"t{field.index}"
        expression = raw
        if field.schema.type is Type.STRING:
            expression = f"{repeated}[{raw}]" if field.name in _REPEATED else f"quote({raw})"
        if field.schema.optional:
            expression = f"{_null(code, lambda value: value, layout.text(field.schema))} if {raw} is None else {expression}"
        lines.append(f"{shown} = {expression}")
        parts.append((field.name, shown))
    return code.callable(code.function("value", [*lines, f"return {_object(parts)}"]))


def _converted(convert: Callable[[Any], Any], exact: ToText) -> ToText:
    return lambda raw: exact(convert(raw))


def _null(code: JsonCode, convert: Callable[[Any], Any], exact: ToText) -> str:
    """Return the expression for null, which may stand for a default."""
    return code.bind(_text_of(None, convert, exact))


def _text_of(raw: Any, convert: Callable[[Any], Any], exact: ToText) -> object:
    """Return the text of a raw value. If it cannot be written, the result cannot either, so that structs show the error."""
    try:
        return exact(convert(raw))
    except Exception:  # noqa: BLE001 (a record with this value raises the same when it is converted)
        return UNAVAILABLE


def _object(parts: Sequence[tuple[str, str]]) -> str:
    """Return the expression that joins the texts in variables to an object."""
    if not parts:
        return "'{}'"
    found = []
    for number, (name, variable) in enumerate(parts):
        found.append(repr(f"{',' if number else '{'}{quote(name)}:"))
        found.append(f"f'{{{variable}}}'")
    return f"({' '.join(found)} '}}')"

"""A table's columns, which grow, and its rows as Arrow columns. No I/O. Runs in the reader's process.

A column keeps its type. A value that would lose something as that type goes to a column of its own, NAME__v_TYPE, as dlt does.
The columns are stored with the offset, so that a restart gives records of the same schema.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import pyarrow as pa

from sluiceway.columns.arrow_schema import arrow_fields, arrow_type
from sluiceway.columns.connect_schemas import connect_array, row_schema
from sluiceway.connectors.dlt import kinds
from sluiceway.connectors.dlt.kinds import MisfitError
from sluiceway.data import Schema, Type
from sluiceway.data.schema_json import schema_from_json, schema_to_json
from sluiceway.errors import ConnectError, DataError

_ERRORS = (pa.ArrowException, OverflowError, ValueError, TypeError)
Column = str | Schema
"""A type of dlt, or the schema of a struct or an array."""


class Table:
    """The columns of a table, and what makes its rows records.

    Args:
        name: the table's name, which is that of the records' schema.
        stored: the columns of a stored offset.
        structs: whether nested values are structs and arrays, not JSON.
        micros: whether times keep their microseconds.
    """

    def __init__(self, name: str, stored: Mapping[str, Any], *, structs: bool, micros: bool) -> None:
        self.name = name
        self.columns: dict[str, Column] = {column: _column(name, column, each) for column, each in stored.items()}
        self.keys: list[str] = []
        self._structs = structs
        self._micros = micros
        self._schema: Schema | None = None

    @property
    def schema(self) -> Schema:
        """The schema of the records. It is another object when the table has grown."""
        if self._schema is None:
            fields = [(name, self._field(each)) for name, each in self.columns.items()]
            self._schema = Schema(Type.STRUCT, name=self.name, fields=fields)
        return self._schema

    def stored(self) -> dict[str, Any]:
        """Return the columns as JSON can hold them."""
        return {
            name: each if isinstance(each, str) else schema_to_json(each, lambda _schema, _value: None)
            for name, each in self.columns.items()
        }

    def declare(self, hints: Mapping[str, Mapping[str, Any]]) -> None:
        """Add the columns that hints give types, and note the primary key. A column that is there keeps its type."""
        for name, hint in hints.items():
            kind = kinds.kind_of_hint(str(hint.get("data_type")), hint.get("precision"), hint.get("scale"))
            if kind is not None and name not in self.columns and not (kind == kinds.JSON and self._structs):
                self._add(name, kind)
        self.keys = [name for name, hint in hints.items() if hint.get("primary_key")]

    def of_rows(self, rows: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
        """Return rows as columns. Adds the columns that they need."""
        arrays: dict[str, Any] = {}
        for name in dict.fromkeys(chain.from_iterable(rows)):
            self._take(str(name), [row.get(name) for row in rows], arrays)
        return self._batch(arrays, len(rows))

    def of_arrow(self, rows: pa.Table) -> pa.RecordBatch:
        """Return the rows of an Arrow table. Adds the columns that they need."""
        arrays: dict[str, Any] = {}
        for name, column in zip(rows.column_names, rows.columns, strict=True):
            self._take_array(name, pa.concat_arrays(column.chunks), arrays)
        return self._batch(arrays, len(rows))

    def _batch(self, arrays: Mapping[str, Any], count: int) -> pa.RecordBatch:
        schema = self.schema
        if not schema.fields:
            raise DataError(f"Table {self.name} has rows without a value, of which no record can be made.")
        missing = [keys for keys in self.keys if keys not in self.columns]
        if missing:
            raise DataError(f"Table {self.name} has no column {', '.join(missing)}, which is in its primary key.")
        made: list[Any] = []
        for field, (name, column) in zip(schema.fields, self.columns.items(), strict=True):
            array = arrays.get(name)
            if array is None:
                type_: Any = arrow_type(field.schema)  # the stubs know each type, and not any
                made.append(pa.nulls(count, type_))
            else:
                made.append(kinds.as_schema_type(column, array, self._micros) if isinstance(column, str) else array)
        return pa.RecordBatch.from_arrays(made, schema=pa.schema(arrow_fields(schema)))

    def _add(self, name: str, column: Column) -> None:
        self.columns[name] = column
        self._schema = None

    def _field(self, column: Column) -> Schema:
        return kinds.schema_of(column, self._micros) if isinstance(column, str) else column

    # Python values.

    def _take(self, name: str, values: list[Any], arrays: dict[str, Any]) -> None:
        """Add a column's values to the arrays of its page."""
        found = {kinds.kind_of_type(each) for each in set(map(type, values)) - {type(None)}}
        if not found:
            return
        if self._structs and (found == {kinds.JSON} or isinstance(self.columns.get(name), Schema)):
            self._take_structs(name, values, arrays)
            return
        column = self.columns.get(name)
        if column is None:
            column = _inferred(found, values)
            self._add(name, column)
        assert isinstance(column, str)  # noqa: S101 (with structs, other nested columns are taken above)
        if column == kinds.JSON:
            arrays[name] = pa.array([None if each is None else kinds.json_text(each) for each in values], pa.utf8())
            return
        base = column.partition("(")[0]
        fits = found == {base} or (base == kinds.DOUBLE and found <= {kinds.DOUBLE, kinds.BIGINT})
        if fits and base != kinds.DECIMAL_KIND:
            with contextlib.suppress(*_ERRORS):
                array = pa.array(values, kinds.stored_type(column))
                if isinstance(array, pa.Array):
                    arrays[name] = array
                    return
        self._take_each(name, column, values, arrays)

    def _take_each(self, name: str, column: str, values: list[Any], arrays: dict[str, Any]) -> None:
        """Convert value by value; those that do not fit go to columns of their own."""
        fitting: list[Any] = []
        others: dict[str, list[Any]] = {}
        for number, value in enumerate(values):
            try:
                fitting.append(kinds.convert(column, value))
            except MisfitError:
                fitting.append(None)
                kind = kinds.kind_of(value)
                if kind == column:  # such as a decimal with more digits than the column has
                    kind = kinds.TEXT
                others.setdefault(_variant(name, kind), [None] * len(values))[number] = value
            except ValueError:  # a text that is none of the type
                fitting.append(None)
                others.setdefault(_variant(name, kinds.TEXT), [None] * len(values))[number] = value
        arrays[name] = pa.array(fitting, kinds.stored_type(column))
        for variant, each in others.items():
            if variant not in self.columns:
                self._add(
                    variant,
                    _inferred({kinds.kind_of_type(type(value)) for value in each if value is not None}, each)
                    if not variant.endswith("__v_text")
                    else kinds.TEXT,
                )
            self._take(variant, each, arrays)

    def _take_structs(self, name: str, values: list[Any], arrays: dict[str, Any]) -> None:
        column = self.columns.get(name)
        if column is None or isinstance(column, Schema):
            with contextlib.suppress(*_ERRORS):
                inferred = _known(pa.array(values).type)
                if inferred is None and column is None:
                    return  # nothing but empty lists and objects so far
                unified = _unified(None if column is None else arrow_type(column), inferred)
                self._take_nested(name, pa.array(values, unified), arrays)
                return
            if column is None:  # elements of several types
                self._add(name, kinds.JSON)
        if self.columns[name] == kinds.JSON:
            arrays[name] = pa.array([None if each is None else kinds.json_text(each) for each in values], pa.utf8())
            return
        self._take(
            _variant(name, kinds.TEXT), [None if each is None else kinds.convert(kinds.TEXT, each) for each in values], arrays
        )

    def _take_nested(self, name: str, array: Any, arrays: dict[str, Any]) -> None:
        schema = row_schema([pa.field(name, array.type)]).fields[0].schema
        if self.columns.get(name) != schema:
            self._add(name, schema)
        arrays[name] = connect_array(schema, array)

    # Arrow's columns.

    def _take_array(self, name: str, array: Any, arrays: dict[str, Any]) -> None:
        """Add a column of Arrow to the arrays of its page: as it is where its type allows, else value by value."""
        if isinstance(array, pa.ExtensionArray):
            array = array.storage
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_null(array.type):
            return
        if pa.types.is_nested(array.type):
            self._take_nested_array(name, array, arrays)
            return
        kind = _kind_of_arrow(name, array.type)
        column = self.columns.get(name)
        if column is None:
            self._add(name, column := kind)
        if isinstance(column, str) and column != kinds.JSON and (column == kind or _widens(kind, column)):
            with contextlib.suppress(*_ERRORS):
                arrays[name] = _cast(array, kinds.stored_type(column))
                return
        self._take(name, array.to_pylist(), arrays)

    def _take_nested_array(self, name: str, array: Any, arrays: dict[str, Any]) -> None:
        column = self.columns.get(name)
        if self._structs and (column is None or isinstance(column, Schema)):
            with contextlib.suppress(*_ERRORS):
                unified = _unified(None if column is None else arrow_type(column), array.type)
                self._take_nested(name, array.cast(unified), arrays)
                return
        values = array.to_pylist()
        if pa.types.is_map(array.type):
            values = [None if each is None else dict(each) for each in values]
        self._take(name, values, arrays)


def _column(table: str, name: str, stored: Any) -> Column:
    if isinstance(stored, str) and kinds.is_kind(stored):
        return stored
    with contextlib.suppress(DataError):
        schema = schema_from_json(stored, lambda _schema, value: value)
        if schema is not None:
            return schema
    raise ConnectError(f"The offset's schema says of column {name} of table {table} what is no type: {stored!r}.")


def _inferred(found: set[str], values: Sequence[Any]) -> str:
    """Return the type of a new column: of all values if one fits them, else of the first one."""
    present = [each for each in values if each is not None]
    if found == {kinds.BIGINT, kinds.DOUBLE}:
        return kinds.DOUBLE
    if found == {kinds.BIGINT} and any(kinds.kind_of(each) != kinds.BIGINT for each in present):
        return kinds.WEI if all(kinds.kind_of(each) != kinds.TEXT for each in present) else kinds.TEXT
    if found == {kinds.DECIMAL_KIND} and any(kinds.kind_of(each) == kinds.TEXT for each in present):
        return kinds.TEXT
    return kinds.kind_of(present[0])


def _variant(name: str, kind: str) -> str:
    return f"{name}__v_{kind.partition('(')[0]}"


def _kind_of_arrow(name: str, type_: Any) -> str:
    for applies, kind in _OF_ARROW:
        if applies(type_):
            return kind
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{max(type_.scale, 0)})"
    raise DataError(f"Column {name} has the Arrow type {type_}, which has no counterpart. Leave the column out, or cast it.")


_OF_ARROW: list[tuple[Any, str]] = [
    (pa.types.is_boolean, kinds.BOOL),
    (pa.types.is_uint64, kinds.WEI),
    (pa.types.is_integer, kinds.BIGINT),
    (pa.types.is_floating, kinds.DOUBLE),
    (pa.types.is_string, kinds.TEXT),
    (pa.types.is_large_string, kinds.TEXT),
    (pa.types.is_string_view, kinds.TEXT),
    (pa.types.is_binary, kinds.BINARY),
    (pa.types.is_large_binary, kinds.BINARY),
    (pa.types.is_fixed_size_binary, kinds.BINARY),
    (pa.types.is_binary_view, kinds.BINARY),
    (pa.types.is_timestamp, kinds.TIMESTAMP),
    (pa.types.is_date, kinds.DATE),
    (pa.types.is_time, kinds.TIME),
]


def _widens(kind: str, column: str) -> bool:
    """Return whether Arrow casts a type to a column's without loss, or with an error."""
    decimals = kinds.DECIMAL_KIND
    return (
        (kind == kinds.BIGINT and column in {kinds.DOUBLE, kinds.WEI})
        or (kind.startswith(decimals) and column.startswith(decimals))
        or (kind == kinds.BIGINT and column.startswith(decimals))
    )


def _cast(array: Any, type_: Any) -> Any:
    if array.type == type_:
        return array
    if pa.types.is_timestamp(type_):
        if array.type.tz is None:
            array = array.cast(pa.timestamp(array.type.unit, tz="UTC"))
        return array.cast(type_, safe=array.type.unit != "ns")  # nanoseconds are cut, as dlt does
    if pa.types.is_time(type_):
        return array.cast(type_, safe=False)
    if pa.types.is_decimal(type_) and pa.types.is_integer(array.type):
        return array.cast(pa.decimal128(20, 0)).cast(type_)
    return array.cast(type_)


def _known(type_: Any) -> Any:
    """Return a nested type without the parts that have no type yet, such as the elements of empty lists; None without any."""
    if pa.types.is_null(type_):
        return None
    if pa.types.is_struct(type_):
        fields = [(each.name, _known(each.type)) for each in type_]
        known = [pa.field(name, each) for name, each in fields if each is not None]
        return pa.struct(known) if known else None
    if pa.types.is_list(type_):
        item = _known(type_.value_type)
        return None if item is None else pa.list_(item)
    return type_


def _unified(old: Any, new: Any) -> Any:
    """Return the type that holds values of both. Raises ArrowInvalid or ArrowTypeError."""
    if old is None or new is None:
        return new if old is None else old
    merged = pa.unify_schemas([pa.schema([("x", old)]), pa.schema([("x", new)])], promote_options="permissive")
    return merged.field("x").type

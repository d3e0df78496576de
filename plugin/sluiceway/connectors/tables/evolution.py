"""Decides how a table's columns must change for a batch, and fits the batch to the columns. No I/O."""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from sluiceway.columns.required import without_hidden_nulls
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.connectors.tables.store import TableStore


class Kind(enum.Enum):
    ADD = "add"
    WIDEN = "widen"
    RELAX = "make optional"


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """A change of a column; ``path`` names the fields from the outermost, with ``element`` and ``value`` as Iceberg has them."""

    kind: Kind
    path: tuple[str, ...]
    type: pa.DataType

    def __str__(self) -> str:
        return f"{self.kind.value} {'.'.join(self.path)} {self.type}"


def column_schema(store: TableStore, schema: pa.Schema, *, force_optional: bool, required: Collection[str] = ()) -> pa.Schema:
    """Return the columns of a table to create for rows of a schema; ``required`` columns are never optional."""
    fields = []
    for field in schema:
        if not pa.types.is_null(field.type):
            optional = (force_optional or field.nullable) and field.name not in required
            fields.append(
                pa.field(field.name, _optional(store.arrow_type(field.type, field.name), force_optional), nullable=optional)
            )
    return pa.schema(fields)


class Evolution:
    """Compares schemas for one store."""

    def __init__(self, store: TableStore, *, case_insensitive: bool, id_columns: Collection[str]) -> None:
        self._store = store
        fold: Callable[[str], str] = str.lower if case_insensitive else str
        self._name: Callable[[str], str] = lambda name: fold(store.column_name(name))
        self._required = {self._name(column) for column in id_columns}

    def changes(self, table: pa.Schema, rows: pa.Schema) -> list[ColumnChange]:
        """Return what must change before rows of a schema can be written without loss."""
        return list(self._fields((), {self._name(field.name): field for field in table}, list(rows), self._required))

    def fit(self, rows: pa.Table, table: pa.Schema) -> pa.Table:
        """Return rows with exactly the table's columns. Fields without a column are left out.

        Raises DataError if a value cannot be converted or a required column has no value.
        """
        found = {self._name(name): number for number, name in enumerate(rows.column_names)}
        columns = []
        for field in table:
            number = found.get(self._name(field.name))
            columns.append(pa.nulls(len(rows), field.type) if number is None else _converted(rows.column(number), field))
            if not field.nullable and columns[-1].null_count:
                raise DataError(
                    f"Column {field.name} of the table is required, but {columns[-1].null_count} records have no value."
                )
        return pa.Table.from_arrays(columns, schema=table)

    def _fields(
        self, path: tuple[str, ...], table: dict[str, pa.Field[Any]], rows: list[pa.Field[Any]], required: Collection[str]
    ) -> Iterator[ColumnChange]:
        for field in rows:
            if pa.types.is_null(field.type):
                continue  # schemaless values that are all null: the type is not known yet
            existing = table.get(self._name(field.name) if not path else field.name)
            if existing is None:
                added = self._store.arrow_type(field.type, ".".join((*path, field.name)))
                yield ColumnChange(Kind.ADD, (*path, field.name), _optional(added, everywhere=False))
                continue
            here = (*path, existing.name)
            if field.nullable and not existing.nullable and self._name(existing.name) not in required:
                yield ColumnChange(Kind.RELAX, here, existing.type)
            yield from self._types(here, existing.type, field.type)
        names = {self._name(field.name) if not path else field.name for field in rows}
        for name, existing in table.items():
            if name not in names and not existing.nullable and name not in required:
                yield ColumnChange(Kind.RELAX, (*path, existing.name), existing.type)

    def _types(self, path: tuple[str, ...], table: pa.DataType, rows: pa.DataType) -> Iterator[ColumnChange]:
        if isinstance(table, pa.StructType) and isinstance(rows, pa.StructType):
            yield from self._fields(path, {field.name: field for field in table}, list(rows), ())
        elif _is_list(table) and _is_list(rows):
            yield from self._types((*path, "element"), table.value_type, rows.value_type)  # type: ignore[attr-defined]
        elif isinstance(table, pa.MapType) and isinstance(rows, pa.MapType):
            yield from self._types((*path, "value"), table.item_type, rows.item_type)
        elif not pa.types.is_null(rows) and not pa.types.is_nested(rows):
            wanted = self._store.arrow_type(rows, ".".join(path))
            if wanted != table and self._store.widens(table, wanted):
                yield ColumnChange(Kind.WIDEN, path, wanted)


def applied(table: pa.Schema, changes: Sequence[ColumnChange]) -> pa.Schema:
    """Return a table's columns as they are after changes."""
    fields = list(table)
    for change in changes:
        fields = _changed(fields, change.path, change)
    return pa.schema(fields)


def _changed(fields: list[pa.Field[Any]], path: Sequence[str], change: ColumnChange) -> list[pa.Field[Any]]:
    name, rest = path[0], path[1:]
    if not rest and change.kind is Kind.ADD:
        return [*fields, pa.field(name, change.type)]
    return [_changed_field(field, rest, change) if field.name == name else field for field in fields]


def _changed_field(field: pa.Field[Any], path: Sequence[str], change: ColumnChange) -> pa.Field[Any]:
    if not path:
        return field.with_nullable(True) if change.kind is Kind.RELAX else field.with_type(change.type)
    kind: Any = field.type
    if isinstance(kind, pa.StructType):
        return field.with_type(pa.struct(_changed(list(kind), path, change)))
    if isinstance(kind, pa.MapType):
        return field.with_type(pa.map_(kind.key_type, _changed_field(kind.item_field, path[1:], change)))
    return field.with_type(pa.list_(_changed_field(kind.value_field, path[1:], change)))


def wider_decimal(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether ``new`` is the decimal type ``old`` with more digits before the point and the same scale."""
    return (
        pa.types.is_decimal(old) and pa.types.is_decimal(new) and old.scale == new.scale and old.precision < new.precision <= 38
    )


def convert_type(type_: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType], path: str = "") -> pa.DataType:
    """Return an Arrow type with ``leaf`` applied to all types that are not nested; ``path`` is the field's.

    Raises DataError, which names the field, if ``leaf`` does, and for a struct without fields, which no table can hold.
    """
    if isinstance(type_, pa.StructType):
        if not type_.num_fields:
            raise DataError(_cannot_hold(path, "it is a struct without fields, and a table cannot hold that"))
        fields = [(each, convert_type(each.type, leaf, f"{path}.{each.name}" if path else each.name)) for each in type_]
        return pa.struct([pa.field(field.name, kind, field.nullable) for field, kind in fields])
    if isinstance(type_, pa.MapType):
        return pa.map_(convert_type(type_.key_type, leaf, f"{path}.key"), convert_type(type_.item_type, leaf, f"{path}.value"))
    if _is_list(type_):
        return pa.list_(convert_type(type_.value_type, leaf, f"{path}.element"))  # type: ignore[attr-defined]
    try:
        return leaf(type_)
    except DataError as error:
        raise DataError(_cannot_hold(path, str(error))) from error


def _cannot_hold(path: str, reason: str) -> str:
    return f"Field {path or 'value'} cannot be written: {reason.rstrip('.')}. Leave it out or convert it by a transform."


def _is_list(type_: pa.DataType) -> bool:
    return pa.types.is_list(type_) or pa.types.is_large_list(type_)


def _optional(type_: pa.DataType, everywhere: bool) -> pa.DataType:
    """Return a type whose fields are all optional, if that is wanted everywhere."""
    if not everywhere:
        return type_
    if isinstance(type_, pa.StructType):
        return pa.struct([pa.field(field.name, _optional(field.type, everywhere)) for field in type_])
    if isinstance(type_, pa.MapType):
        return pa.map_(type_.key_type, _optional(type_.item_type, everywhere))
    if _is_list(type_):
        return pa.list_(_optional(type_.value_type, everywhere))  # type: ignore[attr-defined]
    return type_


def _converted(column: pa.ChunkedArray[Any], field: pa.Field[Any]) -> pa.ChunkedArray[Any]:
    if pa.types.is_nested(column.type):
        chunks, nested = [without_hidden_nulls(chunk) for chunk in column.chunks], cast("Any", column.type)
        column = pa.chunked_array(chunks, nested)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise DataError(
            f"Field {field.name} of type {column.type} does not fit column {field.name} of type {field.type}: {error}"
        ) from error

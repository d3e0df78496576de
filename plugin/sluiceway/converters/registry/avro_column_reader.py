"""Converts Avro records of one schema to Arrow arrays, field by field for all records at once.

It returns the same values as ``avro_read``. Where that raises an error or the data is unusual, NotColumnar is raised.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from sluiceway.api.columns import NotColumnar, RowFormReason
from sluiceway.columns.arrays import list_array, map_array, struct_array
from sluiceway.columns.arrow_schema import arrow_type, logical
from sluiceway.columns.refused_values import VALUE_ERRORS, in_field
from sluiceway.converters.registry.avro_connect import AvroTypes, Resolved, is_map_entry, only_branch
from sluiceway.converters.registry.avro_cursor import Cursor
from sluiceway.data import Schema, Type
from sluiceway.data.instant import EARLIEST_MILLIS, LATEST_MILLIS
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from sluiceway.data.schema import INTEGER_BITS
from sluiceway.java.dates.hybrid_calendar import DAY_MS

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    Read = Callable[[Cursor], AnyArray]

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_MOST_ITEMS = 64
"""Longer lists are read record by record, because each item takes a step for all records."""

_MOMENTS: dict[str, tuple[type[np.signedinteger[Any]], int, int]] = {
    DATE: (np.int32, EARLIEST_MILLIS // DAY_MS, LATEST_MILLIS // DAY_MS),
    TIME: (np.int32, 0, DAY_MS - 1),
    TIMESTAMP: (np.int64, EARLIEST_MILLIS, LATEST_MILLIS),
}
"""The integers that are dates and times in Python, by schema name; all others are Instants or errors."""


def column_reader(types: AvroTypes, node: Any, schema: Schema) -> Callable[[AnyArray], AnyArray]:
    """Return the function from records of an Avro schema, of which none is null, to an array of ``arrow_type(schema)``.

    Raises NotColumnar for a schema that has no Arrow type or that only the row form reads: with unions other than of null and
    one type, maps as arrays of entries, and records without fields. The function raises it, too.
    """
    arrow_type(schema)
    if types.resolve(node).kind == "bytes":  # these stand without their size
        if logical(schema) is not None:
            raise NotColumnar("decimals by themselves", RowFormReason.SCHEMA)
        return lambda records: records
    read = _Readers(types).reader(node, schema, "")

    def read_all(records: AnyArray) -> AnyArray:
        try:
            cursor = Cursor.of(records)
            array = read(cursor)
            cursor.check_end()
        except VALUE_ERRORS as error:
            raise NotColumnar(f"Records of {schema} that do not match it: {error}") from error
        return array

    return read_all


class _Readers:
    """Creates the functions that read the types of one schema."""

    def __init__(self, types: AvroTypes) -> None:
        self._types = types

    def reader(self, node: Any, schema: Schema, namespace: str) -> Read:
        resolved = self._types.resolve(node, namespace)
        if resolved.kind == "union":
            return self._optional(resolved, schema)
        if resolved.kind == "record":
            return self._record(resolved, schema)
        if resolved.kind in ("array", "map"):
            return self._container(resolved, schema)
        return _leaf(resolved, schema)

    def _optional(self, resolved: Resolved, schema: Schema) -> Read:
        branch = only_branch(self._types, resolved)
        if branch is None:
            raise NotColumnar("a union of several types", RowFormReason.SCHEMA)
        read = self.reader(branch, schema, resolved.namespace)
        is_second = resolved.node["branches"][1] is branch
        return _nullable(read, present_is_second=is_second)

    def _record(self, resolved: Resolved, schema: Schema) -> Read:
        reads = [
            (inner.name, self.reader(field["type"], inner.schema, resolved.namespace))
            for field, inner in zip(resolved.node["fields"], schema.fields, strict=True)
        ]
        if not reads:
            raise NotColumnar("a record without fields", RowFormReason.SCHEMA)
        return lambda cursor: struct_array(schema, [in_field(*part, cursor) for part in reads])

    def _container(self, resolved: Resolved, schema: Schema) -> Read:
        assert schema.value_schema is not None  # noqa: S101 (it is an array or a map)
        if resolved.kind == "map":
            assert schema.key_schema is not None  # noqa: S101
            return _map(schema, self.reader(resolved.node["values"], schema.value_schema, resolved.namespace))
        if is_map_entry(self._types.resolve(resolved.node["items"], resolved.namespace)):
            raise NotColumnar("a map as an array of entries", RowFormReason.SCHEMA)
        return _list(schema, self.reader(resolved.node["items"], schema.value_schema, resolved.namespace))


def _nullable(read: Read, *, present_is_second: bool) -> Read:
    """Return the reader of a union of null and one type."""

    def read_nullable(cursor: Cursor) -> AnyArray:
        second = cursor.flags(2)
        present = second if present_is_second else ~second
        if present.all():
            return read(cursor)
        some = cursor.part(present)
        values: Any = read(some)
        cursor.positions[present] = some.positions
        places = np.cumsum(present) - 1
        taken: AnyArray = values.take(pa.array(places, pa.int64(), mask=~present))
        return taken

    return read_nullable


def _leaf(resolved: Resolved, schema: Schema) -> Read:
    name = logical(schema)
    if name == DECIMAL:
        return _decimals(schema, resolved.node.get("size"))
    if name is not None:
        return _moments(schema, name)
    if resolved.kind == "enum":
        return _enums(resolved.node["symbols"])
    if schema.type in INTEGER_BITS:
        return _integers(schema)
    if schema.type is Type.BOOLEAN:
        return lambda cursor: pa.array(cursor.flags(1))
    if schema.type is Type.STRING:
        return lambda cursor: cursor.binary().cast(pa.utf8())  # raises for bytes that are not UTF-8
    if schema.type is Type.BYTES:
        size = resolved.node.get("size")
        return lambda cursor: cursor.binary(size)
    kind = "<f4" if schema.type is Type.FLOAT32 else "<f8"
    return lambda cursor: pa.array(cursor.floats(kind))


def _enums(names: list[str]) -> Read:
    symbols: Any = pa.array(names, pa.utf8())

    def read(cursor: Cursor) -> AnyArray:
        numbers = cursor.longs()
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= len(names)):
            raise NotColumnar("the number of an unknown symbol", RowFormReason.ERROR)
        array: AnyArray = symbols.take(pa.array(numbers))
        return array

    return read


def _integers(schema: Schema) -> Read:
    bits, kind = INTEGER_BITS[schema.type], arrow_type(schema)
    half = 1 << (bits - 1)

    def read(cursor: Cursor) -> AnyArray:
        numbers = cursor.longs()
        if bits < 64 and len(numbers) and (numbers.min() < -half or numbers.max() >= half):
            raise NotColumnar(f"integers of more than {bits} bits")
        return pa.array(numbers).cast(kind)

    return read


def _moments(schema: Schema, name: str) -> Read:
    kind, (integer, first, last) = arrow_type(schema), _MOMENTS[name]

    def read(cursor: Cursor) -> AnyArray:
        numbers = cursor.longs()
        if len(numbers) and (numbers.min() < first or numbers.max() > last):
            raise NotColumnar("dates or times beyond Python's")
        return pa.array(numbers.astype(integer)).view(kind)

    return read


def _decimals(schema: Schema, size: int | None) -> Read:
    kind: Any = arrow_type(schema)

    def read(cursor: Cursor) -> AnyArray:
        numbers = cursor.two_complements(kind.byte_width, size)
        data: Any = np.ascontiguousarray(numbers)
        array: AnyArray = pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(data)])
        array.validate(full=True)  # raises for too many digits
        return array

    return read


def _list(schema: Schema, read_items: Read) -> Read:
    def read(cursor: Cursor) -> AnyArray:
        starts, (items,) = _blocks(cursor, [read_items])
        return list_array(schema, starts, items, None)

    return read


def _map(schema: Schema, read_items: Read) -> Read:
    def read_keys(cursor: Cursor) -> AnyArray:
        return cursor.binary().cast(pa.utf8())

    def read(cursor: Cursor) -> AnyArray:
        starts, (keys, items) = _blocks(cursor, [read_keys, read_items])
        _check_unique(starts, keys)
        return map_array(schema, starts, keys, items, None)

    return read


def _blocks(cursor: Cursor, reads: list[Read]) -> tuple[pa.Int32Array, list[AnyArray]]:
    """Read lists of one block, as Java and fastavro write them; return their starts and the arrays of their items' parts.

    The first items of all lists are read at once, then the second ones, and so on.
    """
    counts = cursor.longs()
    most = int(counts.max()) if len(counts) else 0
    if most > _MOST_ITEMS or (len(counts) and counts.min() < 0):
        raise NotColumnar("lists of many items, or blocks with their size")
    owners: list[Any] = [np.empty(0, np.int64)]
    rounds: list[list[AnyArray]] = []
    for number in range(max(most, 1)):  # once even without items, for arrays of the right type
        having = np.flatnonzero(counts > number)
        some = cursor.part(having)
        rounds.append([read(some) for read in reads])
        cursor.positions[having] = some.positions
        owners.append(having)
    filled = counts > 0
    rest = cursor.part(filled)
    rest.flags(0)  # refuses lists of several blocks
    cursor.positions[filled] = rest.positions
    order = pa.array(np.argsort(np.concatenate(owners), kind="stable"))
    starts: Any = pa.array(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))
    return starts, [pa.concat_arrays(parts).take(order) for parts in zip(*rounds, strict=True)]


def _check_unique(starts: Any, keys: AnyArray) -> None:
    """Raise NotColumnar if a map has a key twice, of which the row form keeps one."""
    encoded: Any = keys.dictionary_encode()
    distinct = len(encoded.dictionary)
    if distinct == len(keys):
        return
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts.to_numpy()))
    entries = owners * distinct + encoded.indices.to_numpy()
    if len(np.unique(entries)) != len(entries):
        raise NotColumnar("a map with the same key twice")

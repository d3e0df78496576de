"""Converts Arrow arrays of one schema to Avro records, column by column. It returns the same bytes as ``avro_write``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute

from sluiceway.api.columns import NotColumnar, RowFormReason
from sluiceway.columns.arrays import to_array
from sluiceway.columns.arrow_schema import arrow_type, logical
from sluiceway.columns.refused_values import in_field, refused_values
from sluiceway.columns.text_arrays import nullable
from sluiceway.converters.registry.avro_arrays import booleans, decimals, floats, joined, lists, longs, sized
from sluiceway.data import Schema, Type
from sluiceway.data.avro_schema import ENUM, FIXED_SIZE, UNION, AvroOptions, enum_symbols, has_string_keys
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from sluiceway.data.null_values import null_value
from sluiceway.data.schema import INTEGER_BITS
from sluiceway.java.dates.hybrid_calendar import DAY_MS

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.converters.registry.avro_arrays import Pieces

    Write = Callable[[AnyArray], Pieces]

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_FIRST, _SECOND = b"\x00", b"\x02"
_INTEGERS = {DATE: pa.int32(), TIME: pa.int32(), TIMESTAMP: pa.int64()}


def column_writer(schema: Schema, options: AvroOptions) -> Callable[[AnyArray], AnyArray]:
    """Return the function from arrays without nulls to records. Raises NotColumnar for a schema that only the row form writes.

    These have unions of several types, maps as arrays of entries, or no Arrow type. The function raises it, too.
    """
    kind = arrow_type(schema)
    if schema.type is Type.BYTES and not schema.optional:  # these stand without their size
        if logical(schema) is not None:
            raise NotColumnar("decimals by themselves", RowFormReason.SCHEMA)
        return lambda array: array
    writers = _Writers(options)
    write = writers.present(schema)

    def encode(array: AnyArray) -> AnyArray:
        if array.type != kind:
            raise NotColumnar(f"an array of {array.type} for {schema}")
        with refused_values(f"Avro of {schema}"):  # more than 2 GB
            return joined(write(array), len(array))

    return encode


class _Writers:
    """Creates functions from arrays to pieces of bytes."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options

    def nullable(self, schema: Schema | None) -> Write:
        """Return the function for arrays with nulls, in whose place the default is written."""
        assert schema is not None  # noqa: S101 (schemas with an Arrow type have inner schemas)
        write = self.present(schema)
        null = self._null(schema, write)

        return nullable(schema, write, joined, null)

    def _null(self, schema: Schema, write: Write) -> bytes | None:
        """Return what is written for null, None if null is invalid."""
        default = null_value(schema, replace=not self._options.keep_nulls)
        if default is not None:
            encoded: Any = joined(write(to_array(schema, [default])), 1)[0].as_py()
            return bytes(encoded)
        if not schema.optional:
            return None
        return _FIRST if schema.default is None else _SECOND

    def present(self, schema: Schema) -> Write:
        """Return the function for arrays without nulls. An optional schema's union has null first, or second after a default."""
        write = self._typed(schema)
        if not schema.optional:
            return write
        branch = _SECOND if schema.default is None else _FIRST
        return lambda array: [branch, *write(array)]

    def _typed(self, schema: Schema) -> Write:
        if FIXED_SIZE in schema.parameters:
            raise NotColumnar("a fixed type")
        name = logical(schema)
        if name is not None:
            return (lambda array: sized(decimals(array))) if name == DECIMAL else _moments(name)
        if schema.type in INTEGER_BITS:
            return lambda array: [longs(array)]
        if schema.type is Type.STRING and self._options.enhanced and ENUM in schema.parameters:
            return _enums(schema)
        return self._other(schema)

    def _other(self, schema: Schema) -> Write:
        if schema.type in (Type.STRING, Type.BYTES):
            return sized
        if schema.type in (Type.FLOAT32, Type.FLOAT64):
            return lambda array: [floats(array)]
        if schema.type is Type.BOOLEAN:
            return lambda array: [booleans(array)]
        return {Type.ARRAY: self._lists, Type.MAP: self._maps, Type.STRUCT: self._structs}[schema.type](schema)

    def _structs(self, schema: Schema) -> Write:
        if schema.name == UNION or not schema.fields:
            raise NotColumnar("a union, or a record without fields", RowFormReason.SCHEMA)
        writes = [(field.name, self.nullable(field.schema)) for field in schema.fields]

        def write(array: Any) -> Pieces:
            return [piece for index, part in enumerate(writes) for piece in in_field(*part, array.field(index))]

        return write

    def _lists(self, schema: Schema) -> Write:
        write_items = self.nullable(schema.value_schema)

        def write(array: Any) -> Pieces:
            items = array.flatten()
            return _blocks(array, joined(write_items(items), len(items)))

        return write

    def _maps(self, schema: Schema) -> Write:
        if not has_string_keys(schema, self._options):
            raise NotColumnar("a map as an array of entries", RowFormReason.SCHEMA)
        write_items = self.nullable(schema.value_schema)

        def write(array: Any) -> Pieces:
            first, last = array.offsets[0].as_py(), array.offsets[len(array)].as_py()
            keys, items = (entries.slice(first, last - first) for entries in (array.keys, array.items))
            return _blocks(array, joined([*sized(keys), *write_items(items)], len(keys)))

        return write


def _blocks(array: Any, items: AnyArray) -> Pieces:
    offsets = array.offsets
    count = len(array)
    counts = pc.subtract(offsets.slice(1, count), offsets.slice(0, count))
    return lists(counts, pc.subtract(offsets, offsets[0]), items)


def _moments(name: str) -> Write:
    def write(array: AnyArray) -> Pieces:
        integers = array.view(_INTEGERS[name])
        in_a_day = pc.and_(pc.greater_equal(integers, 0), pc.less_equal(integers, DAY_MS))
        if name == TIME and pc.all(in_a_day).as_py() is False:
            raise NotColumnar("times beyond a day")
        return [longs(integers)]

    return write


def _enums(schema: Schema) -> Write:
    symbols = pa.array(enum_symbols(schema), pa.utf8())

    def write(array: AnyArray) -> Pieces:
        indices = pc.index_in(array, symbols)
        if indices.null_count:
            raise NotColumnar("text that is no symbol of its enum")
        return [longs(indices)]

    return write

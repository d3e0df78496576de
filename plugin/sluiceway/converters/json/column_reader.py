"""Converts payloads of one schema to Arrow arrays: a batch is parsed as one JSON document, then converted field by field.

It returns the same values as ``fast_reader``. Where that raises an error or leaves a payload to ``reader``, NotColumnar is raised
for the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
import pyarrow.compute

from sluiceway.api.columns import NotColumnar, RowFormReason
from sluiceway.columns.arrays import flat, list_array, map_array, null_mask, offsets, struct_array, to_array
from sluiceway.columns.arrow_schema import arrow_type, logical
from sluiceway.columns.refused_values import VALUE_ERRORS, in_field, refused_values
from sluiceway.columns.text_arrays import data_of, is_plain
from sluiceway.converters.json.base64_text import from_base64
from sluiceway.converters.json.fast_reader import Unusual, node_reader
from sluiceway.converters.json.joined_payloads import parse_payloads
from sluiceway.data.instant import EARLIEST_MILLIS, LATEST_MILLIS
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from sluiceway.data.schema import INTEGER_BITS, Schema, Type
from sluiceway.errors import DataError
from sluiceway.java.dates.hybrid_calendar import DAY_MS

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    Build = Callable[[Sequence[Any]], AnyArray]
    """Returns the array of nodes. Raises NotColumnar and VALUE_ERRORS."""

pc: Any = pyarrow.compute  # its stubs do not know all arguments

_NULL = type(None)
_QUOTE = b'"'
_DOUBLE_DIGITS = 1 << 52
_MOMENTS: dict[str, tuple[pa.DataType, int, int]] = {
    DATE: (pa.int32(), EARLIEST_MILLIS // DAY_MS, LATEST_MILLIS // DAY_MS),
    TIME: (pa.int32(), 0, DAY_MS - 1),
    TIMESTAMP: (pa.int64(), EARLIEST_MILLIS, LATEST_MILLIS),
}
"""The integers that are dates and times in Python, by schema name; all others are Instants or errors."""


def column_reader(schema: Schema, *, use_defaults: bool = True) -> Callable[[AnyArray], AnyArray]:
    """Return the function from payloads, of which none is null, to an array of ``arrow_type(schema)``.

    Raises NotColumnar if the schema has no Arrow type. The function raises it, too.
    """
    arrow_type(schema)
    build = _builder(schema, use_defaults)
    is_text = schema.type is Type.STRING and logical(schema) is None

    def read(payloads: AnyArray) -> AnyArray:
        if is_text and (texts := plain_texts(payloads)) is not None:
            return texts
        try:
            nodes = parse_payloads(payloads, orjson.loads)
        except ValueError as error:
            raise NotColumnar(f"a payload that is not one JSON value: {error}", RowFormReason.ERROR) from error
        with refused_values(schema):
            return build(nodes)

    return read


def plain_texts(payloads: AnyArray) -> AnyArray | None:
    """Return the strings of payloads that are all strings without escapes, which need no parser; None for others."""
    quoted = pc.and_(pc.starts_with(payloads, _QUOTE), pc.ends_with(payloads, _QUOTE))
    if pc.all(quoted).as_py() is False or pc.min(pc.binary_length(payloads)).as_py() < len(_QUOTE * 2):
        return None
    texts: AnyArray = pc.binary_slice(payloads, len(_QUOTE), -len(_QUOTE))
    try:
        return texts.cast(pa.utf8()) if is_plain(data_of(texts)) else None
    except pa.ArrowInvalid:  # not UTF-8
        return None


def _builder(schema: Schema, use_defaults: bool) -> Build:
    """Return the function from nodes to the array of a schema."""
    default = schema.default if use_defaults else None
    build = _typed_builder(schema, use_defaults)
    if build is None:
        return _row_builder(schema, use_defaults)
    if default is not None:
        if not schema.type.primitive:
            return _row_builder(schema, use_defaults)
        filler = to_array(schema, [default])[0]
        return lambda nodes: pc.fill_null(build(nodes), filler)
    if schema.optional:
        return build

    def build_required(nodes: Sequence[Any]) -> AnyArray:
        array = build(nodes)
        if array.null_count:
            raise NotColumnar(f"{schema} is required, but has null values")
        return array

    return build_required


def _row_builder(schema: Schema, use_defaults: bool) -> Build:
    """Return the builder that reads value by value, for rare types."""
    read = node_reader(schema, use_defaults=use_defaults)

    def build(nodes: Sequence[Any]) -> AnyArray:
        try:
            values = [read(node) for node in nodes]
        except (Unusual, DataError) as error:
            raise NotColumnar(f"a value that is not exactly of {schema}: {error}") from error
        return to_array(schema, values)

    return build


def _typed_builder(schema: Schema, use_defaults: bool) -> Build | None:
    """Return the builder for nodes that may be null; None if the schema has no quick one."""
    name = logical(schema)
    if name is not None:
        return _decimals(schema) if name == DECIMAL else _moments(schema, name)
    if schema.type in INTEGER_BITS:
        return _integers(schema)
    if schema.type in (Type.BOOLEAN, Type.STRING):
        return _texts_or_booleans(schema)
    if schema.type is Type.BYTES:
        return _bytes
    if schema.type in (Type.FLOAT32, Type.FLOAT64):
        return _float64 if schema.type is Type.FLOAT64 else _float32
    if schema.type is Type.STRUCT:
        return _structs(schema, use_defaults) if schema.fields else None
    if schema.type is Type.ARRAY:
        return _lists(schema, use_defaults)
    return _maps(schema, use_defaults) if schema.key_schema and schema.key_schema.type is Type.STRING else None


def _check_types(nodes: Sequence[Any], *allowed: type) -> set[type]:
    """Return the types of nodes. Raises NotColumnar for one that is not null or exactly of an allowed type."""
    found = set(map(type, nodes))
    if not found <= {_NULL, *allowed}:
        raise NotColumnar("nodes of other types")
    return found


def _integers(schema: Schema) -> Build:
    kind = arrow_type(schema)

    def build(nodes: Sequence[Any]) -> AnyArray:
        _check_types(nodes, int)  # Arrow would take floats, too
        return _integer_array(nodes, kind)

    return build


def _integer_array(nodes: Sequence[Any], kind: pa.DataType) -> AnyArray:
    try:
        return pa.array(nodes, kind)
    except OverflowError as error:
        raise NotColumnar(f"an integer of more than 64 bits: {error}") from error


def _texts_or_booleans(schema: Schema) -> Build:
    kind = arrow_type(schema)

    def build(nodes: Sequence[Any]) -> AnyArray:
        try:
            return pa.array(nodes, kind)
        except (*VALUE_ERRORS, pa.ArrowTypeError) as error:  # faster than to look at the types of nodes before
            raise NotColumnar(f"a node of another type than {schema}: {error}") from error

    return build


def _moments(schema: Schema, name: str) -> Build:
    kind = arrow_type(schema)
    integer, earliest, latest = _MOMENTS[name]

    def build(nodes: Sequence[Any]) -> AnyArray:
        _check_types(nodes, int)
        array = _integer_array(nodes, integer)
        found: Any = pc.min_max(array).as_py()
        if found["min"] is not None and not earliest <= found["min"] <= found["max"] <= latest:
            raise NotColumnar(f"a {name} that Python's types cannot represent")
        return array.view(kind)

    return build


def _decimals(schema: Schema) -> Build:
    """Return the builder of decimals in base64, which creates no Python decimals."""
    kind: Any = arrow_type(schema)
    width, limit = kind.byte_width, 10**kind.precision
    read_rows = _row_builder(schema.replace(optional=True, default=None), use_defaults=False)

    def build(nodes: Sequence[Any]) -> AnyArray:
        if int in _check_types(nodes, str, int):
            return read_rows(nodes)
        numbers = [0 if data is None else int.from_bytes(data, "big", signed=True) for data in _decoded(nodes)]
        if "" in nodes or any(not -limit < number < limit for number in numbers):
            raise NotColumnar("a decimal without digits, or with more than its type has")
        data = b"".join([number.to_bytes(width, "little", signed=True) for number in numbers])
        valid = pa.array([node is not None for node in nodes], pa.bool_()).buffers()[1] if None in nodes else None
        return pa.Array.from_buffers(kind, len(numbers), [valid, pa.py_buffer(data)])

    return build


def _bytes(nodes: Sequence[Any]) -> AnyArray:
    _check_types(nodes, str)
    return pa.array(_decoded(nodes), pa.binary())


def _decoded(nodes: Sequence[str | None]) -> list[bytes | None]:
    try:
        return [None if node is None else from_base64(node) for node in nodes]
    except ValueError as error:
        raise NotColumnar(f"text that is not base64: {error}", RowFormReason.ERROR) from error


def _float64(nodes: Sequence[Any]) -> AnyArray:
    if int in _check_types(nodes, float, int):
        nodes = _floats(nodes)
    array: AnyArray = pc.add(pa.array(nodes, pa.float64()), 0.0)  # adding zero converts -0.0 to 0.0
    return array


def _float32(nodes: Sequence[Any]) -> AnyArray:
    if int in _check_types(nodes, float, int):
        if any(type(node) is int and not -_DOUBLE_DIGITS <= node < _DOUBLE_DIGITS for node in nodes):
            raise NotColumnar("an integer that a double would round")
        nodes = _floats(nodes)
    singles = pa.array(nodes, pa.float64()).cast(pa.float32(), safe=False)
    array: AnyArray = pc.add(singles, pa.scalar(0.0, pa.float32()))
    return array


def _floats(nodes: Sequence[Any]) -> list[float | None]:
    try:
        return [None if node is None else node + 0.0 for node in nodes]
    except OverflowError as error:
        raise NotColumnar(f"an integer that is too large for a double: {error}") from error


def _structs(schema: Schema, use_defaults: bool) -> Build:
    names = [field.name for field in schema.fields]
    builders = [_builder(field.schema, use_defaults) for field in schema.fields]

    def columns(nodes: Sequence[Any]) -> list[list[Any]]:
        try:
            return [[node[name] for node in nodes] for name in names]
        except KeyError:  # a missing field is null
            return [[node.get(name) for node in nodes] for name in names]

    def build(nodes: Sequence[Any]) -> AnyArray:
        found = _check_types(nodes, dict)
        present = [node for node in nodes if node is not None] if _NULL in found else nodes
        arrays = [in_field(*part) for part in zip(names, builders, columns(present), strict=True)]
        structs = struct_array(schema, arrays)
        return structs if present is nodes else structs.take(_positions(nodes))

    return build


def _positions(nodes: Sequence[Any]) -> AnyArray:
    """Return the index of each node among those that are not null."""
    position = iter(range(len(nodes)))
    return pa.array([None if node is None else next(position) for node in nodes], pa.int64())


def _lists(schema: Schema, use_defaults: bool) -> Build:
    assert schema.value_schema is not None  # noqa: S101 (an array schema has one)
    build_items = _builder(schema.value_schema, use_defaults)

    def build(nodes: Sequence[Any]) -> AnyArray:
        _check_types(nodes, list)
        return list_array(schema, offsets(nodes), build_items(flat(nodes)), null_mask(nodes))

    return build


def _maps(schema: Schema, use_defaults: bool) -> Build:
    """Return the builder of maps with string keys, which are JSON objects."""
    assert schema.value_schema is not None  # noqa: S101 (a map schema has one)
    build_items = _builder(schema.value_schema, use_defaults)

    def build(nodes: Sequence[Any]) -> AnyArray:
        _check_types(nodes, dict)
        keys = pa.array(flat(nodes), pa.utf8())
        items = build_items(flat(None if node is None else node.values() for node in nodes))
        return map_array(schema, offsets(nodes), keys, items, null_mask(nodes))

    return build

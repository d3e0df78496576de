"""Columns as the text of Java's ``String.valueOf``: the columnar form of ``java_text``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from sluiceway.api.columns import NotColumnar
from sluiceway.columns.arrays import to_values
from sluiceway.columns.arrow_schema import logical
from sluiceway.data import Schema, Type, java_text

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

_LAST = pa.array([""], pa.utf8())
_INTEGERS = frozenset({Type.INT8, Type.INT16, Type.INT32, Type.INT64})


def java_texts(schema: Schema, array: AnyArray) -> pa.StringArray:
    """Return ``java_text(value, schema)`` for each value, null for null. Raises NotColumnar if the text is over 2 GB."""
    if logical(schema) is None:
        if schema.type is Type.STRING:
            return _one(array)
        if schema.type in _INTEGERS or schema.type is Type.BOOLEAN:
            return _one(array.cast(pa.utf8()))
        if schema.type is Type.STRUCT and schema.fields:
            return _struct_texts(schema, array)
    if pa.types.is_temporal(array.type):
        return _moment_texts(schema, array)
    return _value_texts(schema, array)


def _moment_texts(schema: Schema, array: AnyArray) -> pa.StringArray:
    """Return the text of dates and times, which have seconds at most, computed once for each second."""
    if pa.types.is_timestamp(array.type):
        millis: Any = array.view(pa.int64())
        earliest = pc.min(millis).as_py()
        if earliest is not None and earliest >= 0:  # division truncates
            array = pc.multiply(pc.divide(millis, 1000), 1000).view(array.type)
    encoded: Any = array.dictionary_encode()
    return _one(_value_texts(schema, encoded.dictionary).take(encoded.indices))


def _value_texts(schema: Schema, array: AnyArray) -> pa.StringArray:
    texts = [None if value is None else java_text(value, schema) for value in to_values(schema, array)]
    return _one(pa.array(texts, pa.utf8()))


def lines(texts: pa.StringArray) -> pa.Buffer:
    """Return texts, the text ``null`` for null, each with a line feed, as UTF-8. Raises NotColumnar if that is over 2 GB."""
    parts: Any = [texts.fill_null("null") if texts.null_count else texts, _LAST]
    try:
        all_texts = pa.ListArray.from_arrays(pa.array([0, len(texts) + 1], pa.int32()), pa.concat_arrays(parts))
        return utf8_of(_one(pc.binary_join(all_texts, "\n")))
    except (pa.ArrowCapacityError, pa.ArrowInvalid) as error:
        raise NotColumnar("The text is too large for one Arrow array") from error


def utf8_of(texts: pa.StringArray) -> pa.Buffer:
    """Return the texts without separators."""
    _, offsets, data = texts.buffers()
    assert offsets is not None  # noqa: S101 (a string array has offsets)
    if data is None or not len(texts):
        return pa.py_buffer(b"")
    ends = memoryview(offsets).cast("i")
    start, end = ends[texts.offset], ends[texts.offset + len(texts)]
    return data.slice(start, end - start)


def _struct_texts(schema: Schema, array: AnyArray) -> pa.StringArray:
    """Return the text of structs, without null fields: ``Struct{a=1,b=x}``."""
    assert isinstance(array, pa.StructArray)  # noqa: S101 (the type of a struct schema)
    texts = [java_texts(field.schema, array.field(field.index)) for field in schema.fields]
    names = [field.name for field in schema.fields]
    if any(text.null_count for text in texts):
        # Not null_handling="skip", which returns nothing at all for a struct whose fields are all null.
        pairs = [_joined(f",{name}=", text).fill_null("") for name, text in zip(names, texts, strict=True)]
        structs = _joined("Struct{", pc.utf8_slice_codeunits(_joined(*pairs), 1), "}")
    else:
        pieces: list[object] = []
        for name, text in zip(names, texts, strict=True):
            pieces += [f"{',' if pieces else 'Struct{'}{name}=", text]
        structs = _joined(*pieces, "}")
    return _one(pc.if_else(array.is_valid(), structs, None) if array.null_count else structs)


def _joined(*pieces: object) -> pa.StringArray:
    """Return the pieces, texts or arrays of them, joined element by element."""
    join: Any = pc.binary_join_element_wise  # its stubs allow one array only
    return _one(join(*pieces, ""))


def _one(array: object) -> pa.StringArray:
    if not isinstance(array, pa.StringArray):  # a ChunkedArray, for more than 2 GB
        raise NotColumnar("The text is too large for one Arrow array")
    return array

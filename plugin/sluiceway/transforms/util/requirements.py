"""Checks the values that transforms require, with Connect's error messages (Connect's ``Requirements``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluiceway.api import SinkRecord
from sluiceway.api.transform import ConnectRecord
from sluiceway.data import Schema, Struct, Type
from sluiceway.data import class_names as java_classes
from sluiceway.errors import DataError

_NUMBERS = {
    Type.INT8: "java.lang.Byte",
    Type.INT16: "java.lang.Short",
    Type.INT32: "java.lang.Integer",
    Type.INT64: "java.lang.Long",
    Type.FLOAT32: "java.lang.Float",
    Type.FLOAT64: "java.lang.Double",
}


def java_class(value: Any, schema: Schema | None = None) -> str:
    """Return the name of a value's Java class in Connect; the schema gives the width of numbers."""
    if schema is not None and isinstance(value, (int, float)) and not isinstance(value, bool):
        return _NUMBERS.get(schema.type) or java_classes.java_class(value)
    return java_classes.java_class(value)


def require_map(value: Any, purpose: str) -> Mapping[Any, Any]:
    """Return a schemaless value that is a map. Raises DataError for any other."""
    if isinstance(value, Mapping) and not isinstance(value, Struct):
        return value
    raise DataError(f"Only Map objects supported in absence of schema for [{purpose}], found: {java_class(value)}")


def require_struct(value: Any, schema: Schema | None, purpose: str) -> Struct:
    """Return a value that is a Struct. Raises DataError for any other. ``schema`` is the record's."""
    if isinstance(value, Struct):
        return value
    raise DataError(f"Only Struct objects supported for [{purpose}], found: {java_class(value, schema)}")


def require_sink_record(record: ConnectRecord, purpose: str) -> SinkRecord:
    """Return a sink record. Raises DataError for a source record, which has no offset in Kafka yet."""
    if isinstance(record, SinkRecord):
        return record
    name = "org.apache.kafka.connect.source.SourceRecord"
    raise DataError(f"Only SinkRecord supported for [{purpose}], found: {name}")

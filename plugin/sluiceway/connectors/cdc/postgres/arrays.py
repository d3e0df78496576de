"""The fields of arrays by the type of their elements. No I/O.

Debezium reads arrays through JDBC, in the log too: their elements are those of its snapshots. Elements that it cannot convert are
null, among them the inner arrays of several dimensions.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sluiceway.connectors.cdc.columns import FieldType, with_schema
from sluiceway.connectors.cdc.numbers import binary_field
from sluiceway.connectors.cdc.postgres.text import parse_array
from sluiceway.connectors.cdc.postgres.type_info import TypeInfo, TypeSettings
from sluiceway.data import Schema, Type

_OMITTED = frozenset({"interval", "money", "name", "point", "refcursor", "varbit", "xml"})
"""Debezium's records leave out arrays of these types."""
_REQUIRED = frozenset({"box", "circle", "line", "lseg", "path", "polygon", "tsvector"})
"""Debezium's elements of these types, and of enums, are required: an array with a null among them is null."""
_TEXTS = frozenset({"text", "varchar", "bpchar", "json", "jsonb"})
_NUMBERS = frozenset({"int4", "int8", "date"})
_DATE_SCHEMA = "io.debezium.time.Date"


def vector_field(inner: FieldType, settings: TypeSettings) -> FieldType:
    """Return the type of a vector of the catalog, ``1 2 3``. Debezium's are empty."""
    convert = with_schema(inner.convert, inner.schema)
    return FieldType(
        Schema.array(inner.schema), lambda text: [convert(each) for each in text.split()] if settings.correct else [], []
    )


def array_field(element: TypeInfo, known: FieldType | None, delimiter: str, settings: TypeSettings) -> FieldType | None:
    """Return the type of an array, or None if records leave it out.

    Args:
        known: the field type of the element; None for one that records do not know.
    """
    if not settings.correct and element.name in _OMITTED:
        return None
    if known is None:
        return _unknown(delimiter, settings)
    if element.name == "bit" and not settings.correct:  # Debezium takes them for single values
        return replace(known, convert=lambda _text: None)
    required = not settings.correct and (element.name in _REQUIRED or bool(element.labels))
    items = known.schema.replace(optional=not required)
    convert = known.convert if settings.correct or known.snapshot is None else known.snapshot
    return FieldType(
        Schema.array(items),
        _converter(with_schema(convert, items), delimiter, required=required),
        [],
        _unavailable(element.name, items, settings),
    )


def _unknown(delimiter: str, settings: TypeSettings) -> FieldType | None:
    """Return the type of an array of an unknown type: nothing, or the bytes of the elements' texts."""
    if not settings.include_unknown:
        return None
    inner = binary_field(settings.binary_mode, lambda raw: str(raw).encode(), settings.placeholder)
    items = inner.schema.replace(optional=settings.correct)
    return FieldType(Schema.array(items), _converter(inner.convert, delimiter, required=not settings.correct), [])


def _converter(convert: Callable[[str], Any], delimiter: str, *, required: bool) -> Callable[[str], list[Any] | None]:
    def array(text: str) -> list[Any] | None:
        found = [None if each is None or isinstance(each, list) else convert(each) for each in parse_array(text, delimiter)]
        return None if required and None in found else found

    return array


def _unavailable(element: str, items: Schema, settings: TypeSettings) -> list[Any] | None:
    """Return what stands for an array that the log does not contain; None for types that Debezium has no array for."""
    if element == "uuid":
        return [str(uuid.UUID(bytes=hashlib.md5(settings.placeholder, usedforsecurity=False).digest(), version=3))]
    if items.type is Type.STRING and (element in _TEXTS or settings.correct):
        return [settings.placeholder_text]
    if items.type is Type.BYTES and element == "bytea":
        return [settings.placeholder]
    number = items.type in (Type.INT16, Type.INT32, Type.INT64) and items.name in (None, _DATE_SCHEMA)
    if number and (element in _NUMBERS or settings.correct):
        return [byte - 256 if byte > 127 else byte for byte in settings.placeholder]  # Java's bytes have signs
    return None

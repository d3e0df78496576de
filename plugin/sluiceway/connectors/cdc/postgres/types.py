"""Resolves PostgreSQL's types to the fields of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from sluiceway.connectors.cdc.columns import FieldType, with_schema
from sluiceway.connectors.cdc.postgres import fields
from sluiceway.connectors.cdc.postgres.text import parse_array
from sluiceway.connectors.cdc.postgres.type_info import Settings, TypeInfo
from sluiceway.data import Schema, Type

Query = Callable[[str], Iterable[tuple[Any, ...]]]

_TYPES = """
select t.oid, t.typname, t.typtype::text, t.typbasetype, t.typtypmod,
       case when t.typcategory = 'A' then t.typelem else 0 end, coalesce(e.typdelim::text, ',')
from pg_catalog.pg_type t left join pg_catalog.pg_type e on e.oid = t.typelem
"""
_LABELS = "select enumtypid, enumlabel from pg_catalog.pg_enum order by enumtypid, enumsortorder"
_VECTORS = frozenset({"int2vector", "oidvector"})


@dataclass(frozen=True, slots=True)
class _Type:
    name: str
    kind: str
    base: int
    typmod: int
    element: int
    delimiter: str
    labels: tuple[str, ...] = ()


class TypeRegistry:
    """The types of a database, read at the start and again for a type that was created since."""

    def __init__(self, query: Query, settings: Settings) -> None:
        self._query = query
        self._settings = settings
        self._types: dict[int, _Type] = {}
        self._array_labels: dict[int, tuple[str, ...]] = {}
        self.load()

    def load(self) -> None:
        """Read all types again."""
        labels: dict[int, list[str]] = {}
        for oid, label in self._query(_LABELS):
            labels.setdefault(int(oid), []).append(label)
        for oid, name, kind, base, typmod, element, delimiter in self._query(_TYPES):
            found = tuple(labels.get(int(oid), ()))
            self._types[int(oid)] = _Type(name, kind, int(base), int(typmod), int(element), delimiter, found)
            if self._settings.correct:
                self._array_labels[int(oid)] = found
            else:  # Debezium's arrays of enums keep the labels that they had first
                self._array_labels.setdefault(int(oid), found)

    @property
    def correct(self) -> bool:
        """Whether values are right where Debezium's are not."""
        return self._settings.correct

    def labels(self, oid: int) -> tuple[str, ...]:
        """Return the labels of an enum, or none for another type."""
        return self._get(oid).labels

    def name(self, oid: int) -> str:
        return self._get(oid).name

    def resolve(self, oid: int, typmod: int) -> tuple[TypeInfo, FieldType | None]:
        """Return a type's description, and its field type or None if records leave it out."""
        found = self._get(oid)
        while found.kind == "d":
            typmod = found.typmod if typmod < 0 else typmod
            found = self._get(found.base)
        info = TypeInfo(found.name, typmod, found.labels)
        if found.element:
            return info, self._array(found, typmod)
        return info, self._scalar(info, found)

    def _get(self, oid: int) -> _Type:
        if oid not in self._types:
            self.load()
        return self._types.get(oid) or _Type(f"oid {oid}", "b", 0, -1, 0, ",")

    def _scalar(self, info: TypeInfo, found: _Type) -> FieldType | None:
        if found.kind == "e":
            return fields.enum_field(found.labels, self._settings)
        if found.kind == "b" or found.kind == "r":
            known = fields.scalar_field(info, self._settings, ranges=found.kind == "r")
            if known is not None:
                return known
        return fields.unknown_field(self._settings)

    def _array(self, found: _Type, typmod: int) -> FieldType | None:
        element = self._get(found.element)
        inner_typmod, element_oid = typmod, found.element
        while element.kind == "d":
            inner_typmod = element.typmod if inner_typmod < 0 else inner_typmod
            element_oid, element = element.base, self._get(element.base)
        if element.kind == "e":
            inner = fields.enum_field(self._array_labels.get(element_oid, ()), self._settings)
            return _array_field(inner, inner.schema, found.delimiter, self._settings)
        info = TypeInfo(element.name, inner_typmod, ())
        if element.name in ("bit", "varbit") and not self._settings.correct:  # Debezium takes them for single values
            return replace(fields.bits_field(info, self._settings), convert=lambda _text: None)
        if element.name not in fields.ARRAY_ELEMENTS and element.kind != "r":
            return fields.unknown_field(self._settings)
        scalar = fields.scalar_field(info, self._settings, ranges=element.kind == "r")
        if scalar is None:
            return fields.unknown_field(self._settings)
        if found.name in _VECTORS:
            return _vector_field(scalar, self._settings)
        return _array_field(scalar, scalar.schema.replace(optional=True), found.delimiter, self._settings)


def _vector_field(inner: FieldType, settings: Settings) -> FieldType:
    """Return the type of a vector of the catalog, ``1 2 3``. Debezium's are empty."""
    convert = with_schema(inner.convert, inner.schema)
    return FieldType(
        Schema.array(inner.schema), lambda text: [convert(each) for each in text.split()] if settings.correct else [], [], []
    )


def _array_field(inner: FieldType, items: Schema, delimiter: str, settings: Settings) -> FieldType:
    convert = with_schema(inner.convert, items)

    def array(text: str) -> list[Any]:
        # Debezium's elements of the outer dimension are null if there are several dimensions.
        return [None if value is None or isinstance(value, list) else convert(value) for value in parse_array(text, delimiter)]

    def snapshot_array(text: str) -> list[Any]:
        snapshot = inner.snapshot or convert
        return [None if value is None or isinstance(value, list) else snapshot(value) for value in parse_array(text, delimiter)]

    unavailable = [inner.unavailable] if items.type is Type.STRING or items.type is Type.BYTES else []
    if not unavailable and settings.placeholder:
        unavailable = list(settings.placeholder) if items.type in (Type.INT16, Type.INT32, Type.INT64) else []
    return FieldType(Schema.array(items), array, [], unavailable, snapshot_array if inner.snapshot else None)

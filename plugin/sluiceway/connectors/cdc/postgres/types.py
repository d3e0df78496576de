"""Resolves PostgreSQL's types to the fields of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from sluiceway.connectors.cdc.columns import FieldType
from sluiceway.connectors.cdc.postgres import arrays, fields
from sluiceway.connectors.cdc.postgres.type_info import TypeInfo, TypeSettings

Query = Callable[[str], Iterable[tuple[Any, ...]]]

_TYPES = """
select t.oid, t.typname, t.typtype::text, t.typbasetype, t.typtypmod,
       case when t.typcategory = 'A' then t.typelem else 0 end, coalesce(e.typdelim::text, ',')
from pg_catalog.pg_type t left join pg_catalog.pg_type e on e.oid = t.typelem
"""
_LABELS = "select enumtypid, enumlabel from pg_catalog.pg_enum order by enumtypid, enumsortorder"
_VECTORS = frozenset({"int2vector", "oidvector"})
_RANGES = frozenset({"int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange"})
"""The ranges that Debezium knows."""


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

    def __init__(self, query: Query, settings: TypeSettings) -> None:
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
        return self._known(info, found) or fields.unknown_field(self._settings)

    def _known(self, info: TypeInfo, found: _Type) -> FieldType | None:
        """Return the field type of a single value, or None if records do not know the type."""
        if found.kind == "e":
            return fields.enum_field(info.labels, self._settings)
        if found.kind not in ("b", "r"):
            return None
        ranges = found.kind == "r" and (self.correct or found.name in _RANGES)
        return fields.scalar_field(info, self._settings, ranges=ranges)

    def _array(self, found: _Type, typmod: int) -> FieldType | None:
        element, oid = self._get(found.element), found.element
        while self.correct and element.kind == "d":  # Debezium does not know arrays of domains
            typmod = element.typmod if typmod < 0 else typmod
            oid, element = element.base, self._get(element.base)
        info = TypeInfo(element.name, typmod, self._array_labels.get(oid, ()))
        known = self._known(info, element)
        if found.name in _VECTORS and known is not None:
            return arrays.vector_field(known, self._settings)
        return arrays.array_field(info, known, found.delimiter, self._settings)

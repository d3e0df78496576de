"""Struct: a value with a struct schema, used like a dict (Connect's ``Struct``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sluiceway.data.schema import Schema, Type
from sluiceway.data.text import java_text
from sluiceway.errors import DataError


class Struct(Mapping[str, Any]):
    """Values for the fields of a struct schema, in the schema's order; a missing one is None or the field's default."""

    __slots__ = ("schema", "values_")

    def __init__(self, schema: Schema, values: Mapping[str, Any] | None = None) -> None:
        if schema.type is not Type.STRUCT:
            raise DataError(f"Not a struct schema: {schema}")
        self.schema = schema
        self.values_: list[Any] = [None] * len(schema.fields)
        for name, value in (values or {}).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        self.values_[self._index(name)] = value

    def put(self, name: str, value: Any) -> Struct:
        """Set a field and return the struct, for chaining."""
        self[name] = value
        return self

    def __getitem__(self, name: str) -> Any:
        index = self._index(name)
        value = self.values_[index]
        return self.schema.fields[index].schema.default if value is None else value

    def get_without_default(self, name: str) -> Any:
        """Return what was put, or None: no default is filled in."""
        return self.values_[self._index(name)]

    def _index(self, name: str) -> int:
        field = self.schema.field(name)
        if field is None:
            raise DataError(f"{name} is not a valid field name")
        return field.index

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in self.schema.fields)

    def __len__(self) -> int:
        return len(self.values_)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.schema.field(name) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.schema == other.schema and self.values_ == other.values_

    def __hash__(self) -> int:
        return hash((self.schema, len(self.values_)))

    def __repr__(self) -> str:
        """As Connect prints it, null fields left out: ``Struct{a=1,b=x}``."""
        pairs = zip(self.schema.fields, self.values_, strict=True)
        return "Struct{" + ",".join(f"{field.name}={java_text(value)}" for field, value in pairs if value is not None) + "}"

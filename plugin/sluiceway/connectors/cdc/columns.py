"""Describes columns: their semantic types, masks and null handling. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sluiceway.connectors.cdc.filters import Matcher, matcher
from sluiceway.connectors.cdc.json_forms import JsonForm
from sluiceway.data import Schema, Struct, Type
from sluiceway.java.serialization import serialized_string

Convert = Callable[[Any], Any]

_UNMASKED = frozenset({"io.debezium.data.Uuid"})


class _Unavailable:
    """The value of a column that the log does not contain, because it did not change."""

    def __repr__(self) -> str:
        return "UNAVAILABLE"

    def __format__(self, _spec: str) -> str:
        raise ValueError("The log does not contain this value.")  # generated code must not write it


UNAVAILABLE = _Unavailable()


@dataclass(frozen=True, slots=True)
class FieldType:
    """The conversion of a column's values to a record's.

    ``schema`` is the schema of a required field without default. ``convert`` receives a value as the log or a query has it,
    never None. ``snapshot`` is used instead for rows of snapshots, where Debezium's values differ. ``fallback`` stands for null
    in a required column without default, ``unavailable`` for a value that the log does not contain. ``json`` and
    ``snapshot_json`` write as JSON what ``convert`` and ``snapshot`` return, but faster; None if there is no such form.
    """

    schema: Schema
    convert: Convert
    fallback: Any = None
    unavailable: Any = None
    snapshot: Convert | None = None
    json: JsonForm | None = None
    snapshot_json: JsonForm | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table. ``field`` is None for a type that records leave out.

    ``default`` is a value of the field's schema. ``type_name`` is the type in the words of the database, which
    ``datatype.propagate.source.type`` matches; ``type_label`` is the type in the parameters of that key.
    """

    name: str
    field: FieldType | None
    optional: bool
    type_name: str = ""
    type_label: str = ""
    length: int | None = None
    scale: int | None = None
    default: Any = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Mutation:
    """A mask: how it changes values, and the parameters it adds to the schema. ``convert`` also receives None."""

    convert: Convert
    parameters: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False


class ColumnRules:
    """The masks and propagated types of a config, by column."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._masks: list[tuple[Matcher, Mutation]] = []
        for key, value in config.items():
            mutation = _mutation(key)
            matches = None if mutation is None else matcher(value)
            if mutation is not None and matches is not None:
                self._masks.append((matches, mutation))
        self._columns = matcher(config.get("column.propagate.source.type"))
        self._types = matcher(config.get("datatype.propagate.source.type"))

    def mutation(self, table: str, column: Column) -> Mutation | None:
        """Return the first mask of a column, which applies to text only but UUIDs. A hash is cut to the column's length."""
        if column.field is None or column.field.schema.type is not Type.STRING or column.field.schema.name in _UNMASKED:
            return None
        name, length = f"{table}.{column.name}", column.length
        found = next((mutation for matches, mutation in self._masks if matches(name)), None)
        if found is None or not found.cut or not length:
            return found
        convert = found.convert
        return Mutation(lambda value: value if value is None else convert(value)[:length], found.parameters)

    def source_parameters(self, table: str, column: Column) -> dict[str, str]:
        """Return the schema parameters that describe a column's type in the database."""
        by_name = self._columns is not None and self._columns(f"{table}.{column.name}")
        by_type = self._types is not None and self._types(f"{table}.{column.type_name}")
        if not by_name and not by_type:
            return {}
        found = {"__debezium.source.column.type": column.type_label.upper()}
        if column.length is not None:
            found["__debezium.source.column.length"] = str(column.length)
        if column.scale is not None:
            found["__debezium.source.column.scale"] = str(column.scale)
        found["__debezium.source.column.name"] = column.name
        if column.comment:
            found["__debezium.source.column.comment"] = column.comment
        return found


def _mutation(key: str) -> Mutation | None:
    """Return the mask that a key defines, or None for another key."""
    parts = key.split(".")
    if parts[:2] == ["column", "truncate"] and len(parts) == 5 and parts[2] == "to" and parts[3].isdigit():
        return _truncation(int(parts[3]))
    if parts[:3] == ["column", "mask", "with"] and len(parts) == 5 and parts[3].isdigit():
        text = "*" * int(parts[3])
        return Mutation(lambda _value: text, {"masked": "true"})
    for prefix in ("column.mask.hash.", "column.mask.hash.v2."):
        plain = prefix.endswith("v2.")
        if key.startswith(prefix) and ".with.salt." in key and (plain or not key.startswith("column.mask.hash.v2.")):
            algorithm, salt = key[len(prefix) :].split(".with.salt.", 1)
            return _hashing(algorithm, salt, plain=plain)
    return None


def _truncation(length: int) -> Mutation:
    def truncated(value: Any) -> Any:
        if not isinstance(value, str) or len(value) * 2 <= length:
            return value
        # Java counts the units of UTF-16. A pair of units is never cut.
        return value[:length].encode("utf-16-le", "surrogatepass")[: 2 * length].decode("utf-16-le", "ignore")

    return Mutation(truncated, {"truncateLength": str(length)})


def _hashing(algorithm: str, salt: str, *, plain: bool) -> Mutation:
    name = algorithm.replace("-", "").lower()

    def hashed(value: Any) -> Any:
        if value is None:
            return None
        digest = hashlib.new(name)
        digest.update(salt.encode())
        digest.update(value.encode() if plain else serialized_string(value))
        return digest.hexdigest()

    return Mutation(hashed, {"masked": "true"}, cut=True)


def with_schema(convert: Convert, schema: Schema) -> Convert:
    """Return a conversion whose structs have this very schema, as converters demand."""
    if schema.type is not Type.STRUCT:
        return convert

    def renamed(raw: Any) -> Any:
        value = convert(raw)
        return Struct.of(schema, value.values_) if isinstance(value, Struct) else value

    return renamed


def compiled(convert: Convert, *, on_null: Any, unavailable: Any, mutation: Mutation | None = None) -> Convert:
    """Return the function from a raw value, None or UNAVAILABLE to a field's value."""

    def apply(raw: Any) -> Any:
        if raw is None:
            return on_null
        if raw is UNAVAILABLE:
            return unavailable
        return convert(raw)

    if mutation is None:
        return apply
    change = mutation.convert
    return lambda raw: change(apply(raw))

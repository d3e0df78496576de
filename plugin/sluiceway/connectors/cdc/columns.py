"""Describes columns: their semantic types, masks and null handling. No I/O."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from sluiceway.connectors.cdc.filters import Matcher, check_patterns, matcher
from sluiceway.connectors.cdc.json_forms import JsonForm
from sluiceway.data import Schema, Struct, Type
from sluiceway.errors import ConfigError
from sluiceway.java.serialization import serialized_string

log = logging.getLogger(__name__)

Convert = Callable[[Any], Any]

_UNMASKED = (
    "Debezium's masks change character types only, and its hashes nothing in a column whose type is propagated; "
    "sluiceway.cdc.compat=correct masks all text."
)

_NO_VALUE = (
    "Table %s: records cannot have a value of the column %s of type %s, which is NOT NULL. It becomes null, which converters "
    "refuse or replace by the column's default. Change the value, or set another handling mode of the type, such as "
    "decimal.handling.mode=string or time.precision.mode=microseconds."
)


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

    ``default`` is a value of the field's schema. ``type_name`` is the type in the words of the database. ``length`` and ``scale``
    are Debezium's, and so is ``character``: whether it is a character type, which masks apply to.
    """

    name: str
    field: FieldType | None
    optional: bool
    type_name: str = ""
    length: int | None = None
    scale: int | None = None
    character: bool = False
    default: Any = None
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Mutation:
    """What a rule does to a column: the parameters it adds to the schema, and how it changes values, also None, if at all."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    convert: Convert | None = None
    masks: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    """An option that changes columns: those that ``names`` matches, or, ``by_type``, those whose type it matches."""

    names: Matcher
    mutation: Callable[[Column, bool], Mutation]
    by_type: bool = False
    masks: bool = False

    def matches(self, table: str, column: Column) -> bool:
        return self.names(f"{table}.{column.type_name if self.by_type else column.name}")


class ColumnRules:
    """The masks and propagated types of a config, by column.

    Of the options that match a column, Debezium obeys the first in this order: truncations, masks of asterisks, propagated types,
    hashes. Its masks leave values that are not of a character type. With ``correct``, all options that match a column apply, and
    masks to all text.
    """

    def __init__(self, config: Mapping[str, str], *, correct: bool) -> None:
        self._correct = correct
        self._rules = list(_rules(config))
        self._warned: dict[str, str] = {}

    def mutation(self, table: str, column: Column) -> Mutation:
        """Return what the options do to a column."""
        found = [rule.mutation(column, self._correct) for rule in self._rules if rule.matches(table, column)]
        if not self._correct:
            return found[0] if found else Mutation()
        changing = next((each for each in found if each.convert is not None), Mutation())
        parameters = {name: value for each in found for name, value in each.parameters.items()}
        return Mutation(parameters, changing.convert, changing.masks)

    def unmasked(self, table: str, columns: Sequence[Column]) -> list[str]:
        """Return the names of the columns that a mask is meant for, and whose values it leaves."""
        found = [column for column in columns if any(rule.masks and rule.matches(table, column) for rule in self._rules)]
        return [column.name for column in found if column.field is not None and not self.mutation(table, column).masks]

    def warn_of_unmasked(self, table: str, columns: Sequence[Column]) -> None:
        """Log these names, once for each table while they are the same."""
        names = ", ".join(self.unmasked(table, columns))
        if names and names != self._warned.get(table):
            log.warning("Table %s: masks leave the values of these columns as they are: %s. %s", table, names, _UNMASKED)
        self._warned[table] = names


def _rules(config: Mapping[str, str]) -> Iterator[_Rule]:
    """Yield a config's rules in Debezium's order."""
    for option, rule in _KINDS:
        pattern = re.compile(_pattern(option))
        for key, value in config.items():
            found = pattern.fullmatch(key)
            names = matcher(value) if found is not None else None
            if found is not None and names is not None:
                yield rule(names, *found.groups())


def is_rule(key: str) -> bool:
    """Tell whether a key of a config is one that changes columns."""
    return any(re.fullmatch(_pattern(option), key) for option, _ in _KINDS)


def rule_problem(key: str, value: str) -> str | None:
    """Return what is wrong with a key that begins like one that cuts or masks columns, which would have their whole values."""
    if not key.startswith(("column.mask.", "column.truncate.")):
        return None
    try:
        check_patterns(key, value)
        list(_rules({key: value}))
    except ConfigError as error:
        return str(error)
    return None if is_rule(key) else f"There is no such option. Use one of {', '.join(option for option, _ in _KINDS)}"


def _truncation(names: Matcher, length: str) -> _Rule:
    most = int(length)

    def truncated(value: Any) -> Any:
        if not isinstance(value, str) or len(value) * 2 <= most:
            return value[:most] if isinstance(value, bytes) else value
        # Java counts the units of UTF-16. A pair of units is never cut.
        return value[:most].encode("utf-16-le", "surrogatepass")[: 2 * most].decode("utf-16-le", "ignore")

    def mutation(column: Column, _correct: bool) -> Mutation:
        if column.length is not None and column.length <= most:
            return Mutation()
        schema = None if column.field is None else column.field.schema
        cuts = schema is not None and (schema.type is Type.STRING or (schema.type is Type.BYTES and schema.name is None))
        return Mutation({"truncateLength": length}, truncated if cuts else None)

    return _Rule(names, mutation)


def _asterisks(names: Matcher, length: str) -> _Rule:
    text = "*" * int(length)
    return _mask(names, lambda _column: lambda _value: text)


def _hashing(names: Matcher, algorithm: str, salt: str, *, plain: bool = False) -> _Rule:
    name = _digest_name(algorithm)

    def hashed(value: Any) -> Any:
        if value is None:
            return None
        digest = hashlib.new(name)
        digest.update(salt.encode())
        digest.update(value.encode() if plain else serialized_string(value))
        return digest.hexdigest()

    def cut(length: int) -> Convert:
        return lambda value: None if value is None else hashed(value)[:length]

    return _mask(names, lambda column: cut(column.length) if column.length else hashed)


def _digest_name(algorithm: str) -> str:
    """Return Python's name of a digest of Java's. Raises ConfigError for an unknown one."""
    found = algorithm.lower().replace("/", "_")
    name = found.replace("-", "_") if found.startswith("sha3") else _ALIASES.get(found, found.replace("-", ""))
    if name not in hashlib.algorithms_available or name.startswith("shake"):
        raise ConfigError(f"Unknown algorithm {algorithm} of a mask. Use one such as SHA-256, SHA-512, SHA3-256, or MD5.")
    return name


def _mask(names: Matcher, convert: Callable[[Column], Convert]) -> _Rule:
    def mutation(column: Column, correct: bool) -> Mutation:
        is_text = column.field is not None and column.field.schema.type is Type.STRING
        masks = is_text and (column.character or correct)
        return Mutation({"masked": "true"}, convert(column) if masks else None, masks)

    return _Rule(names, mutation, masks=True)


def _propagation(names: Matcher, *, by_type: bool = False) -> _Rule:
    return _Rule(names, lambda column, _correct: Mutation(_source_parameters(column)), by_type)


_KINDS: tuple[tuple[str, Callable[..., _Rule]], ...] = (
    ("column.truncate.to.{length}.chars", _truncation),
    ("column.mask.with.{length}.chars", _asterisks),
    ("column.propagate.source.type", _propagation),
    ("datatype.propagate.source.type", partial(_propagation, by_type=True)),
    ("column.mask.hash.{algorithm}.with.salt.{salt}", _hashing),
    ("column.mask.hash.v2.{algorithm}.with.salt.{salt}", partial(_hashing, plain=True)),
)
_ALIASES = {"sha": "sha1"}
_PARTS = {"length": r"(\d+)", "algorithm": r"([^.]+)", "salt": "(.+)"}


def _pattern(key: str) -> str:
    return re.sub(r"\\\{(\w+)\\\}", lambda part: _PARTS[part[1]], re.escape(key))


def _source_parameters(column: Column) -> dict[str, str]:
    """Return the schema parameters that describe a column's type in the database."""
    found = {"__debezium.source.column.type": column.type_name.upper()}
    if column.length is not None:
        found["__debezium.source.column.length"] = str(column.length)
    if column.scale is not None:
        found["__debezium.source.column.scale"] = str(column.scale)
    found["__debezium.source.column.name"] = column.name
    if column.comment:
        found["__debezium.source.column.comment"] = column.comment
    return found


def with_schema(convert: Convert, schema: Schema) -> Convert:
    """Return a conversion whose structs have this very schema, as converters demand."""
    if schema.type is not Type.STRUCT:
        return convert

    def renamed(raw: Any) -> Any:
        value = convert(raw)
        return Struct.of(schema, value.values_) if isinstance(value, Struct) else value

    return renamed


def noticed(convert: Convert, table: str, column: Column) -> Convert:
    """Return the conversion of a required column that logs the first value that records cannot have, and that becomes null."""
    said = False

    def apply(raw: Any) -> Any:
        nonlocal said
        value = convert(raw)
        if value is None and not said:
            said = True
            log.error(_NO_VALUE, table, column.name, column.type_name)
        return value

    return apply


def compiled(convert: Convert, *, on_null: Any, unavailable: Any, change: Convert | None = None) -> Convert:
    """Return the function from a raw value, None or UNAVAILABLE to a field's value, which ``change`` is applied to."""

    def apply(raw: Any) -> Any:
        if raw is None:
            return on_null
        if raw is UNAVAILABLE:
            return unavailable
        return convert(raw)

    return apply if change is None else lambda raw: change(apply(raw))

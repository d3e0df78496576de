"""Describes types and the handling modes that decide about their fields. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from sluiceway.connectors.cdc.columns import FieldType


class TypeInfo(NamedTuple):
    """A type without its domains."""

    name: str
    typmod: int
    labels: tuple[str, ...]

    @property
    def length(self) -> int:
        """The declared length of text and bits, the precision of numbers, or the characters of a time, as in JDBC.

        That of an array is its elements'.
        """
        element = self.name.removeprefix("_")
        if element == "numeric":
            if self.typmod >= _HEADER:
                return self.typmod - _HEADER >> 16 & 0xFFFF
            return 0 if element == self.name else UNCONSTRAINED_DIGITS
        if element in ("varchar", "bpchar"):
            return self.typmod - _HEADER if self.typmod >= _HEADER else _UNLIMITED
        if element in ("bit", "varbit"):
            return self.typmod if self.typmod > 0 else _UNLIMITED if element == "varbit" else 1
        if element in _TIMES:
            return _TIMES[element] + _FRACTIONS.get(self.typmod, self.typmod + 1)
        return _LENGTHS.get(element, _UNLIMITED)

    @property
    def scale(self) -> int | None:
        element = self.name.removeprefix("_")
        if element == "numeric":
            return self.typmod - _HEADER & 0x7FF if self.typmod >= _HEADER else None
        if element in _TIMES and self.typmod >= 0:
            return self.typmod
        return _SCALES.get(element, 0)

    @property
    def is_unconstrained(self) -> bool:
        """Whether it is a number without a declared precision."""
        return self.name == "numeric" and self.typmod < _HEADER

    @property
    def is_character(self) -> bool:
        """Whether JDBC's type is one of characters: so it is for enums too, but not for citext, uuid, json, xml, and inet."""
        return self.name in _CHARACTERS or bool(self.labels)

    @property
    def second_digits(self) -> int:
        """The digits of a second of a time or timestamp."""
        return self.typmod if self.typmod >= 0 else 6


_CHARACTERS = frozenset({"bpchar", "char", "name", "text", "varchar"})
_HEADER = 4  # bytes of a value's length, which type modifiers include
_UNLIMITED = 2_147_483_647
UNCONSTRAINED_DIGITS = 131_089
"""The length of a number without a declared precision in Debezium's stream."""
_LENGTHS = {"int2": 5, "int4": 10, "int8": 19, "float4": 8, "float8": 17, "bool": 1, "date": 13, "oid": 10, "char": 1}
_LENGTHS |= {"interval": 49}
_TIMES = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}
"""The characters without a fraction of a second."""
_FRACTIONS = {-1: 7, 0: 0, 1: 3}
"""The characters of a fraction with its point, by the type modifier, where JDBC has not one more than that."""
_SCALES = {"float4": 8, "float8": 17, "time": 6, "timetz": 6, "timestamp": 6, "timestamptz": 6, "interval": 6}


@dataclass(frozen=True, slots=True)
class TypeSettings:
    """The handling modes of a config."""

    decimal_mode: str
    binary_mode: str
    time_mode: str
    interval_mode: str
    hstore_mode: str
    money_digits: int
    include_unknown: bool
    placeholder: bytes
    correct: bool

    @property
    def placeholder_text(self) -> str:
        return self.placeholder.decode("utf-8", "replace")


Maker = Callable[[TypeInfo, TypeSettings], FieldType]

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
    def length(self) -> int | None:
        """The declared length of text and bits, the precision of numbers, or the digits of a second."""
        if self.name == "numeric":
            return self.typmod - 4 >> 16 & 0xFFFF if self.typmod >= 4 else 0
        if self.name in ("varchar", "bpchar"):
            return self.typmod - 4 if self.typmod >= 4 else 2_147_483_647
        if self.name in ("bit", "varbit"):
            return self.typmod if self.typmod > 0 else 2_147_483_647 if self.name == "varbit" else 1
        return _LENGTHS.get(self.name, 2_147_483_647)

    @property
    def scale(self) -> int | None:
        if self.name == "numeric":
            return self.typmod - 4 & 0x7FF if self.typmod >= 4 else 0
        if self.name in _SCALES:
            return self.typmod if self.typmod >= 0 and self.name.startswith("time") else _SCALES[self.name]
        return 0

    @property
    def second_digits(self) -> int:
        """The digits of a second of a time or timestamp."""
        return self.typmod if self.typmod >= 0 else 6


_LENGTHS = {"int2": 5, "int4": 10, "int8": 19, "float4": 8, "float8": 17, "bool": 1, "date": 13, "time": 15, "timetz": 21}
_LENGTHS |= {"timestamp": 29, "timestamptz": 35, "oid": 10}
_SCALES = {"float4": 8, "float8": 17, "time": 6, "timetz": 6, "timestamp": 6, "timestamptz": 6}


@dataclass(frozen=True, slots=True)
class Settings:
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


Maker = Callable[[TypeInfo, Settings], FieldType]

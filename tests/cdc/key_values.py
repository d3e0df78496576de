"""Compares the keys of records with the rows of the database: each row has a key of its own, with the values of its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from cdc.captured import Captured
from cdc.key_tables import KeyTable
from sluiceway.api import SourceRecord
from sluiceway.data import Schema, Struct, Type

_COLUMNS = 3
_AS_WRITTEN = frozenset({None, *(f"io.debezium.data.{name}" for name in ("Uuid", "Enum", "EnumSet", "Ltree", "Tsvector"))})
"""The semantic types whose values are the server's texts."""
_INTEGERS = frozenset({Type.INT8, Type.INT16, Type.INT32, Type.INT64})
_NUMBER = re.compile(r"(?:decimal|numeric|price|amount|money)\b")
_SPECIAL = {"NAN": "NaN", "POSITIVE_INFINITY": "Infinity", "NEGATIVE_INFINITY": "-Infinity"}
_ALIKE = re.compile(r"timetz|interval|timestamp\(0\)")
_ALIKE_IN_BINLOG = re.compile(r"date|timestamp")
"""Types of which Debezium's values do not tell different ones apart: times of day by zone, months and days, and invalid days."""


class KeyValues:
    """The keys of tables with a primary key."""

    def __init__(self, source: Captured, tables: Sequence[KeyTable]) -> None:
        self._alike = _ALIKE if source.is_postgres else _ALIKE_IN_BINLOG
        self._tables = {table.name: table for table in tables}
        self._texts = _texts(source, [table for table in tables if table.primary])
        self._numbers: dict[tuple[str, str], int] = {}

    def check(self, table: str, number: int, record: SourceRecord) -> None:
        """Compare the key of the record of a row."""
        found = self._tables[table]
        key, row = record.key, record.value["after"]
        if not found.primary:
            assert key is None, f"{found}: a key without a primary key"
            return
        assert isinstance(key, Struct)
        held = [
            index for index in range(len(found.types)) if row.schema.field(f"c{index}") is not None
        ]  # records leave out unknown types
        assert [each.name for each in key.schema.fields] == [f"c{index}" for index in held]
        assert repr(key.values_) == repr(row.values_[: len(held)]), f"{found}: another key than the row's: {key}"
        if len(held) == len(found.types) and not any(map(self._alike.match, found.types)):
            assert self._numbers.setdefault((table, repr(key.values_)), number) == number, f"{found}: two rows have the key {key}"
        for index, each, value in zip(held, key.schema.fields, key.values_, strict=True):
            text, declared = self._texts[table, number][index], found.types[index]
            assert _is_same(each.schema, value, text, declared), f"{found}: {value!r} is {text!r}"


def _texts(source: Captured, tables: Sequence[KeyTable]) -> dict[tuple[str, int], Sequence[Any]]:
    """Return the key columns of each row as the server writes them, by table and number."""
    found: dict[tuple[str, int], Sequence[Any]] = {}
    for start in range(0, len(tables), 50):
        parts = []
        for table in tables[start : start + 50]:
            columns = [f"concat(c{index})" for index in range(len(table.types))]
            if not source.is_postgres:  # of one type and collation, else a union refuses them
                columns = [f"cast({column} as char character set utf8mb4)" for column in columns]
            columns += ["''"] * (_COLUMNS - len(columns))
            parts.append(f"select '{table.name}', n, {', '.join(columns)} from {table.name}")  # noqa: S608
        for name, number, *texts in source.database.execute(" union all ".join(parts)):
            found[str(name), int(number)] = texts
    return found


def _is_same(schema: Schema, value: Any, text: Any, declared: str) -> bool:
    """Tell whether a value is the one that the server writes so. Types that records have in another form always are."""
    if schema.name not in _AS_WRITTEN or schema.type not in {Type.STRING, *_INTEGERS}:
        return True
    if schema.type in _INTEGERS:
        return bool((int(text) - value) % (1 << 64) == 0)  # BIGINT UNSIGNED has the bits of a signed one
    if _NUMBER.match(declared):
        return text == _SPECIAL[value] if value in _SPECIAL else Decimal(value) == Decimal(re.sub("[$,]", "", text))
    return bool(value == text)

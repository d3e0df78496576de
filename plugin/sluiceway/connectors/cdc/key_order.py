"""Writes the SQL that reads a table in the order of a key: the order itself, and the rows between two keys. No I/O.

For each column of a key, what a query returns as the key, what it sorts by, and what it compares have the same order. That is not
so by itself: databases sort an ENUM by the numbers of its labels but compare it with a text by its label, and they return a FLOAT
with fewer digits than it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_NEVER, _ALWAYS = "1 = 0", "1 = 1"

Compare = Callable[[str, Any], str]
"""Returns the condition that a column is ``=``, ``<``, ``<=``, or ``>`` a value of a key that is not null."""
CompareRow = Callable[[str, Sequence[Any]], str]
"""Returns the condition that all columns together are ``<=`` or ``>`` a key."""


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a key.

    Args:
        name: the column as an SQL identifier.
        value: the expression whose text or bytes are the value in keys.
        compare: compares with such a value.
        optional: whether the column may be null.
        sorted_by: the expression that rows are sorted by; empty for the column, whose index then gives the order.
    """

    name: str
    value: str
    compare: Compare
    optional: bool = False
    sorted_by: str = ""


@dataclass(frozen=True, slots=True)
class KeyOrder:
    """The order of a key.

    Args:
        nulls_first: whether the database sorts nulls before all values.
        compare_row: what uses an index better than conditions of single columns; used if no column may be null.
    """

    columns: tuple[KeyColumn, ...]
    nulls_first: bool
    compare_row: CompareRow | None = None

    @property
    def values(self) -> str:
        """The list of expressions that return a row's key, with names that are not those of columns."""
        return ", ".join(f"{each.value} as sluiceway_key_{index}" for index, each in enumerate(self.columns))

    def by(self, direction: str = "") -> str:
        """Return the list of expressions to sort by; ``direction`` is empty or `` desc``."""
        return ", ".join(f"{each.sorted_by or each.name}{direction}" for each in self.columns)

    def between(self, after: Sequence[Any] | None, last: Sequence[Any] | None) -> list[str]:
        """Return the conditions that a row's key is greater than ``after``, and not greater than ``last``; None is no bound.

        A key with fewer values than columns stands for all keys that begin with them.
        """
        bounds = ((">", after), ("<=", last))
        return [self._compared(operator, values) for operator, values in bounds if values is not None]

    def _compared(self, operator: str, values: Sequence[Any]) -> str:
        columns = self.columns[: len(values)]
        values = values[: len(columns)]
        if self.compare_row is not None and len(columns) == len(self.columns) and not any(each.optional for each in columns):
            return self.compare_row(operator, values)
        alternatives: list[str] = []
        equal: list[str] = []
        for index, (column, value) in enumerate(zip(columns, values, strict=True)):
            found = self._single(column, operator if index == len(columns) - 1 else operator[0], value)
            if found != _NEVER:
                alternatives.append(_joined(" and ", [*equal, found]))
            equal.append(self._single(column, "=", value))
        return _joined(" or ", alternatives) if alternatives else _NEVER

    def _single(self, column: KeyColumn, operator: str, value: Any) -> str:
        """Return a comparison of one column that is true for nulls, too, if they are on that side of the value."""
        if value is not None:
            compared = column.compare(operator, value)
            with_nulls = operator != "=" and operator.startswith("<") == self.nulls_first
            return _joined(" or ", [compared, f"{column.name} is null"]) if column.optional and with_nulls else compared
        if operator == "=" or (operator == "<=" and self.nulls_first):
            return f"{column.name} is null"
        if operator == "<=":
            return _ALWAYS
        return f"{column.name} is not null" if (operator == ">") == self.nulls_first else _NEVER


def where(conditions: Sequence[str]) -> str:
    """Return a WHERE clause with a blank before it, or nothing without conditions."""
    return f" where {' and '.join(conditions)}" if conditions else ""


def _joined(word: str, parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({word.join(parts)})"

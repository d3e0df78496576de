"""Matches names of tables and columns against the include and exclude lists of a config. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sluiceway.connectors.own_tables import is_own_table
from sluiceway.errors import ConfigError
from sluiceway.java.regex import JavaRegex, RegexError, compile_java

Matcher = Callable[[str], bool]


class TableId(NamedTuple):
    """A table's name. ``schema`` is the database in MariaDB and MySQL."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


def split_list(text: str | None) -> list[str]:
    r"""Split a list at commas that are not escaped as ``\,``; drop blanks around the items and empty items."""
    items, current, escaped = [], "", False
    for char in text or "":
        if escaped:
            current += char if char == "," else "\\" + char
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            items.append(current)
            current = ""
        else:
            current += char
    items.append(current + ("\\" if escaped else ""))
    return [item.strip() for item in items if item.strip()]


def compile_anchored(pattern: str) -> JavaRegex:
    """Compile a pattern of a list, which ignores case. Raises RegexError."""
    return compile_java(f"(?i){pattern}")


def matcher(text: str | None) -> Matcher | None:
    """Return a function that tells whether a name matches any pattern of a list entirely; None for an empty list."""
    patterns = [compile_anchored(item) for item in split_list(text)]
    if not patterns:
        return None
    return lambda name: any(pattern.matches(name) for pattern in patterns)


def filter_of(include: str | None, exclude: str | None) -> Matcher:
    """Return a function that tells whether a name is included. The include list wins."""
    included, excluded = matcher(include), matcher(exclude)
    if included is not None:
        return included
    if excluded is not None:
        return lambda name: not excluded(name)
    return lambda _name: True


def table_filter_of(include: str | None, exclude: str | None) -> Matcher:
    """Return ``filter_of`` for full names of tables. Without an include list, it leaves out the tables that sinks create."""
    chosen = filter_of(include, exclude)
    return chosen if split_list(include) else lambda name: chosen(name) and not is_own_table(name.rpartition(".")[2])


def check_patterns(name: str, value: object) -> None:
    """Raise ConfigError unless a list consists of regular expressions."""
    for pattern in split_list(value if isinstance(value, str) else ""):
        try:
            compile_anchored(pattern)
        except RegexError as error:
            raise ConfigError(
                f"The '{name}' value is invalid: A comma-separated list of valid regular expressions is expected, but {error}"
            ) from error


class KeyColumns:
    """The columns that ``message.key.columns`` chooses as keys: ``schema.table:column,column;table:column``."""

    def __init__(self, text: str | None) -> None:
        self._rules: list[tuple[JavaRegex, tuple[JavaRegex, ...]]] = []
        for rule in (text or "").split(";"):
            table, separator, columns = rule.strip().rpartition(":")
            if separator:
                names = tuple(compile_anchored(name) for name in split_list(columns))
                self._rules.append((compile_anchored(table.strip()), names))

    def of(self, table: TableId, columns: Sequence[str]) -> list[str] | None:
        """Return the names of a table's key columns in the order of the config, or None if no rule matches the table."""
        for pattern, names in self._rules:
            if pattern.matches(str(table)):
                return list(dict.fromkeys(column for name in names for column in columns if name.matches(column)))
        return None

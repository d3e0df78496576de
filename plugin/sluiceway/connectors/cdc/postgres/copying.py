"""Reads the rows of a query by COPY, whose text is that of the log's tuples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

Row = list["str | None"]

_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def copy_rows(connection: Connection, query: str, limit: int, byte_limit: int) -> Iterator[list[Row]]:
    """Yield the rows of a query in lists of about ``limit`` rows or ``byte_limit`` bytes; values are text."""
    rows: list[Row] = []
    size = 0
    with connection.cursor() as cursor, cursor.copy(f"COPY ({query}) TO STDOUT") as copy:
        while data := copy.read():
            lines = bytes(data).decode().split("\n")
            lines.pop()  # the server sends whole lines
            rows += [line.split("\t") if "\\" not in line else parse_line(line) for line in lines]  # type: ignore[misc]
            size += len(data)
            if len(rows) >= limit or size >= byte_limit:
                yield rows
                rows, size = [], 0
    if rows:
        yield rows


def parse_line(line: str) -> Row:
    r"""Return the values of a line with escapes: ``\N`` is null."""
    return [None if value == "\\N" else _ESCAPE.sub(_unescaped, value) if "\\" in value else value for value in line.split("\t")]


def _unescaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found.group(1), found.group(1))

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


def copy_lines(connection: Connection, query: str, limit: int, byte_limit: int) -> Iterator[list[bytes]]:
    """Yield the lines of a query's rows, each with its end, in lists of about ``limit`` rows or ``byte_limit`` bytes."""
    from psycopg import errors, pq

    server = connection.pgconn
    result = server.exec_(f"COPY ({query}) TO STDOUT".encode())
    if result.status != pq.ExecStatus.COPY_OUT:
        raise errors.error_from_result(result)
    lines: list[bytes] = []
    size = 0
    while True:
        length, data = server.get_copy_data(0)  # waits without the interpreter's lock
        if length <= 0 or len(lines) >= limit or size >= byte_limit:
            if lines:
                yield lines
            lines, size = [], 0
        if length <= 0:
            break
        lines.append(bytes(data))
        size += length
    while (ended := server.get_result()) is not None:
        if ended.status != pq.ExecStatus.COMMAND_OK:
            raise errors.error_from_result(ended)


def parse_lines(lines: list[bytes]) -> list[Row]:
    """Return the values of lines, each with its line end."""
    texts = b"".join(lines).decode().split("\n")
    texts.pop()
    return [parse_line(text) if "\\" in text else [*text.split("\t")] for text in texts]


def parse_line(line: str) -> Row:
    r"""Return the values of a line with escapes: ``\N`` is null."""
    return [None if value == "\\N" else unescaped(value) if "\\" in value else value for value in line.split("\t")]


def unescaped(value: str) -> str:
    """Return what a value with escapes means."""
    return _ESCAPE.sub(_character, value)


def _character(found: re.Match[str]) -> str:
    return _ESCAPES.get(found.group(1), found.group(1))

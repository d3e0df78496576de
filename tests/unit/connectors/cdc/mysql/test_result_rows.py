"""Rows of results, from packets as the server sends them."""

from __future__ import annotations

import io
import random
from typing import Any

import pymysql
import pytest

from sluiceway.connectors.cdc.column_rows import ColumnRows
from sluiceway.connectors.cdc.mysql.result_rows import result_rows

_END = b"\xfe\0\0\2\0"


class _Connection:
    encoding = "utf8"

    def __init__(self, data: bytes, piece: int) -> None:
        self._rfile = _Pieces(data, piece)
        self.closed = False

    def _force_close(self) -> None:
        self.closed = True


class _Pieces(io.BytesIO):
    """A stream that returns a few bytes at a time."""

    def __init__(self, data: bytes, piece: int) -> None:
        super().__init__(data)
        self._piece = piece

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.read(self._piece)


class _Result:
    unbuffered_active = True
    rows = None

    def __init__(self, connection: _Connection, *encodings: str | None) -> None:
        self.connection = connection
        self.converters = [(encoding, None) for encoding in encodings]


def _packets(*payloads: bytes) -> bytes:
    found = b""
    for number, payload in enumerate(payloads):
        rest = payload
        while True:
            part, rest = rest[:0xFFFFFF], rest[0xFFFFFF:]
            found += len(part).to_bytes(3, "little") + bytes([number & 0xFF]) + part
            if len(part) < 0xFFFFFF:
                break
    return found


def _text(value: bytes | None) -> bytes:
    if value is None:
        return b"\xfb"
    if len(value) < 251:
        return bytes([len(value)]) + value
    if len(value) < 1 << 16:
        return b"\xfc" + len(value).to_bytes(2, "little") + value
    return b"\xfd" + len(value).to_bytes(3, "little") + value


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_rows_have_text_bytes_and_nulls_of_all_lengths(piece: int) -> None:
    rows = [("1", "żółw".encode(), None), ("", None, "x" * 250), (None, b"", "y" * 70_000), ("z" * 251, b"\xff\xfe", "e")]
    data = _packets(*(b"".join(_text(v.encode() if isinstance(v, str) else v) for v in row) for row in rows), _END)
    connection = _Connection(data, piece)
    found = list(result_rows(_Result(connection, "ascii", None, "utf8"), 2, 1 << 20))
    assert found == [rows[:2], rows[2:]]
    assert not connection.closed


@pytest.mark.parametrize("seed", range(20))
def test_columns_have_the_values_of_the_rows(seed: int) -> None:
    chooser = random.Random(seed)  # noqa: S311 (test data)
    encodings = [chooser.choice(["utf8", None]) for _ in range(chooser.randint(1, 8))]
    lengths = [chooser.choice([0, 4, 250, 251, 300, 70_000]) for _ in encodings]

    def value(encoding: str | None, length: int) -> str | bytes | None:
        size = chooser.choice([length, length, 3])
        return chooser.choice([None, b"\xff" * size if encoding is None else "\N{GREEK SMALL LETTER ALPHA}" * (size // 2)])

    rows = [tuple(map(value, encodings, lengths)) for _ in range(100)]
    data = _packets(*(b"".join(_text(v.encode() if isinstance(v, str) else v) for v in row) for row in rows), _END)
    read: dict[bool, list[Any]] = {}
    for columns in (False, True):
        result = _Result(_Connection(data, 1 << 20), *encodings)
        read[columns] = list(result_rows(result, 60, 1 << 30, columns=columns))
    assert [isinstance(each, ColumnRows) for each in read[True]] == [True, True]
    assert [list(each) for each in read[True]] == read[False] == [rows[:60], rows[60:]]


def test_text_that_is_not_utf_8_is_refused() -> None:
    data = _packets(*(_text(b"\xff") for _ in range(40)), _END)
    with pytest.raises(UnicodeDecodeError):
        list(result_rows(_Result(_Connection(data, 1 << 20), "utf8"), 60, 1 << 30, columns=True))


def test_a_list_ends_when_it_is_large() -> None:
    data = _packets(*(_text(b"x" * 100) for _ in range(5)), _END)
    lists = list(result_rows(_Result(_Connection(data, 50), "utf8"), 1000, 200))
    assert [len(rows) for rows in lists] == [2, 2, 1]


def test_a_row_of_several_packets_is_one_row() -> None:
    value = b"v" * (1 << 24)
    row = b"\xfe" + len(value).to_bytes(8, "little") + value
    [[(found,)]] = list(result_rows(_Result(_Connection(_packets(row, _END), 1 << 20), None), 10, 1 << 30))
    assert found == value


def test_an_error_of_the_server_is_raised_and_the_connection_closed() -> None:
    error = b"\xff" + (1317).to_bytes(2, "little") + b"#70100Query execution was interrupted"
    connection = _Connection(_packets(_text(b"1"), error), 9)
    with pytest.raises(pymysql.err.OperationalError, match="interrupted"):
        list(result_rows(_Result(connection, "utf8"), 10, 1 << 20))
    assert connection.closed


def test_a_lost_connection_and_an_iterator_that_is_closed_early_close_the_connection() -> None:
    connection = _Connection(_packets(_text(b"1")), 9)
    with pytest.raises(pymysql.err.OperationalError, match="Lost connection"):
        list(result_rows(_Result(connection, "utf8"), 10, 1 << 20))
    connection = _Connection(_packets(_text(b"1"), _text(b"2"), _END), 9)
    rows: Any = result_rows(_Result(connection, "utf8"), 1, 1 << 20)
    assert next(rows) == [("1",)]
    rows.close()
    assert connection.closed

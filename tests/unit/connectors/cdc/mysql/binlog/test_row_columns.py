"""Rows are decoded into columns with the values of rows that are read one by one."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sluiceway.connectors.cdc.mysql.binlog.charsets import Charsets
from sluiceway.connectors.cdc.mysql.binlog.column_storage import value_size
from sluiceway.connectors.cdc.mysql.binlog.rows import DELETE, INSERT, UPDATE, RowReaders, RowsEvent
from sluiceway.connectors.cdc.mysql.binlog.table_map import ColumnType, MappedColumn, TableMap
from sluiceway.connectors.cdc.mysql.binlog.temporal import INVALID, Calendar
from sluiceway.errors import ConnectError

_T = ColumnType
_UTF_8, _LATIN_1, _UTF_16, _BINARY = 45, 8, 101, 63
_TEXTS = (b"", b"plain", "grüße".encode(), "日本語 😀".encode(), b'"quoted\\')
_OTHERS = (b"ascii", "é".encode("latin-1"), b"\xff\xfe\x00", "a\u00e9".encode("utf-16-be"))
_UNCOMPRESSED = (b"\0text", b"")
_JSON = (b"\x04\x00", b"\x05\x2a\x00")  # null and 42

# type, metadata, unsigned, collation, and the values of strings
_KINDS: list[tuple[int, int, bool, int | None, tuple[bytes, ...]]] = [
    *(
        (kind, 0, unsigned, None, ())
        for kind in (_T.TINY, _T.SHORT, _T.INT24, _T.LONG, _T.LONGLONG)
        for unsigned in (False, True)
    ),
    *((kind, 0, False, None, ()) for kind in (_T.FLOAT, _T.DOUBLE, _T.YEAR, _T.DATE, _T.TIME, _T.DATETIME, _T.TIMESTAMP)),
    *((kind, digits, False, None, ()) for kind in (_T.DATETIME2, _T.TIMESTAMP2, _T.TIME2) for digits in (0, 1, 3, 6)),
    *(
        (_T.NEWDECIMAL, precision << 8 | scale, False, None, ())
        for precision, scale in ((10, 2), (18, 2), (5, 5), (18, 0), (30, 9))
    ),
    *((kind, size, False, None, ()) for kind in (_T.ENUM, _T.SET) for size in (1, 2, 8)),
    *((_T.BIT, length, False, None, ()) for length in (0x0001, 0x0103, 0x0800)),
    *((kind, 40, False, _UTF_8, _TEXTS) for kind in (_T.VARCHAR, _T.STRING)),
    (_T.VARCHAR, 400, False, _UTF_8, (*_TEXTS, b"\xff not UTF-8")),
    *((_T.VARCHAR, 400, False, collation, _OTHERS) for collation in (_LATIN_1, _UTF_16, _BINARY, None)),
    *((_T.BLOB, size, False, collation, _TEXTS) for size in (1, 2, 3, 4) for collation in (_UTF_8, _BINARY)),
    (_T.BLOB_COMPRESSED, 2, False, _UTF_8, _UNCOMPRESSED),
    (_T.JSON, 4, False, None, _JSON),
]


class _Table:
    """A table of random columns."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._kinds = [rng.choice(_KINDS) for _ in range(rng.choice((1, 3, 7, 8, 9, 20)))]
        self.columns = [
            MappedColumn(kind, metadata, nullable=True, name=f"c{number}", unsigned=unsigned, collation=collation)
            for number, (kind, metadata, unsigned, collation, _) in enumerate(self._kinds)
        ]
        self._nulls = rng.choice((0.0, 0.2, 1.0))

    def readers(self) -> RowReaders:
        return RowReaders(TableMap(1, "d", "t", self.columns, b""), Charsets(), Calendar(adjust_years=self._rng.random() < 0.5))

    def event(self, operation: str, rows: int) -> RowsEvent:
        everything = (1 << len(self.columns)) - 1
        images = rows * (2 if operation == UPDATE else 1)
        before, after = (0 if operation == INSERT else everything), (0 if operation == DELETE else everything)
        data = b"".join(self._image() for _ in range(images))
        return RowsEvent(operation, 1, True, before, after, len(self.columns), data)

    def _image(self) -> bytes:
        size = (len(self.columns) + 7) // 8
        nulls = (1 << 8 * size) - (1 << len(self.columns))  # servers set the bits behind the columns
        values = b""
        for number, (column, (*_, texts)) in enumerate(zip(self.columns, self._kinds, strict=True)):
            if self._rng.random() < self._nulls:
                nulls |= 1 << number
            else:
                values += self._value(column, texts)
        return nulls.to_bytes(size, "little") + values

    def _value(self, column: MappedColumn, texts: tuple[bytes, ...]) -> bytes:
        size, has_length = value_size(column)
        if has_length:
            text = self._rng.choice(texts)
            return len(text).to_bytes(size, "little") + text
        if column.type in (_T.FLOAT, _T.DOUBLE):
            return struct.pack("<f" if size == 4 else "<d", self._rng.choice((0.0, 1.5, -1e20, 0.1)))
        if self._rng.random() < 0.5 and column.type in (_T.DATE, _T.DATETIME2):  # valid dates; random ones mostly are not
            date = 2024 << 9 | 2 << 5 | self._rng.randrange(1, 30)
            return date.to_bytes(3, "little") if column.type == _T.DATE else _datetime(2024, 2, 29) + bytes(size - 5)
        if column.type == _T.NEWDECIMAL:
            return self._decimal(column.metadata >> 8, column.metadata & 0xFF)
        return self._rng.randbytes(size)

    def _decimal(self, precision: int, scale: int) -> bytes:
        """Return digits in groups of nine from the point on, each in the fewest bytes; those of negative numbers are inverted."""
        whole, fraction = precision - scale, scale
        digits = [whole % 9, *[9] * (whole // 9 + fraction // 9), fraction % 9]
        packed = b"".join(
            self._rng.randrange(10**count).to_bytes((count + 1) // 2 if count < 9 else 4, "big") for count in digits
        )
        if self._rng.random() < 0.5:
            return bytes([packed[0] | 0x80]) + packed[1:]
        inverted = bytes(byte ^ 0xFF for byte in packed)
        return bytes([inverted[0] & 0x7F]) + inverted[1:]


def _datetime(year: int, month: int, day: int) -> bytes:
    return (0x8000000000 | ((year * 13 + month) << 5 | day) << 17 | 12 << 12 | 34 << 6 | 56).to_bytes(5, "big")


def _listed(values: Any) -> list[Any]:
    return values if isinstance(values, list) else values.to_pylist()


@pytest.mark.parametrize("seed", range(120))
def test_columns_have_the_values_of_rows(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 (repeatable test data)
    table = _Table(rng)
    readers = table.readers()
    for operation in (INSERT, UPDATE, DELETE):
        event = table.event(operation, rng.choice((1, 2, 40)))
        images = [image for pair in readers.read(event) for image in pair if image is not None]

        starts = readers.image_starts(event)
        columns = readers.columns.decode(event.data, np.array(starts))

        assert readers.has_all_columns(event)
        assert len(starts) == len(images)
        assert [_listed(column.values) for column in columns] == [list(values) for values in zip(*images, strict=True)]


@pytest.mark.parametrize(
    ("column", "value", "kind"),
    [
        (MappedColumn(_T.VARCHAR, 40, nullable=True, collation=_UTF_8), b"\x03abc", pa.utf8()),
        (MappedColumn(_T.VARCHAR, 40, nullable=True, collation=_LATIN_1), b"\x03abc", pa.utf8()),
        (MappedColumn(_T.VARCHAR, 40, nullable=True, collation=_BINARY), b"\x03abc", pa.binary()),
        (MappedColumn(_T.NEWDECIMAL, 18 << 8 | 2, nullable=True), b"\x80" + bytes(8), pa.int64()),
        (MappedColumn(_T.DATE, 0, nullable=True), (2024 << 9 | 2 << 5 | 29).to_bytes(3, "little"), pa.int64()),
        (MappedColumn(_T.DATETIME2, 6, nullable=True), _datetime(2024, 2, 29) + bytes(3), pa.int64()),
        (MappedColumn(_T.LONGLONG, 0, nullable=True, unsigned=True), b"\xff" * 8, pa.uint64()),
        (MappedColumn(_T.DOUBLE, 0, nullable=True), bytes(8), pa.float64()),
    ],
)
def test_usual_values_become_arrays(column: MappedColumn, value: bytes, kind: pa.DataType) -> None:
    readers = RowReaders(TableMap(1, "d", "t", [column], b""), Charsets(), Calendar(adjust_years=True))

    [found] = readers.columns.decode(b"\0" + value + b"\1" + b"\0" + value, np.array([0, 1 + len(value), 2 + len(value)]))

    assert isinstance(found.values, pa.Array)
    assert found.values.type == kind
    assert found.values.null_count == 1


def test_dates_that_no_calendar_has_are_listed() -> None:
    columns = [MappedColumn(_T.DATE, 0, nullable=True)]
    readers = RowReaders(TableMap(1, "d", "t", columns, b""), Charsets(), Calendar(adjust_years=True))

    [found] = readers.columns.decode(bytes(4), np.array([0]))

    assert found.values == [INVALID]


@pytest.mark.parametrize("left", [1, 2, 5])
def test_rows_that_are_cut_off_are_refused(left: int) -> None:
    columns = [MappedColumn(_T.VARCHAR, 40, nullable=True, collation=_UTF_8), MappedColumn(_T.LONG, 0, nullable=True)]
    readers = RowReaders(TableMap(1, "d", "t", columns, b""), Charsets(), Calendar(adjust_years=True))
    data = (b"\xfc\x03abc" + bytes(4))[:left]

    with pytest.raises(ConnectError, match=r"d\.t has a row that is cut off\. The binary log is damaged"):
        readers.image_starts(RowsEvent(INSERT, 1, True, 0, 3, 2, data))

"""Table maps and row events of a real server are decoded; partial images and compressed rows too."""

from __future__ import annotations

import datetime as dt
import struct

import pytest

from sluiceway.connectors.cdc.columns import UNAVAILABLE
from sluiceway.connectors.cdc.mysql.binlog.charsets import Charsets
from sluiceway.connectors.cdc.mysql.binlog.events import CHECKSUM_BYTES, HEADER_BYTES, EventType, read_header
from sluiceway.connectors.cdc.mysql.binlog.rows import Row, RowReaders, read_rows_event
from sluiceway.connectors.cdc.mysql.binlog.table_map import ColumnType, TableMap, read_table_map
from sluiceway.connectors.cdc.mysql.binlog.temporal import INVALID, Calendar
from sluiceway.errors import ConnectError
from unit.connectors.cdc.mysql.binlog import mariadb_events as events
from unit.connectors.cdc.mysql.binlog import mysql_events

MICROS = int(dt.datetime(2024, 2, 29, 12, 34, 56, 789000, tzinfo=dt.timezone.utc).timestamp() * 1000) * 1000
FIRST = (1, 255, -125000, "é", 2, MICROS, 0b10100000001, -3_600_500_000)
SECOND = (2, None, None, None, None, INVALID, None, None)


def _body(packet: bytes) -> memoryview:
    return memoryview(packet)[HEADER_BYTES:-CHECKSUM_BYTES]


def _table() -> TableMap:
    return read_table_map(_body(events.TABLE_MAP))


def _rows(packet: bytes, table: TableMap | None = None) -> tuple[str, list[tuple[Row | None, Row | None]]]:
    event = read_rows_event(read_header(memoryview(packet)).type, _body(packet))
    readers = RowReaders(table or _table(), Charsets({8: "latin1"}), Calendar(adjust_years=True))
    return event.operation, readers.read(event)


def test_full_metadata_describes_the_columns() -> None:
    table = _table()

    assert (table.database, table.table, table.primary_key, table.has_names) == ("tt", "t", (0,), True)
    assert [column.name for column in table.columns] == ["id", "a", "d", "s", "e", "g", "b", "n"]
    assert [column.unsigned for column in table.columns[:3]] == [False, True, False]
    assert table.columns[3].collation == 8
    assert table.columns[4].values == (b"x", b"y")
    assert not table.columns[0].nullable
    assert table.columns[1].nullable


def test_rows_have_typed_values() -> None:
    assert _rows(events.INSERT) == ("c", [(None, FIRST), (None, SECOND)])


def test_an_update_has_both_images() -> None:
    assert _rows(events.UPDATE) == ("u", [(FIRST, (1, 7, *FIRST[2:]))])


def test_a_partial_image_marks_the_columns_it_leaves_out() -> None:
    absent = (UNAVAILABLE,) * 6

    assert _rows(events.PARTIAL_UPDATE) == ("u", [((1, UNAVAILABLE, *absent), (1, 8, *absent))])


def test_compressed_rows_are_read() -> None:
    assert _rows(events.COMPRESSED_DELETE) == ("d", [(SECOND, None)])


def test_a_row_event_of_another_width_is_refused() -> None:
    table = _table()
    table.columns.pop()

    with pytest.raises(ConnectError, match="has 8 columns but its table map 7"):
        _rows(events.INSERT, table)


def test_an_unknown_column_type_is_refused_with_the_name_of_the_column() -> None:
    table = _table()
    table.columns[1].type = 200

    with pytest.raises(ConnectError, match="Column a has the type 200"):
        _rows(events.INSERT, table)


def test_strings_without_known_collation_stay_bytes() -> None:
    table = _table()
    table.columns[3].collation = None

    [(_, first), _] = _rows(events.INSERT, table)[1]

    assert first is not None
    assert first[3] == b"\xe9"


def test_rows_of_mysql_have_extra_data_before_the_columns() -> None:
    body = struct.pack("<IHHH", 1, 0, 1, 2 + 3) + b"xyz" + bytes([1, 0xFF]) + b"\x00" + struct.pack("<i", -5)
    table = TableMap(1, "d", "t", [_table().columns[0]], b"")

    event = read_rows_event(30, memoryview(body))

    assert RowReaders(table, Charsets(), Calendar(adjust_years=True)).read(event) == [(None, (-5,))]


@pytest.mark.parametrize(("metadata", "expected"), [(0xFE05, (ColumnType.STRING, 5)), (0xEE2C, (ColumnType.STRING, 0x12C))])
def test_long_chars_borrow_bits_of_their_type(metadata: int, expected: tuple[int, int]) -> None:
    name = b"\x01d\x00\x01t\x00"
    body = bytes(6) + bytes(2) + name + bytes([1, ColumnType.STRING, 2]) + metadata.to_bytes(2, "big") + b"\x00"

    [column] = read_table_map(memoryview(body)).columns

    assert (column.type, column.metadata) == expected


_TAIL = '"f":10000000000.0,"s":"abc","num":1.5,"long name":null}'
_LONGER = '"f":10000000000.0,"s":"abc","z":{"y":1.25},"num":1.5,"long name":'


@pytest.mark.parametrize(
    ("packet", "before", "after"),
    [
        (
            mysql_events.REPLACE,
            (1, '{"x":1}', '{"a":[1,2,{"b":"ż"}],' + _TAIL, None, "a"),
            (1, '{"x":1}', '{"a":[1,2,{"b":"q"}],' + _TAIL, None, "a"),
        ),
        (
            mysql_events.REMOVE,
            (1, '{"x":1}', '{"a":[1,2,{"b":"q"}],' + _TAIL, None, "a"),
            (1, '{"x":1}', '{"a":[2,{"b":"q"}],' + _TAIL, None, "b"),
        ),
        (
            mysql_events.DATE_AND_DOCUMENT,
            (1, '{"x":2}', '{"a":["first",2,{"b":"q"}],' + _LONGER + "null}", None, "b"),
            (1, '{"x":2}', '{"a":["first",2,{"b":"q"}],' + _LONGER + '"2020-01-01"}', "{}", "b"),
        ),
    ],
    ids=["replace", "remove", "date and document"],
)
def test_changes_of_documents_are_applied_to_those_before(packet: bytes, before: Row, after: Row) -> None:
    event = read_rows_event(read_header(memoryview(packet)).type, _body(packet))
    table = read_table_map(_body(mysql_events.TABLE_MAP))
    readers = RowReaders(table, Charsets({255: "utf8mb4", 63: "binary"}), Calendar(adjust_years=True))

    assert event.partial
    assert readers.read(event) == [(before, after)]


def test_rows_without_columns_or_with_more_than_a_table_has_are_a_damaged_log() -> None:
    head = bytes(8) + b"\x02\x00"  # table id, flags, and extra data
    without = head + b"\x08" + b"\x00" + b"rows"
    event = read_rows_event(EventType.WRITE_ROWS, memoryview(without))
    with pytest.raises(ConnectError, match="rows without columns"):
        RowReaders(_table(), Charsets({8: "latin1"}), Calendar(adjust_years=True)).read(event)
    with pytest.raises(ConnectError, match=r"columns\. The binary log is damaged"):
        read_rows_event(EventType.WRITE_ROWS, memoryview(head + b"\xfe" + b"\xff" * 8))

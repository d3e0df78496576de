"""Source offsets name the start of the transaction and what of it has been read, as Debezium's do."""

from __future__ import annotations

from sluiceway.connectors.cdc.mysql.binlog.stream import StartPosition
from sluiceway.connectors.cdc.mysql.offsets import LogPosition


def _position() -> LogPosition:
    position = LogPosition("mariadb", "p")
    position.start_at(StartPosition("bin.000001", 100, "0-1-7"))
    position.seconds, position.server_id = 5, 1
    return position


def test_a_row_of_a_transaction() -> None:
    position = _position()
    position.begin("0-1-8", 120)
    position.complete_event()  # the GTID event
    position.complete_event()  # the table map

    position.row(0, 2)
    first = position.offset()
    position.row(1, 2)

    common = {"ts_sec": 5, "file": "bin.000001", "pos": 120, "gtids": "0-1-7", "server_id": 1, "event": 2}
    assert first == {**common, "row": 1}
    assert position.offset() == {**common, "row": 2}
    assert position.block("db", "t", row=1)["gtid"] == "0-1-8"


def test_after_the_commit() -> None:
    position = _position()
    position.begin("0-1-8", 120)
    position.complete_event()

    position.commit(300)

    assert position.offset() == {"ts_sec": 5, "file": "bin.000001", "pos": 300, "gtids": "0-1-8", "server_id": 1}
    assert position.start == StartPosition("bin.000001", 300, "0-1-8")


def test_a_stored_offset_is_continued() -> None:
    stored = {"ts_sec": 5, "file": "bin.000002", "pos": 9, "gtids": "0-1-7", "row": 3, "server_id": 1, "event": 2}
    position = LogPosition("mariadb", "p")

    position.load(stored)

    assert position.start == StartPosition("bin.000002", 9, "0-1-7")
    assert position.skips == (2, 3)
    assert position.offset() == stored


def test_a_snapshot_without_gtids() -> None:
    position = LogPosition("mysql", "p")
    position.start_at(StartPosition("bin.000001", 4, None))
    position.snapshot("INITIAL")

    assert position.offset() == {"ts_sec": 0, "file": "bin.000001", "pos": 4, "snapshot": "INITIAL"}
    assert position.block("db", None)["connector"] == "mysql"


def test_a_rotation_inside_a_transaction_keeps_its_start() -> None:
    position = _position()
    position.begin("0-1-8", 120)

    position.rotate("bin.000002", 4)

    assert position.start.file == "bin.000001"
    position.commit(50)
    assert position.start == StartPosition("bin.000002", 50, "0-1-8")

"""How far the log of MariaDB and MySQL has been read."""

from __future__ import annotations

from sluiceway.connectors.cdc.mysql.binlog.stream import StartPosition
from sluiceway.connectors.cdc.mysql.chunks import file_number, log_position
from sluiceway.connectors.cdc.mysql.offsets import LogPosition


def test_log_files_are_in_order_of_their_numbers() -> None:
    assert file_number("mysql-bin.1000000") > file_number("mysql-bin.999999")


def test_by_gtids_the_position_is_unknown_until_the_log_names_its_file() -> None:
    position = LogPosition("mariadb", "p")
    position.start_at(StartPosition("bin.000009", 500, "0-1-7"))  # perhaps a file of the server before a failover
    assert log_position(position) < (1, 4)

    position.rotate("bin.000003", 4)

    assert log_position(position) == (3, 4)


def test_without_gtids_the_position_is_known() -> None:
    position = LogPosition("mariadb", "p")
    position.start_at(StartPosition("bin.000009", 500))
    assert log_position(position) == (9, 500)

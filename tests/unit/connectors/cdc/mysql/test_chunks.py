"""Conditions on keys of MariaDB and MySQL."""

from __future__ import annotations

from decimal import Decimal

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.stream import StartPosition
from sluiceway.connectors.cdc.mysql.chunks import file_number, key_conditions, log_position
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, JdbcType, TableDefinition
from sluiceway.connectors.cdc.mysql.offsets import LogPosition

_TABLE = TableDefinition(
    TableId("d", "t"), (ColumnDefinition("a", JdbcType.BIGINT, "BIGINT"), ColumnDefinition("b", JdbcType.VARCHAR, "VARCHAR"))
)


def test_keys_of_several_columns_are_compared_in_order() -> None:
    conditions, parameters = key_conditions(_TABLE, ["a", "b"], ["1", "x"], ["9", "y"])
    greater = "((`a` > %s) OR (`a` = %s AND `b` > %s))"
    assert conditions == [greater, f"NOT {greater}"]
    assert parameters == [Decimal(1), Decimal(1), "x", Decimal(9), Decimal(9), "y"]


def test_without_bounds_there_is_no_condition() -> None:
    assert key_conditions(_TABLE, ["a"], None, None) == ([], [])


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

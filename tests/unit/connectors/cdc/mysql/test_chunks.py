"""How far the log of MariaDB and MySQL has been read, and by what columns a row is found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pymysql
import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.stream import StartPosition
from sluiceway.connectors.cdc.mysql.chunks import BinlogChunks, file_number, log_position
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


def _chunks(rows: list[tuple[str, str, str]]) -> BinlogChunks:
    common: Any = SimpleNamespace(common=SimpleNamespace(signals=SimpleNamespace(table=None)))
    server: Any = SimpleNamespace(rows=lambda *_: rows)
    nothing: Any = None
    return BinlogChunks(common, nothing, nothing, nothing, lambda: server)


@pytest.mark.parametrize(("code", "transient"), [(2013, True), (1213, True), (1317, False), (1969, False), (3024, False)])
def test_a_statement_that_the_server_has_ended_is_not_tried_again(code: int, transient: bool) -> None:
    assert _chunks([]).is_transient(pymysql.err.OperationalError(code, "")) is transient


@pytest.mark.parametrize(
    ("parts", "names", "unique"),
    [
        ([("a", "1")], ["a"], True),
        ([("a", "1"), ("b", "1")], ["B", "a"], True),
        ([("a", "1"), ("b", "1")], ["a"], False),
        ([("a", "1"), ("b", "0")], ["a"], False),  # b by a prefix, or nullable
        ([("a", "1"), ("b", "0")], ["a", "b"], False),
        ([("a", "1"), ("", "0")], ["a"], False),  # an expression
    ],
)
def test_columns_are_unique_if_they_have_all_parts_of_an_index(parts: Any, names: list[str], unique: bool) -> None:
    rows = [("PRIMARY", column, whole) for column, whole in parts]
    assert _chunks(rows).has_unique_key(TableId("d", "t"), names) == unique

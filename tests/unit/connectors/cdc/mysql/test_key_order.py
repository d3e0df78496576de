"""Keys of MariaDB and MySQL are compared as they are sorted."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.connection import Server
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, JdbcType, TableDefinition
from sluiceway.connectors.cdc.mysql.key_order import is_integer, key_order, may_be_long, too_long
from sluiceway.connectors.cdc.mysql.table_order import table_order
from sluiceway.errors import ConnectError

_LABELS = ("'z'", "'a'", "'b'")
_TABLE = TableDefinition(
    TableId("d", "t"),
    (
        ColumnDefinition("a", JdbcType.BIGINT, "BIGINT", optional=False),
        ColumnDefinition("b", JdbcType.VARCHAR, "VARCHAR", optional=False),
        ColumnDefinition("e", JdbcType.CHAR, "ENUM", optional=False, enum_values=_LABELS),
        ColumnDefinition("s", JdbcType.CHAR, "SET", optional=False, enum_values=_LABELS),
        ColumnDefinition("f", JdbcType.FLOAT, "FLOAT", optional=False),
        ColumnDefinition("fs", JdbcType.FLOAT, "FLOAT", length=9, scale=3, optional=False),
        ColumnDefinition("g", JdbcType.BIT, "BIT", length=24, optional=False),
        ColumnDefinition("y", JdbcType.INTEGER, "YEAR", optional=False),
        ColumnDefinition("o", JdbcType.INTEGER, "INT"),
        ColumnDefinition("j", JdbcType.OTHER, "JSON", optional=False),
        ColumnDefinition("p", JdbcType.OTHER, "POINT", optional=False),
        ColumnDefinition("u", JdbcType.OTHER, "UUID", optional=False),
    ),
)


def test_keys_of_several_columns_are_compared_in_order() -> None:
    assert key_order(_TABLE, ["a", "b"]).between(["1", "x"], ["9", "y"]) == [
        "(`a` > 1 or (`a` = 1 and `b` > 'x'))",
        "(`a` < 9 or (`a` = 9 and `b` <= 'y'))",
    ]


def test_a_text_with_an_index_of_its_beginning_is_compared_without_the_index() -> None:
    assert key_order(_TABLE, ["a", "b"], {"b"}).between(["1", "x"], ["9", "y"]) == [
        "(`a` > 1 or (`a` = 1 and concat(`b`) > 'x'))",
        "(`a` < 9 or (`a` = 9 and concat(`b`) <= 'y'))",
    ]


@pytest.mark.parametrize(("key", "asked"), [(["a"], False), (["o", "y"], False), (["a", "b"], True), (["a", "B"], True)])
def test_the_server_is_asked_for_such_indexes_of_texts_only(key: list[str], asked: bool) -> None:
    server = Mock(spec=Server, rows=Mock(return_value=[("B",), ("other",)]))
    conditions = table_order(server, _TABLE, key).between(["1"] * len(key), None)
    assert server.rows.called is asked
    assert ("concat(`b`) > '1'" in conditions[0]) is asked


def test_without_bounds_there_is_no_condition() -> None:
    assert key_order(_TABLE, ["a"]).between(None, None) == []


def test_a_key_with_fewer_values_stands_for_all_that_begin_with_it() -> None:
    assert key_order(_TABLE, ["a", "b"]).between(["1"], ["9"]) == ["`a` > 1", "`a` <= 9"]


@pytest.mark.parametrize(
    ("column", "value", "condition"),
    [
        ("e", "1", "`e` in (2, 3)"),
        ("e", "z", "`e` in (2, 3)"),  # as Debezium and earlier versions have it
        ("e", "3", "1 = 0"),
        ("s", "5", "cast(`s` as unsigned) > 5"),
        ("s", "z,b", "cast(`s` as unsigned) > 5"),
        ("f", "1.2345678806304932", "`f` > 1.2345678806304932e0"),
        ("f", "3.3999999521443642e38", "`f` > 3.3999999521443642e+38"),
        ("fs", "-1000000.0", "`fs` + 0e0 > -1000000.0e0"),  # rounded beyond what the type can have
        ("g", b"\x00\x01\x00", "`g` > 256"),
        ("g", "256", "`g` > 256"),
        ("g", "true", "`g` > 1"),
        ("y", "1970", "`y` > 1970"),
        ("j", "1", "cast(`j` as char) > '1'"),
        ("p", "000A", "hex(`p`) > '000A'"),  # MySQL compares no geometries
        ("u", "0-1", "`u` > '0-1'"),
        ("b", "a'\\%", "`b` > _utf8mb4 x'61275c25'"),
        ("b", b"\xff", "`b` > x'ff'"),
        ("a", "18446744073709551615", "`a` > 18446744073709551615"),
    ],
)
def test_values_are_compared_in_the_type_of_their_column(column: str, value: object, condition: str) -> None:
    assert key_order(_TABLE, [column]).between([value], None) == [condition]


@pytest.mark.parametrize(
    ("value", "greater", "not_greater"),
    [("7", "`o` > 7", "(`o` <= 7 or `o` is null)"), (None, "`o` is not null", "`o` is null")],
)
def test_nulls_come_first(value: str | None, greater: str, not_greater: str) -> None:
    order = key_order(_TABLE, ["o"])
    assert order.between([value], [value]) == [greater, not_greater]


@pytest.mark.parametrize(("members", "expression"), [(63, "`s`"), (64, "cast(`s` as unsigned)")])
def test_a_set_is_sorted_by_its_number_if_that_may_be_beyond_signed_ones(members: int, expression: str) -> None:
    column = ColumnDefinition("s", JdbcType.CHAR, "SET", enum_values=tuple(f"'m{number}'" for number in range(members)))
    assert key_order(TableDefinition(TableId("d", "t"), (column,)), ["s"]).by() == expression


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ConnectError, match="has no column nothing"):
        key_order(_TABLE, ["nothing"])


def test_a_year_is_no_integer_because_70_means_1970() -> None:
    assert [column.name for column in _TABLE.columns if is_integer(column)] == ["a", "o"]


@pytest.mark.parametrize(
    ("jdbc_type", "declared", "length", "long"),
    [
        (JdbcType.VARCHAR, "VARCHAR", 3072, False),
        (JdbcType.VARCHAR, "VARCHAR", 3073, True),
        (JdbcType.NVARCHAR, "NVARCHAR", 4000, True),
        (JdbcType.VARCHAR, "LONGTEXT", None, True),
        (JdbcType.VARBINARY, "VARBINARY", 3072, False),
        (JdbcType.VARBINARY, "VARBINARY", 9000, True),
        (JdbcType.BLOB, "BLOB", None, True),
        (JdbcType.OTHER, "JSON", None, True),
        (JdbcType.OTHER, "GEOMETRY", None, True),
        (JdbcType.OTHER, "UUID", None, False),
        (JdbcType.CHAR, "ENUM", 1, False),
        (JdbcType.DECIMAL, "DECIMAL", 65, False),
        (JdbcType.BIGINT, "BIGINT", None, False),
    ],
)
def test_values_of_an_index_are_never_too_long(jdbc_type: int, declared: str, length: int | None, long: bool) -> None:
    assert may_be_long(ColumnDefinition("c", jdbc_type, declared, length=length)) is long


def test_the_length_of_what_is_sorted_counts() -> None:
    assert "char_length(hex(`g`))" in too_long(ColumnDefinition("g", JdbcType.OTHER, "GEOMETRY"))
    assert "char_length(cast(`j` as char))" in too_long(ColumnDefinition("j", JdbcType.OTHER, "JSON"))

"""The dialect of MySQL and MariaDB."""

from __future__ import annotations

from sluiceway.connectors.jdbc.columns import ColumnType, Kind
from sluiceway.connectors.jdbc.dialects import dialect_of


def test_types_are_parsed_from_the_information_schema() -> None:
    dialect = dialect_of("mysql")
    assert dialect.parse_type("int(10) unsigned zerofill").kind is Kind.INT64
    assert dialect.parse_type("decimal(12,3)") == ColumnType(Kind.DECIMAL, 12, 3)
    assert dialect.parse_type("enum('a(b','c,d')").kind is Kind.STRING

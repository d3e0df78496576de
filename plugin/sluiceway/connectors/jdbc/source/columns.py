"""Finds and checks the incrementing and timestamp columns of a table or query. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.connectors.jdbc.columns import WHOLE_NUMBERS, Column, Kind
from sluiceway.connectors.jdbc.source.config import SourceConfig
from sluiceway.errors import ConnectError


def find_column(names: Sequence[str], wanted: str, table: str) -> str:
    """Return a configured column's name as it is in the database, ignoring case if necessary. Raises ConnectError."""
    wanted = wanted.rpartition(".")[2]
    for name in names:
        if name == wanted:
            return name
    for name in names:
        if name.lower() == wanted.lower():
            return name
    raise ConnectError(f"There is no column {wanted} in {table}; it has {', '.join(names)}.")


def incrementing_column(config: SourceConfig, columns: Sequence[Column], table: str) -> str:
    """Return the configured incrementing column, or else the only auto-increment column. Raises ConnectError."""
    if config.incrementing_column:
        return find_column([column.name for column in columns], config.incrementing_column, table)
    found = [column.name for column in columns if column.auto_increment]
    if len(found) != 1:
        raise ConnectError(
            f"{table} has {'no auto-increment column' if not found else 'several auto-increment columns'}; name the column with "
            "incrementing.column.name."
        )
    return found[0]


def check_not_null(config: SourceConfig, columns: Sequence[Column], incrementing: str, stamps: Sequence[str], table: str) -> None:
    """Raise ConnectError if rows could be missed because their number or timestamp is null (``validate.non.null``)."""
    if not config.validate_non_null or config.query:
        return
    nullable = {column.name for column in columns if column.nullable}
    if incrementing in nullable:
        raise ConnectError(
            f"The incrementing column {incrementing} of {table} may be null, and rows with null there are never read. "
            "Make it NOT NULL, or set validate.non.null=false."
        )
    if stamps and all(name in nullable for name in stamps):
        raise ConnectError(
            f"All timestamp columns ({', '.join(stamps)}) of {table} may be null, and rows with nulls there are never read. "
            "Make one NOT NULL, or set validate.non.null=false."
        )


def check_types(columns: Mapping[str, Column], incrementing: str, stamps: Sequence[str], table: str) -> None:
    """Raise ConnectError if a timestamp column does not hold timestamps, or the incrementing column does not hold integers."""
    for name in stamps:
        if columns[name].type.kind is not Kind.TIMESTAMP:
            raise ConnectError(
                f"Column {name} of {table} is of type {columns[name].type_text}, and timestamp.column.name needs timestamps."
            )
    number = columns[incrementing].type if incrementing else None
    if number is not None and not (number.kind in WHOLE_NUMBERS or (number.kind is Kind.DECIMAL and not number.scale)):
        raise ConnectError(
            f"Column {incrementing} of {table} is of type {columns[incrementing].type_text}, and incrementing.column.name "
            "needs whole numbers of 64 bits."
        )

"""The columns that a source goes by: found, and checked. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.connectors.jdbc.columns import WHOLE_NUMBERS, Column, Kind
from sluiceway.connectors.jdbc.source.config import SourceConfig
from sluiceway.errors import ConnectError


def found_column(names: Sequence[str], wanted: str, place: str) -> str:
    """Return a column's name as it is in the database, whatever its case in the config; raises ConnectError if it is missing."""
    wanted = wanted.rpartition(".")[2]
    for name in names:
        if name == wanted:
            return name
    for name in names:
        if name.lower() == wanted.lower():
            return name
    raise ConnectError(f"There is no column {wanted} in {place}; it has {', '.join(names)}.")


def incrementing_column(config: SourceConfig, columns: Sequence[Column], place: str) -> str:
    """Return the incrementing column: the configured one, or the only one that the database counts up. Raises ConnectError."""
    if config.incrementing_column:
        return found_column([column.name for column in columns], config.incrementing_column, place)
    counted = [column.name for column in columns if column.auto_increment]
    if len(counted) != 1:
        raise ConnectError(
            f"In {place} {'no column counts' if not counted else 'several columns count'} itself up; say which one it is with "
            "incrementing.column.name."
        )
    return counted[0]


def check_not_null(config: SourceConfig, columns: Sequence[Column], incrementing: str, stamps: Sequence[str], place: str) -> None:
    """Raise ConnectError where rows might be overlooked since what they are found by may be null (``validate.non.null``)."""
    if not config.validate_non_null or config.query:
        return
    nullable = {column.name for column in columns if column.nullable}
    if incrementing in nullable:
        raise ConnectError(
            f"The incrementing column {incrementing} of {place} may be null, and rows with a null there are never read. "
            "Make it NOT NULL, or set validate.non.null=false."
        )
    if stamps and all(name in nullable for name in stamps):
        raise ConnectError(
            f"All timestamp columns ({', '.join(stamps)}) of {place} may be null, and rows with nulls there are never read. "
            "Make one NOT NULL, or set validate.non.null=false."
        )


def check_types(columns: Mapping[str, Column], incrementing: str, stamps: Sequence[str], place: str) -> None:
    """Raise ConnectError for a timestamp column that is none, and an incrementing column without whole numbers."""
    for name in stamps:
        if columns[name].type.kind is not Kind.TIMESTAMP:
            raise ConnectError(
                f"Column {name} of {place} is of type {columns[name].type_text}, and timestamp.column.name needs timestamps."
            )
    number = columns[incrementing].type if incrementing else None
    if number is not None and not (number.kind in WHOLE_NUMBERS or (number.kind is Kind.DECIMAL and not number.scale)):
        raise ConnectError(
            f"Column {incrementing} of {place} is of type {columns[incrementing].type_text}, and incrementing.column.name "
            "needs whole numbers of 64 bits."
        )

"""Values of the columns that a Delta table is partitioned by, as texts and as names of folders. No I/O."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from urllib.parse import quote

import pyarrow as pa

from sluiceway.connectors.path_elements import NULL_PARTITION, check_length
from sluiceway.errors import ConnectError, DataError


def partition_text(value: object) -> str | None:
    """Return a partition value as Delta's log has it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def partition_folder(column: str, text: str | None) -> str:
    """Return the name of the folder of a partition's files."""
    return f"{plain(column)}={plain(text or NULL_PARTITION)}"


def plain(text: str) -> str:
    """Return a text for a path whose URI is the same: delta-rs's optimize does not decode the paths in Delta's log."""
    return quote(text, safe="").replace("%", "_").replace("~", "_")


def check_value(column: str, value: object) -> None:
    """Raise DataError for a partition value that delta-rs cannot write, or writes so that it cannot read the table any more.

    A MERGE and a compaction of delta-rs name folders by values, which have no exponents there, and take Hive's name of the null
    partition for null. It writes -0.5 as 0.-5. An empty text is null by Delta's protocol.
    """
    if isinstance(value, Decimal) and value < 0 and value != value.to_integral_value():
        raise DataError(
            f"{value} of field {column} cannot be written: delta-rs cannot read negative decimals with a fraction as values of a "
            "partition. Partition by another field."
        )
    if value in ("", NULL_PARTITION):
        raise DataError(f"{value!r} of field {column} cannot be written: as the value of a partition it means null.")
    finite = isinstance(value, float) and math.isfinite(value)
    check_length(partition_folder(column, f"{Decimal(repr(value)):f}" if finite else partition_text(value)))


def check_columns(table: str, schema: pa.Schema, columns: Iterable[str]) -> None:
    """Raise ConnectError for binary columns: writers and readers of Delta do not agree on the texts of their values."""
    for name in columns:
        type_ = schema.field(name).type
        if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
            raise ConnectError(
                f"Table {table} is partitioned by {name}, which is binary: writers and readers of Delta do not agree on the "
                "texts of such values. Partition by another column."
            )

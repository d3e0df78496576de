"""Changes of system-versioned tables of MariaDB, whose log also has their former rows."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.connectors.cdc.columns import UNAVAILABLE
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, JdbcType, TableDefinition
from sluiceway.connectors.cdc.mysql.log_tables import LogTable

ENDLESS, ENDED = 2_147_483_647_999_999, 1_795_000_000_000_000
ID = TableId("shop", "t")


def log_table(*names: str, hidden: tuple[str, ...] = ()) -> LogTable:
    columns = [ColumnDefinition(name, JdbcType.INTEGER, "INT") for name in names]
    columns += [ColumnDefinition(name, 0, "") for name in hidden]
    definition = TableDefinition(ID, tuple(columns), ("id",))
    return LogTable(b"", ID, definition, definition, None, None, captured=True)


VERSIONED = log_table("id", hidden=("row_start", "row_end"))


def row(number: int, row_end: Any) -> tuple[Any, ...]:
    return number, 1, row_end


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (("c", None, row(1, ENDLESS)), ("c", None, row(1, ENDLESS))),
        (("c", None, row(1, ENDED)), None),
        (("u", row(1, ENDLESS), row(2, ENDLESS)), ("u", row(1, ENDLESS), row(2, ENDLESS))),
        (("u", row(1, ENDLESS), row(1, ENDED)), ("d", row(1, ENDLESS), None)),
        (("u", row(1, UNAVAILABLE), row(2, UNAVAILABLE)), ("u", row(1, UNAVAILABLE), row(2, UNAVAILABLE))),
        (("d", row(1, ENDLESS), None), ("d", row(1, ENDLESS), None)),
        (("d", row(1, ENDED), None), None),
        (("c", None, row(1, 18_446_744_073_709_551_615)), ("c", None, row(1, 18_446_744_073_709_551_615))),
        (("c", None, row(1, 4711)), None),
    ],
)
def test_a_change_of_former_rows_is_none_of_the_current_ones(change: Any, wanted: Any) -> None:
    assert VERSIONED.current(*change) == wanted


def test_other_tables_have_all_changes() -> None:
    table = log_table("id", "row_start", "row_end")
    assert table.row_end is None
    assert table.current("c", None, row(1, ENDED)) == ("c", None, row(1, ENDED))

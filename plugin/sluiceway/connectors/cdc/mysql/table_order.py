"""Asks the server what the order of a table's rows depends on besides the types of the key."""

from __future__ import annotations

from collections.abc import Sequence

from sluiceway.connectors.cdc.key_order import KeyOrder
from sluiceway.connectors.cdc.mysql.connection import Server
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition
from sluiceway.connectors.cdc.mysql.key_order import key_order

_PREFIXED = """
select column_name from information_schema.statistics where table_schema = %s and table_name = %s and sub_part is not null
"""


def table_order(server: Server, table: TableDefinition, key: Sequence[str]) -> KeyOrder:
    """Return the order of a table's columns. Raises ConnectError if there is no such column."""
    columns = map(table.column, key)
    prefixed: set[str] = set()
    if any(column is not None and column.uses_charset for column in columns):
        prefixed = {str(name).lower() for (name,) in server.rows(_PREFIXED, tuple(table.id))}
    return key_order(table, key, prefixed)

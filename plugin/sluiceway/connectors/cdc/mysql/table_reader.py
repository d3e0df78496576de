"""Reads the definition of a table from the server while the log is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.connection import ConnectionSettings, Server
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import apply_statement
from sluiceway.connectors.cdc.mysql.offsets import LogPosition


@dataclass(frozen=True, slots=True)
class ReadTable:
    """A table as it is now on the server, or None. ``certain``: it was so behind the event of the log that is being read."""

    definition: TableDefinition | None
    certain: bool = True


TableReader = Callable[[TableId], ReadTable]


def read_table(connection: ConnectionSettings, tables: Tables, position: LogPosition, table: TableId) -> ReadTable:
    """Return a table's definition. It is certain if the log ends with the current event, after the definition was read."""
    with Server(connection) as server:
        statement = server.create_statement(table)
        locales = server.database_locales()
        end = server.position()
    certain = (end.file, end.position) == (position.file, position.next)
    if statement is None:
        return ReadTable(None, certain)
    charsets = {name: charset for name, (charset, _) in locales.items()}
    fresh = tables.empty(charsets)
    apply_statement(fresh, statement, table.schema)
    return ReadTable(fresh.get(table), certain)

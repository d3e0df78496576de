"""Handles changes of rows that the log has as statements, because a session's binlog_format is not ROW. They have no records."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.ddl.model import Tables
from sluiceway.connectors.cdc.mysql.ddl.tokens import Kind, NotUnderstoodError, Token, TokenReader, tokens
from sluiceway.errors import ConnectError

log = logging.getLogger(__name__)

_MODIFIERS = frozenset({"LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO"})
_CREATION = frozenset({"OR", "REPLACE", "TABLE", "IF", "NOT", "EXISTS"})
_SINGLE = frozenset({"INSERT", "REPLACE"})
# SELECT calls a function that changes rows; the log has no other queries.
_CHANGES = _SINGLE | {"UPDATE", "DELETE", "LOAD", "WITH", "SELECT", "CALL", "DO"}


class LoggedStatements:
    """Reports statements that change rows of captured tables, and counts them. One thread uses it; any may read ``count``."""

    def __init__(self, config: SourceConfig, tables: Tables) -> None:
        self._config = config
        self._tables = tables
        self._fails = config.choice("sluiceway.cdc.statements") == "fail"
        self.count = 0

    def handle(self, sql: str, database: str, place: str) -> bool:
        """Handle a statement at a place of the log. Return whether it only changes rows.

        Raises:
            ConnectError: it may change rows of captured tables, and the config says fail.
        """
        reader = _reader(sql)
        creates = _creates_from_query(reader, sql)
        word = reader.next.upper
        if not creates and word not in _CHANGES:
            return False
        changed = [table for table in self._changed(reader, sql, database) if self._config.captures(table)]
        if changed or (word == "SELECT" and self._config.captures_database(database)):
            self._report(", ".join(map(str, changed)) or f"tables of {database}", sql, place)
        return not creates

    def _report(self, changed: str, sql: str, place: str) -> None:
        self.count += 1
        message = (
            f"The binary log has a statement at {place} instead of the rows of {changed} that it changes: '{sql:.200}'. "
            "Set binlog_format=ROW for all sessions, and take a snapshot of the table."
        )
        if self._fails:
            raise ConnectError(f"{message} To go on without these changes, set sluiceway.cdc.statements=warn.")
        log.warning("%s The changes have no records.", message)

    def _changed(self, reader: TokenReader, sql: str, database: str) -> Iterator[TableId]:
        """Yield the table that a statement names as its target; of others, all known tables that it names."""
        target = _target(reader, database)
        if target is not None:
            yield target
            return
        found = set(_named(sql, database))
        yield from sorted(table for table in self._tables.tables if table in found)


def _reader(sql: str) -> TokenReader:
    reader = TokenReader(sql)
    if reader.skip("SET", "STATEMENT"):
        while not reader.at_end and not reader.skip("FOR"):
            reader.take()
    while reader.skip("("):
        pass
    return reader


def _creates_from_query(reader: TokenReader, sql: str) -> bool:
    """Whether CREATE TABLE fills the table by a query: with rows in the log, it would be there without the query."""
    creates = reader.at("CREATE", "TABLE") or reader.at("CREATE", "OR", "REPLACE", "TABLE")
    return creates and any(token.kind is Kind.WORD and token.upper == "SELECT" for token in tokens(sql))


def _target(reader: TokenReader, database: str) -> TableId | None:
    if reader.at_any(_SINGLE):
        reader.take()
        while reader.at_any(_MODIFIERS):
            reader.take()
    elif reader.at("LOAD"):
        while not reader.at_end and not reader.skip("INTO", "TABLE"):
            reader.take()
    elif reader.skip("CREATE"):
        while reader.at_any(_CREATION):
            reader.take()
    else:
        return None
    try:
        return TableId(*reader.qualified(database))
    except NotUnderstoodError:
        return None


def _named(sql: str, database: str) -> Iterator[TableId]:
    names: list[Token] = [each for each in tokens(sql) if each.kind in (Kind.NAME, Kind.WORD) or each.text == "."]
    for index, token in enumerate(names):
        if token.text == ".":
            continue
        yield TableId(database, token.name)
        if index > 1 and names[index - 1].text == ".":
            yield TableId(names[index - 2].name, token.name)

"""Handles changes of rows that the log has as statements, because a session's binlog_format is not ROW. They have no records."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.config import SourceConfig
from sluiceway.connectors.cdc.mysql.ddl.model import Tables
from sluiceway.connectors.cdc.mysql.ddl.tokens import Kind, NotUnderstoodError, Token, TokenReader, named_tables, tokens
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
        self._temporary: set[TableId] = set()
        self.count = 0

    def handle(self, sql: str, database: str, place: str) -> bool:
        """Handle a statement at a place of the log. Return whether it only changes rows.

        Raises:
            ConnectError: it may change rows of captured tables, and the config says fail.
        """
        reader = _reader(sql, mariadb=self._tables.mariadb)
        creates = _creates_from_query(reader)
        word = reader.next.upper
        if not creates and word not in _CHANGES:
            self._note_temporary(reader, database)
            return False
        target = self._target(reader, database)
        known = self._tables.tables.keys() | self._temporary
        named = sorted(known.intersection(self._named(sql, database))) if target is None else [target]
        captured = [each for each in named if self._config.captures(each) and each not in self._temporary]
        hides = word == "SELECT" or not (creates or self._config.only_captured_tables or known.intersection(named))
        schema = self._tables.name(database) if target is None else target.schema
        if captured:
            self._report(", ".join(map(str, captured)), sql, place)
        elif hides and self._config.captures_database(schema):
            self._report(f"tables of {schema}", sql, place)  # by a function, or by a view
        return not creates

    def take_back(self, sql: str, place: str) -> None:
        """Report a ROLLBACK at a place of the log behind rows of captured tables, which have records by then.

        MariaDB logs such rows of transactions that create temporary tables, or change tables without transactions, too.
        """
        log.warning(
            "The statement '%.200s' in the binary log at %s takes changes back that have records. Take a snapshot of the tables "
            "of the transaction.",
            sql,
            place,
        )

    def _note_temporary(self, reader: TokenReader, database: str) -> None:
        """Note temporary tables, of which a log without rows has the statements, too."""
        if reader.skip("CREATE"):
            reader.skip("OR", "REPLACE")
            note = self._temporary.add
        else:
            reader.skip("DROP")
            note = self._temporary.discard
        if not reader.skip("TEMPORARY", "TABLE"):
            return
        while reader.at_any(_CREATION):
            reader.take()
        note(self._tables.id(*reader.qualified(database)))
        while reader.skip(","):
            note(self._tables.id(*reader.qualified(database)))

    def _target(self, reader: TokenReader, database: str) -> TableId | None:
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
            return self._tables.id(*reader.qualified(database))
        except NotUnderstoodError:
            return None

    def _named(self, sql: str, database: str) -> Iterator[TableId]:
        return (self._tables.id(*each) for each in named_tables(sql, database, mariadb=self._tables.mariadb))

    def _report(self, changed: str, sql: str, place: str) -> None:
        self.count += 1
        message = (
            f"The binary log has a statement at {place} instead of the rows of {changed} that it changes: '{sql:.200}'. "
            "Set binlog_format=ROW for all sessions, and take a snapshot of the table."
        )
        if self._fails:
            raise ConnectError(f"{message} To go on without these changes, set sluiceway.cdc.statements=warn.")
        log.warning("%s The changes have no records.", message)


def _reader(sql: str, *, mariadb: bool) -> TokenReader:
    reader = TokenReader(sql, mariadb=mariadb)
    if reader.skip("SET", "STATEMENT"):
        while not reader.at_end and not reader.skip("FOR"):
            reader.take()
    if reader.skip("ANALYZE") and reader.skip("FORMAT", "="):
        reader.take()
    while reader.skip("("):
        pass
    return reader


def _creates_from_query(reader: TokenReader) -> bool:
    """Whether CREATE TABLE fills the table by a query: with rows in the log, it would be there without the query."""
    creates = reader.at("CREATE", "TABLE") or reader.at("CREATE", "OR", "REPLACE", "TABLE")
    found = tokens(reader.sql, mariadb=reader.mariadb) if creates else []
    return any(map(_begins_query, *(found[index:] for index in range(3))))


def _begins_query(before: Token, token: Token, after: Token) -> bool:
    """Whether a token of CREATE TABLE begins a query. VALUES of partitions stand before LESS or IN."""
    if token.kind is not Kind.WORD:
        return False
    if token.upper == "TABLE":
        return before.upper not in ("CREATE", "REPLACE")
    return token.upper == "SELECT" or (token.upper == "VALUES" and after.upper in ("(", "ROW"))

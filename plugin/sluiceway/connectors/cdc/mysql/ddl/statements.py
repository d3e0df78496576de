"""Applies DDL statements to the model of tables, and returns what they changed. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.ddl.alter import alter_table, read_index_columns
from sluiceway.connectors.cdc.mysql.ddl.columns import read_column
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.ddl.tokens import Kind, NotUnderstoodError, TokenReader

_KEYS = frozenset({"KEY", "INDEX", "FULLTEXT", "SPATIAL", "CHECK", "FOREIGN", "PERIOD", "LIKE", "VECTOR"})


class ChangeType(Enum):
    """Types of schema changes, as schema change records name them."""

    CREATE = "CREATE"
    ALTER = "ALTER"
    DROP = "DROP"
    TRUNCATE = "TRUNCATE"
    DATABASE = "DATABASE"
    SET = "SET"


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a statement. ``table`` is None for changes of databases and variables.

    ``definition`` is the table after the change; None if it is dropped, or if the parser could not follow the statement.
    """

    type: ChangeType
    database: str
    ddl: str
    table: TableId | None = None
    previous: TableId | None = None
    definition: TableDefinition | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The changes of a statement; ``unread`` are tables to read again from the server, because the parser could not follow."""

    changes: tuple[Change, ...] = ()
    unread: tuple[TableId, ...] = ()


def apply_statement(tables: Tables, sql: str, database: str) -> Outcome:
    """Apply a statement to the tables. A statement without changes of tables or databases has no changes.

    Args:
        tables: the model, which is changed.
        sql: the statement.
        database: the current database, for names without one.
    """
    reader = TokenReader(sql)
    if reader.skip("SET", "STATEMENT"):
        while not reader.at_end and not reader.skip("FOR"):
            reader.take()
    statement = _Statement(tables, reader, database)
    for words, handler in _HANDLERS:
        if reader.skip(*words):
            return handler(statement)
    return Outcome()


class _Statement:
    """One statement while it is applied."""

    def __init__(self, tables: Tables, reader: TokenReader, database: str) -> None:
        self.tables = tables
        self.reader = reader
        self.database = database
        self.sql = reader.sql

    def table_id(self) -> TableId:
        return TableId(*self.reader.qualified(self.database))

    def create(self) -> Outcome:
        reader = self.reader
        replaces = reader.skip("OR", "REPLACE")
        if reader.at_any(("DATABASE", "SCHEMA")):
            reader.take()
            return self.database_change(create=True)
        unique = reader.skip("UNIQUE")
        if reader.skip("INDEX"):
            return self.create_index(unique=unique)
        reader.skip("TEMPORARY")
        if not reader.skip("TABLE"):
            return Outcome()
        reader.skip("IF", "NOT", "EXISTS")
        table = self.table_id()
        if self.tables.get(table) is not None and not replaces:
            return Outcome()
        try:
            definition = self._table_definition(table)
        except (NotUnderstoodError, ValueError):
            definition = None
        if definition is None:
            self.tables.remove(table)
            return Outcome((Change(ChangeType.CREATE, table.schema, self.sql, table),), (table,))
        self.tables.put(definition)
        return Outcome((Change(ChangeType.CREATE, table.schema, self.sql, table, definition=definition),))

    def _table_definition(self, table: TableId) -> TableDefinition | None:
        """Read what follows the table's name; None for tables whose columns come from a query."""
        reader = self.reader
        if reader.skip("LIKE") or (reader.at("(", "LIKE") and reader.skip("(", "LIKE")):
            original = self.tables.get(self.table_id())
            return None if original is None else replace(original, id=table)
        if not reader.skip("("):
            return None
        result = TableDefinition(table)
        while not reader.skip(")"):
            result = self._table_item(result)
            if not reader.skip(",") and not reader.at(")"):
                raise NotUnderstoodError(f"comma expected at {reader.next.text!r}")
        charset, comment, has_query = self._options()
        if has_query:
            return None
        result = replace(result, charset=charset or self.tables.charset(table.schema), comment=comment)
        return self.tables.commented(result.with_charsets())

    def _table_item(self, table: TableDefinition) -> TableDefinition:
        """Read a column, a key or a constraint."""
        reader = self.reader
        if reader.next.kind is Kind.WORD:
            if reader.skip("CONSTRAINT") and not reader.at_any(("PRIMARY", "UNIQUE", "CHECK", "FOREIGN")):
                reader.identifier()
            if reader.skip("PRIMARY", "KEY"):
                return table.with_key(read_index_columns(reader))
            if reader.at("UNIQUE"):
                reader.take()
                return table.with_unique_key(read_index_columns(reader))
            if reader.at_any(_KEYS) and self._is_key():
                reader.skip_item()
                return table
        parsed = read_column(reader, reader.identifier())
        table = replace(table, columns=(*table.columns, parsed.definition))
        if parsed.primary:
            return table.with_key([parsed.definition.name])
        if parsed.unique and not table.primary_key:
            return replace(table, primary_key=(parsed.definition.name,))
        return table

    def _is_key(self) -> bool:
        """Tell a key from a column with a keyword's name: a column's name is followed by its type."""
        following = self.reader.peek()
        return (
            self.reader.at_any(("FOREIGN", "FULLTEXT", "SPATIAL", "PERIOD"))
            or following.kind is Kind.NAME
            or (
                following.text == "("
                or (
                    self.reader.peek(2).text == "("
                    and following.kind is Kind.WORD
                    and self.reader.peek(3).kind is not Kind.NUMBER
                )
            )
        )

    def _options(self) -> tuple[str | None, str | None, bool]:
        """Read the table options; return charset, comment, and whether a query follows."""
        reader = self.reader
        charset = collation = comment = None
        while not reader.at_end:
            if reader.skip("CHARACTER", "SET") or reader.skip("CHARSET"):
                reader.skip("=")
                charset = reader.identifier()
            elif reader.skip("COLLATE"):
                reader.skip("=")
                collation = reader.identifier()
            elif reader.skip("COMMENT"):
                reader.skip("=")
                comment = reader.take().text[1:-1]
            elif reader.at_any(("SELECT", "WITH", "VALUES")) and not reader.at("WITH", "SYSTEM"):
                return charset, comment, True
            elif reader.skip("PARTITION", "BY"):
                break
            else:
                reader.take()
        return charset or (collation and collation.partition("_")[0]), comment, False

    def create_index(self, *, unique: bool) -> Outcome:
        reader = self.reader
        reader.skip("IF", "NOT", "EXISTS")
        reader.identifier()
        if reader.skip("USING"):
            reader.take()
        reader.expect("ON")
        table = self.tables.get(self.table_id())
        if not unique or table is None or table.primary_key:
            return Outcome()
        changed = table.with_unique_key(read_index_columns(reader))
        self.tables.put(changed)
        return Outcome((Change(ChangeType.ALTER, table.id.schema, self.sql, table.id, definition=changed),))

    def database_change(self, *, create: bool) -> Outcome:
        """CREATE and ALTER DATABASE."""
        reader = self.reader
        if create:
            reader.skip("IF", "NOT", "EXISTS")
        name = self.database if reader.at_any(("CHARACTER", "CHARSET", "COLLATE", "DEFAULT")) else reader.identifier()
        charset, _, _ = self._options()
        if charset:
            self.tables.charsets[name] = charset
        return Outcome((Change(ChangeType.DATABASE, name, self.sql),))

    def alter_database(self) -> Outcome:
        return self.database_change(create=False)

    def drop_database(self) -> Outcome:
        self.reader.skip("IF", "EXISTS")
        name = self.reader.identifier()
        self.tables.remove_database(name)
        return Outcome((Change(ChangeType.DATABASE, name, self.sql),))

    def use(self) -> Outcome:
        return Outcome((Change(ChangeType.DATABASE, self.reader.identifier(), self.sql),))

    def set_variables(self) -> Outcome:
        for match in ("character_set_server",):
            self._set_charset(match)
        return Outcome((Change(ChangeType.SET, self.database, self.sql),))

    def _set_charset(self, variable: str) -> None:
        reader = self.reader
        while not reader.at_end:
            token = reader.take()
            if token.text.lower().removeprefix("@@global.").removeprefix("@@") == variable and reader.skip("="):
                self.tables.server_charset = reader.identifier()

    def drop_table(self) -> Outcome:
        reader = self.reader
        reader.skip("IF", "EXISTS")
        prefix = self.sql[: reader.next.start]
        changes = []
        while not reader.at_end:
            start = reader.next.start
            table = self.table_id()
            self.tables.remove(table)
            text = prefix + self.sql[start : reader.peek(-1).end]
            changes.append(Change(ChangeType.DROP, table.schema, text, table))
            if not reader.skip(","):
                break
        return Outcome(tuple(changes))

    def truncate(self) -> Outcome:
        self.reader.skip("TABLE")
        table = self.table_id()
        return Outcome((Change(ChangeType.TRUNCATE, table.schema, self.sql, table, definition=self.tables.get(table)),))

    def rename_table(self) -> Outcome:
        reader = self.reader
        reader.skip("IF", "EXISTS")
        prefix = self.sql[: reader.next.start]
        changes, unread = [], []
        while not reader.at_end:
            start = reader.next.start
            old = self.table_id()
            while not reader.at_end and not reader.skip("TO"):
                reader.take()  # WAIT n, NOWAIT
            new = self.table_id()
            moved = self._move(old, new)
            if moved is None:
                unread.append(new)
            text = prefix + self.sql[start : reader.peek(-1).end]
            changes.append(Change(ChangeType.ALTER, new.schema, text, new, old, moved))
            if not reader.skip(","):
                break
        return Outcome(tuple(changes), tuple(unread))

    def _move(self, old: TableId, new: TableId) -> TableDefinition | None:
        definition = self.tables.get(old)
        self.tables.remove(old)
        if definition is None:
            return None
        moved = replace(definition, id=new)
        self.tables.put(moved)
        return moved

    def alter(self) -> Outcome:
        reader = self.reader
        for word in ("ONLINE", "OFFLINE", "IGNORE"):
            reader.skip(word)
        if not reader.skip("TABLE"):
            return Outcome()
        reader.skip("IF", "EXISTS")
        table = self.table_id()
        definition = self.tables.get(table)
        if definition is None:
            return Outcome()
        try:
            changed = self.tables.commented(alter_table(definition, reader, self.tables))
        except (NotUnderstoodError, ValueError):
            self.tables.remove(table)
            return Outcome((Change(ChangeType.ALTER, table.schema, self.sql, table),), (table,))
        if changed.id != table:
            self.tables.remove(table)
        self.tables.put(changed)
        # Debezium names the table before only for RENAME TABLE.
        return Outcome((Change(ChangeType.ALTER, changed.id.schema, self.sql, changed.id, definition=changed),))


_HANDLERS: tuple[tuple[tuple[str, ...], Callable[[_Statement], Outcome]], ...] = (
    (("CREATE",), _Statement.create),
    (("ALTER", "DATABASE"), _Statement.alter_database),
    (("ALTER", "SCHEMA"), _Statement.alter_database),
    (("ALTER",), _Statement.alter),
    (("DROP", "DATABASE"), _Statement.drop_database),
    (("DROP", "SCHEMA"), _Statement.drop_database),
    (("DROP", "TABLE"), _Statement.drop_table),
    (("DROP", "TABLES"), _Statement.drop_table),
    (("DROP", "TEMPORARY", "TABLE"), _Statement.drop_table),
    (("TRUNCATE",), _Statement.truncate),
    (("RENAME", "TABLE"), _Statement.rename_table),
    (("RENAME", "TABLES"), _Statement.rename_table),
    (("USE",), _Statement.use),
    (("SET",), _Statement.set_variables),
)

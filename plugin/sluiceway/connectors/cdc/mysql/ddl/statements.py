"""Applies DDL statements to the model of tables, and returns what they changed. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.ddl.alter import alter_table, read_index_columns, without_index
from sluiceway.connectors.cdc.mysql.ddl.clauses import skip_option, skip_wait
from sluiceway.connectors.cdc.mysql.ddl.columns import charset_of, read_column
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.ddl.tokens import Kind, NotUnderstoodError, TokenReader, named_tables

_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "AS", "IGNORE", "REPLACE"})
_KEYS = frozenset({"KEY", "INDEX", "FULLTEXT", "SPATIAL", "CHECK", "FOREIGN", "PERIOD", "LIKE", "VECTOR"})


class ChangeType(Enum):
    """Types of schema changes, as schema change records name them."""

    CREATE = "CREATE"
    ALTER = "ALTER"
    DROP = "DROP"
    TRUNCATE = "TRUNCATE"
    DATABASE = "DATABASE"
    SET = "SET"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class TableChange:
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

    changes: tuple[TableChange, ...] = ()
    unread: tuple[TableId, ...] = ()


def apply_statement(tables: Tables, sql: str, database: str) -> Outcome:
    """Apply a statement to the tables. A statement without changes of tables or databases has no changes.

    Args:
        tables: the model, which is changed.
        sql: the statement.
        database: the current database, for names without one.
    """
    reader = TokenReader(sql, mariadb=tables.mariadb)
    if reader.skip("SET", "STATEMENT"):
        while not reader.at_end and not reader.skip("FOR"):
            reader.take()
    statement = _Statement(tables, reader, database)
    for words, handler in _HANDLERS:
        if reader.skip(*words):
            try:
                outcome = handler(statement)
                reader.expect_end()
            except (NotUnderstoodError, ValueError, IndexError):
                return statement.not_understood()
            return outcome
    return Outcome()


class _Statement:
    """One statement while it is applied."""

    def __init__(self, tables: Tables, reader: TokenReader, database: str) -> None:
        self.tables = tables
        self.reader = reader
        self.database = database
        self.sql = reader.sql
        self._known = frozenset(tables.tables)
        self._primary_key: list[str] = []

    def table_id(self) -> TableId:
        return self.tables.id(*self.reader.qualified(self.database))

    def not_understood(self) -> Outcome:
        """Return the outcome of a statement that the parser cannot follow: all tables that it names must be read again."""
        named = self._named_tables()
        for table in named:
            self.tables.remove(table)
        changes = tuple(TableChange(ChangeType.ALTER, table.schema, self.sql, table) for table in named)
        return Outcome(changes, named)

    def _named_tables(self) -> tuple[TableId, ...]:
        named = (self.tables.id(*each) for each in named_tables(self.sql, self.database, mariadb=self.tables.mariadb))
        return tuple(dict.fromkeys(table for table in named if table in self._known))

    def create(self) -> Outcome:
        reader = self.reader
        replaces = reader.skip("OR", "REPLACE")
        if reader.at_any(("DATABASE", "SCHEMA")):
            reader.take()
            return self.database_change(create=True)
        unique = reader.skip("UNIQUE")
        if reader.skip("INDEX"):
            return self.create_index(unique=unique)
        if not reader.skip("TABLE"):
            return self._no_change()  # temporary tables too: the log has no rows of them
        checked = reader.skip("IF", "NOT", "EXISTS")
        table = self.table_id()
        if self.tables.get(table) is not None and checked and not replaces:
            return self._no_change()
        try:
            definition = self._table_definition(table)
        except (NotUnderstoodError, ValueError):
            definition = None
        if definition is None:
            self.tables.remove(table)
            reader.skip_rest()
            return Outcome((TableChange(ChangeType.CREATE, table.schema, self.sql, table),), (table,))
        self.tables.put(definition)
        return Outcome((TableChange(ChangeType.CREATE, table.schema, self.sql, table, definition=definition),))

    def _no_change(self) -> Outcome:
        self.reader.skip_rest()
        return Outcome()

    def _table_definition(self, table: TableId) -> TableDefinition | None:
        """Read what follows the table's name; None for tables whose columns come from a query."""
        reader = self.reader
        if reader.skip("LIKE") or reader.skip("(", "LIKE"):
            original = self.tables.get(self.table_id())
            reader.skip(")")
            return None if original is None else replace(original, id=table)
        if not reader.skip("("):
            return None
        result = TableDefinition(table)
        while not reader.skip(")"):
            result = self._table_item(result)
            if not reader.skip(",") and not reader.at(")"):
                raise NotUnderstoodError(f"comma expected at {reader.next.text!r}")
        if self._primary_key:
            result = result.with_key(self._primary_key)
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
                self._primary_key = read_index_columns(reader)  # its columns may follow
                return table
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
        """Tell a key from a column with the name of a keyword that is not reserved."""
        following = self.reader.peek().upper
        return {"PERIOD": following == "FOR", "VECTOR": following in ("INDEX", "KEY")}.get(self.reader.next.upper, True)

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
            elif reader.skip("PARTITION", "BY"):
                while not reader.at_end and not reader.at_any(_QUERIES):
                    reader.skip_part()
            elif reader.at_any(_QUERIES) and not reader.at("WITH", "SYSTEM"):
                return charset, comment, True
            elif not (reader.skip(",") or reader.skip("DEFAULT") or skip_option(reader)):
                raise NotUnderstoodError(f"option expected at {reader.next.text!r}")
        return charset or (collation and charset_of(collation)), comment, False

    def create_index(self, *, unique: bool) -> Outcome:
        reader = self.reader
        reader.skip("IF", "NOT", "EXISTS")
        reader.identifier()
        if reader.skip("USING"):
            reader.take()
        reader.expect("ON")
        table = self.tables.get(self.table_id())
        skip_wait(reader)
        if not unique or table is None or table.primary_key:
            return self._no_change()
        changed = table.with_unique_key(read_index_columns(reader))
        reader.skip_rest()
        self.tables.put(changed)
        return Outcome((TableChange(ChangeType.ALTER, table.id.schema, self.sql, table.id, definition=changed),))

    def database_change(self, *, create: bool) -> Outcome:
        """CREATE and ALTER DATABASE."""
        reader = self.reader
        if create:
            reader.skip("IF", "NOT", "EXISTS")
        name = self.database if reader.at_any(("CHARACTER", "CHARSET", "COLLATE", "DEFAULT")) else self._database_name()
        charset = self._database_charset()
        if charset:
            self.tables.charsets[name] = charset
        return Outcome((TableChange(ChangeType.DATABASE, name, self.sql),))

    def _database_name(self) -> str:
        return self.tables.name(self.reader.identifier())

    def _database_charset(self) -> str | None:
        reader = self.reader
        charset = None
        while not reader.at_end:
            if reader.skip("CHARACTER", "SET") or reader.skip("CHARSET"):
                reader.skip("=")
                charset = reader.identifier()
            elif reader.skip("COLLATE"):
                reader.skip("=")
                charset = charset or charset_of(reader.identifier())
            else:
                reader.take()
        return charset

    def alter_database(self) -> Outcome:
        return self.database_change(create=False)

    def drop_database(self) -> Outcome:
        self.reader.skip("IF", "EXISTS")
        name = self._database_name()
        self.tables.remove_database(name)
        self.reader.skip_rest()
        return Outcome((TableChange(ChangeType.DATABASE, name, self.sql),))

    def use(self) -> Outcome:
        name = self._database_name()
        self.reader.skip_rest()
        return Outcome((TableChange(ChangeType.DATABASE, name, self.sql),))

    def set_variables(self) -> Outcome:
        self._set_charset("character_set_server")
        return Outcome((TableChange(ChangeType.SET, self.database, self.sql),))

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
            table = self.table_id()
            self.tables.remove(table)
            text = f"{prefix}`{table.schema}`.`{table.table}`"
            changes.append(TableChange(ChangeType.DROP, table.schema, text, table))
            if not reader.skip(","):
                break
        if not (reader.skip("RESTRICT") or reader.skip("CASCADE")):
            skip_wait(reader)
        skip_wait(reader)
        return Outcome(tuple(changes))

    def drop_index(self) -> Outcome:
        """DROP INDEX: changes the key only if the index is that of the primary key."""
        reader = self.reader
        reader.skip("IF", "EXISTS")
        name = reader.identifier()
        reader.expect("ON")
        table = self.tables.get(self.table_id())
        reader.skip_rest()
        if table is None or (changed := without_index(table, name)) is table:
            return Outcome()
        self.tables.put(changed)
        return Outcome((TableChange(ChangeType.ALTER, table.id.schema, self.sql, table.id, definition=changed),))

    def truncate(self) -> Outcome:
        self.reader.skip("TABLE")
        table = self.table_id()
        skip_wait(self.reader)
        return Outcome((TableChange(ChangeType.TRUNCATE, table.schema, self.sql, table, definition=self.tables.get(table)),))

    def rename_table(self) -> Outcome:
        reader = self.reader
        reader.skip("IF", "EXISTS")
        prefix = self.sql[: reader.next.start]
        changes, unread = [], []
        while not reader.at_end:
            start = reader.next.start
            old = self.table_id()
            skip_wait(reader)
            reader.expect("TO")
            new = self.table_id()
            moved = self._move(old, new)
            if moved is None:
                unread.append(new)
            text = prefix + self.sql[start : reader.peek(-1).end]
            changes.append(TableChange(ChangeType.ALTER, new.schema, text, new, old, moved))
            if not reader.skip(","):
                break
        return Outcome(tuple(map(self._at_the_end, changes)), tuple(unread))

    def _at_the_end(self, change: TableChange) -> TableChange:
        """Return a renaming with the table that has the new name behind the whole statement; it is no change without one."""
        definition = None if change.table is None else self.tables.get(change.table)
        return replace(change, type=ChangeType.NONE if definition is None else change.type, definition=definition)

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
            return self._no_change()
        reader.skip("IF", "EXISTS")
        table = self.table_id()
        definition = self.tables.get(table)
        if definition is None:
            return self._no_change()
        try:
            changed = self.tables.commented(alter_table(definition, reader, self.tables))
        except (NotUnderstoodError, ValueError):
            self.tables.remove(table)
            reader.skip_rest()
            return Outcome((TableChange(ChangeType.ALTER, table.schema, self.sql, table),), (table,))
        if changed.id != table:
            self.tables.remove(table)
        self.tables.put(changed)
        # Debezium names the table before only for RENAME TABLE.
        return Outcome((TableChange(ChangeType.ALTER, changed.id.schema, self.sql, changed.id, definition=changed),))


_HANDLERS: tuple[tuple[tuple[str, ...], Callable[[_Statement], Outcome]], ...] = (
    (("CREATE",), _Statement.create),
    (("ALTER", "DATABASE"), _Statement.alter_database),
    (("ALTER", "SCHEMA"), _Statement.alter_database),
    (("ALTER",), _Statement.alter),
    (("DROP", "DATABASE"), _Statement.drop_database),
    (("DROP", "SCHEMA"), _Statement.drop_database),
    (("DROP", "TABLE"), _Statement.drop_table),
    (("DROP", "TABLES"), _Statement.drop_table),
    (("DROP", "TEMPORARY"), _Statement._no_change),
    (("DROP", "INDEX"), _Statement.drop_index),
    (("TRUNCATE",), _Statement.truncate),
    (("RENAME", "TABLE"), _Statement.rename_table),
    (("RENAME", "TABLES"), _Statement.rename_table),
    (("USE",), _Statement.use),
    (("SET",), _Statement.set_variables),
)

"""Models tables as DDL statements declare them. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sluiceway.connectors.cdc.filters import TableId


class JdbcType:
    """Type codes of ``java.sql.Types``, which schema changes contain."""

    BIT = -7
    BIGINT = -5
    VARBINARY = -3
    BINARY = -2
    CHAR = 1
    DECIMAL = 3
    NUMERIC = 2
    INTEGER = 4
    SMALLINT = 5
    FLOAT = 6
    REAL = 7
    DOUBLE = 8
    VARCHAR = 12
    BOOLEAN = 16
    DATE = 91
    TIME = 92
    TIMESTAMP = 93
    OTHER = 1111
    TIMESTAMP_WITH_TIMEZONE = 2014
    BLOB = 2004
    NCHAR = -15
    NVARCHAR = -9


_WITH_CHARSET = frozenset({JdbcType.CHAR, JdbcType.VARCHAR, JdbcType.NCHAR, JdbcType.NVARCHAR})


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """A column. ``charset`` is None until the column's table gives it its own; ``enum_values`` are literals with their quotes."""

    name: str
    jdbc_type: int
    type_name: str
    length: int | None = None
    scale: int | None = None
    charset: str | None = None
    optional: bool = True
    auto_incremented: bool = False
    comment: str | None = None
    has_default: bool = True
    default: str | None = None
    enum_values: tuple[str, ...] = ()

    @property
    def uses_charset(self) -> bool:
        return self.jdbc_type in _WITH_CHARSET

    def required(self) -> ColumnDefinition:
        """Return the column as part of a primary key, which cannot be null."""
        if not self.optional:
            return self
        return replace(self, optional=False, has_default=self.default is not None)


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table with its columns in order."""

    id: TableId
    columns: tuple[ColumnDefinition, ...] = ()
    primary_key: tuple[str, ...] = ()
    charset: str | None = None
    comment: str | None = None

    def position(self, column: str) -> int | None:
        """Return the index of a column; names of columns ignore case."""
        wanted = column.lower()
        return next((index for index, each in enumerate(self.columns) if each.name.lower() == wanted), None)

    def column(self, name: str) -> ColumnDefinition | None:
        position = self.position(name)
        return None if position is None else self.columns[position]

    def with_charsets(self) -> TableDefinition:
        """Return the table with its charset in all columns that have a charset and declare none."""
        columns = tuple(
            replace(column, charset=self.charset) if column.uses_charset and column.charset is None else column
            for column in self.columns
        )
        return replace(self, columns=columns)

    def without_hidden(self) -> TableDefinition:
        """Return the table without the columns that the server does not declare, which have no type."""
        return replace(self, columns=tuple(column for column in self.columns if column.type_name))

    def with_key(self, names: Sequence[str]) -> TableDefinition:
        """Return the table with a primary key, whose columns become required."""
        found = [self.column(name) for name in names]
        key = tuple(name if column is None else column.name for name, column in zip(names, found, strict=True))
        columns = tuple(column.required() if column.name in key else column for column in self.columns)
        return replace(self, columns=columns, primary_key=key)

    def with_unique_key(self, names: Sequence[str]) -> TableDefinition:
        """Return the table with a unique index as its key if it has no key and the index has no optional columns."""
        found = [self.column(name) for name in names]
        if self.primary_key or any(column is None or column.optional for column in found):
            return self
        return replace(self, primary_key=tuple(column.name for column in found if column is not None))


@dataclass
class Tables:
    """The tables of all databases, and the databases' default charsets."""

    tables: dict[TableId, TableDefinition] = field(default_factory=dict)
    charsets: dict[str, str] = field(default_factory=dict)
    server_charset: str | None = None
    keep_comments: bool = False
    uncertain: set[TableId] = field(default_factory=set)
    """The tables whose last definition in the log was not understood."""
    mariadb: bool = True
    """Whether the server is MariaDB, which executes comments of its own."""
    lower_case: bool = False
    """Whether the server has the names of databases and tables in lower case (``lower_case_table_names``)."""

    def empty(self, charsets: Mapping[str, str] | None = None) -> Tables:
        """Return a model of the same server without tables."""
        return replace(self, tables={}, charsets=dict(charsets or {}), server_charset=None, uncertain=set())

    def name(self, text: str) -> str:
        """Return the name of a database or table in a statement as the server has it."""
        return text.lower() if self.lower_case else text

    def id(self, database: str, table: str) -> TableId:
        """Return the id of a table that a statement names."""
        return TableId(self.name(database), self.name(table))

    def charset(self, database: str) -> str | None:
        return self.charsets.get(database) or self.server_charset

    def get(self, table: TableId) -> TableDefinition | None:
        return self.tables.get(table)

    def put(self, table: TableDefinition) -> None:
        self.tables[table.id] = table
        self.uncertain.discard(table.id)

    def commented(self, table: TableDefinition) -> TableDefinition:
        """Return the table with its comments, or without them unless they are kept."""
        if self.keep_comments:
            return table
        return replace(table, comment=None, columns=tuple(replace(column, comment=None) for column in table.columns))

    def remove(self, table: TableId) -> None:
        self.tables.pop(table, None)
        self.uncertain.discard(table)

    def remove_database(self, database: str) -> None:
        for table in [table for table in self.tables if table.schema == database]:
            del self.tables[table]
        self.charsets.pop(database, None)

"""Applies the specifications of ALTER TABLE to a table. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.ddl.clauses import skip_alteration, skip_option, skip_partitions, skip_wait
from sluiceway.connectors.cdc.mysql.ddl.columns import ParsedColumn, charset_of, read_column, read_default
from sluiceway.connectors.cdc.mysql.ddl.model import ColumnDefinition, TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.ddl.tokens import NotUnderstoodError, TokenReader

_NOT_COLUMNS = (
    *((word,) for word in ("INDEX", "KEY", "FULLTEXT", "SPATIAL", "CHECK", "FOREIGN", "PARTITION")),
    ("SYSTEM", "VERSIONING"),
    ("PERIOD", "FOR"),
    ("VECTOR", "INDEX"),
    ("VECTOR", "KEY"),
)
_PRIMARY = "PRIMARY"  # the name of the primary key's index


class _NewName(str):
    """A name that the statement itself gives a column. CHANGE, RENAME, and DROP mean columns by their names before it.

    So one statement can exchange two names.
    """

    __slots__ = ()


def alter_table(table: TableDefinition, reader: TokenReader, tables: Tables) -> TableDefinition:
    """Return the table after the specifications, which follow its name.

    Raises:
        NotUnderstoodError: a specification has an unknown form, or names an unknown column.
    """
    skip_wait(reader)
    while not reader.at_end:
        table = _specification(table, reader, tables)
        if not reader.skip(",") and not skip_partitions(reader) and not reader.at_end:
            raise NotUnderstoodError(f"comma expected at {reader.next.text!r}")
    table = replace(table, id=tables.id(*table.id))
    return _finished(table).with_charsets()


def _finished(table: TableDefinition) -> TableDefinition:
    """Return the table with plain names. A new column replaces one of its name, which the model then should not have had."""
    new = {column.name.lower(): column for column in table.columns if isinstance(column.name, _NewName)}
    columns = {column.name.lower(): new.get(column.name.lower(), column) for column in table.columns}
    named = tuple(replace(column, name=str(column.name)) for column in columns.values())
    return replace(table, columns=named, primary_key=tuple(map(str, table.primary_key)))


def read_index_columns(reader: TokenReader) -> list[str]:
    """Skip to the columns of an index and return their names; prefix lengths and directions are skipped.

    A period WITHOUT OVERLAPS stands for its last column, and then its first.
    """
    while not reader.at("("):
        if reader.at_end:
            raise NotUnderstoodError("an index has no columns")
        reader.take()
    reader.expect("(")
    names = []
    while not reader.skip(")"):
        name = reader.parenthesized() if reader.at("(") else reader.identifier()
        names += _period(reader, name) if reader.skip("WITHOUT", "OVERLAPS") else [name]
        reader.skip_item()
        reader.skip(",")
    reader.skip_item()
    return names


def _period(statement: TokenReader, name: str) -> list[str]:
    """Return the columns of a period of a statement, as an index has them."""
    reader = TokenReader(statement.sql, mariadb=statement.mariadb)
    while not reader.at_end:
        if reader.take().upper == "PERIOD" and reader.skip("FOR") and reader.identifier().lower() == name.lower():
            reader.expect("(")
            start = reader.identifier()
            reader.expect(",")
            return [reader.identifier(), start]
    raise NotUnderstoodError(f"the statement does not define the period {name}")


def _specification(table: TableDefinition, reader: TokenReader, tables: Tables) -> TableDefinition:
    for word, handler in _SPECIFICATIONS.items():
        if reader.skip(word):
            return handler(table, reader)
    if reader.skip("CONVERT", "TO"):
        return _convert(table, reader, tables)
    if reader.skip("CONVERT", "PARTITION"):
        return _convert_partition(table, reader, tables)
    return table if skip_alteration(reader) else _options(table, reader)


def _names_no_column(reader: TokenReader) -> bool:
    """Whether an index, a constraint, or the like is next, instead of a column that may have a keyword's name."""
    return any(reader.at(*words) for words in _NOT_COLUMNS)


def _skip_other(reader: TokenReader) -> None:
    if reader.at("PARTITION"):
        reader.skip_rest()
    reader.skip_item()


def _add(table: TableDefinition, reader: TokenReader) -> TableDefinition:
    changed = None if reader.skip("COLUMN") else _add_key(table, reader)
    return _add_columns(table, reader) if changed is None else changed


def _add_key(table: TableDefinition, reader: TokenReader) -> TableDefinition | None:
    """Return the table with the key, constraint, or partition that is next; None if it is a column."""
    if reader.skip("CONSTRAINT") and not reader.at_any(("PRIMARY", "UNIQUE", "CHECK", "FOREIGN")):
        reader.skip("IF", "NOT", "EXISTS")
        reader.identifier()
    if reader.skip("PRIMARY", "KEY"):
        table = table.with_key(read_index_columns(reader))
        return replace(table, primary_key=tuple(map(_NewName, table.primary_key)))
    if reader.skip("UNIQUE"):
        return table.with_unique_key(read_index_columns(reader))
    if _names_no_column(reader):
        _skip_other(reader)
        return table
    return None


def _add_columns(table: TableDefinition, reader: TokenReader) -> TableDefinition:
    exists_checked = reader.skip("IF", "NOT", "EXISTS")
    if reader.skip("("):
        return _add_all(table, reader, exists_checked=exists_checked)
    return _add_column(table, reader, exists_checked=exists_checked)


def _add_column(table: TableDefinition, reader: TokenReader, *, exists_checked: bool) -> TableDefinition:
    name = _NewName(reader.identifier())
    parsed = read_column(reader, name)
    if exists_checked and table.position(name) is not None:
        _skip_place(reader)
        return table
    table = replace(table, columns=(*table.columns, parsed.definition))
    return _placed(_with_key(table, parsed), reader, name)


def _add_all(table: TableDefinition, reader: TokenReader, *, exists_checked: bool) -> TableDefinition:
    while not reader.skip(")"):
        changed = _add_key(table, reader)
        table = _add_column(table, reader, exists_checked=exists_checked) if changed is None else changed
        if not reader.skip(",") and not reader.at(")"):
            raise NotUnderstoodError(f"comma expected at {reader.next.text!r}")
    return table


def _with_key(table: TableDefinition, parsed: ParsedColumn) -> TableDefinition:
    name = parsed.definition.name
    if parsed.primary:
        return table.with_key([name])
    return replace(table, primary_key=(name,)) if parsed.unique and not table.primary_key else table


def _skip_place(reader: TokenReader) -> None:
    if not reader.skip("FIRST") and reader.skip("AFTER"):
        reader.identifier()


def _placed(table: TableDefinition, reader: TokenReader, name: str) -> TableDefinition:
    """Move the column to where FIRST or AFTER says."""
    if reader.skip("FIRST"):
        after = None
    elif reader.skip("AFTER"):
        after = reader.identifier()
    else:
        return table
    column = table.columns[_position(table, name)]
    rest = replace(table, columns=tuple(each for each in table.columns if each is not column))
    position = -1 if after is None else _position(rest, after)
    return replace(rest, columns=(*rest.columns[: position + 1], column, *rest.columns[position + 1 :]))


def _modify(table: TableDefinition, reader: TokenReader) -> TableDefinition:
    reader.skip("COLUMN")
    reader.skip("IF", "EXISTS")
    return _redefine(table, reader, reader.identifier(), None)


def _change(table: TableDefinition, reader: TokenReader) -> TableDefinition:
    reader.skip("COLUMN")
    reader.skip("IF", "EXISTS")
    old = reader.identifier()
    return _redefine(table, reader, old, reader.identifier())


def _redefine(table: TableDefinition, reader: TokenReader, old: str, new: str | None) -> TableDefinition:
    position = _position(table, old, former=True)
    existing = table.columns[position]
    parsed = read_column(reader, existing.name if new is None else _NewName(new))
    definition = parsed.definition
    if any(_is_former(name, existing.name) for name in table.primary_key):
        definition = definition.required()
    table = replace(table, columns=(*table.columns[:position], definition, *table.columns[position + 1 :]))
    table = _renamed_in_key(table, existing.name, definition.name)
    return _placed(_with_key(table, parsed), reader, definition.name)


def _position(table: TableDefinition, name: str, *, former: bool = False) -> int:
    """Return the index of the column of a name after the statement, or of the one that had it before."""
    found = [index for index, column in enumerate(table.columns) if column.name.lower() == name.lower()]
    if not found:
        raise NotUnderstoodError(f"unknown column {name}")
    return next((index for index in found if isinstance(table.columns[index].name, _NewName) != former), found[0])


def _is_former(name: str, wanted: str) -> bool:
    return name.lower() == wanted.lower() and not isinstance(name, _NewName)


def _renamed_in_key(table: TableDefinition, old: str, new: str) -> TableDefinition:
    return replace(table, primary_key=tuple(new if _is_former(name, old) else name for name in table.primary_key))


def _drop(table: TableDefinition, reader: TokenReader) -> TableDefinition:
    if reader.skip("PRIMARY", "KEY"):
        return replace(table, primary_key=())
    if reader.at_any(("INDEX", "KEY", "CONSTRAINT")):
        reader.take()
        reader.skip("IF", "EXISTS")
        return without_index(table, reader.identifier())
    if _names_no_column(reader):
        _skip_other(reader)
        return table
    reader.skip("COLUMN")
    exists_checked = reader.skip("IF", "EXISTS")
    name = reader.identifier()
    if not reader.skip("RESTRICT"):
        reader.skip("CASCADE")
    if exists_checked and table.position(name) is None:
        return table
    dropped = table.columns[_position(table, name, former=True)]
    columns = tuple(column for column in table.columns if column is not dropped)
    return replace(table, columns=columns, primary_key=tuple(key for key in table.primary_key if not _is_former(key, name)))


def without_index(table: TableDefinition, name: str) -> TableDefinition:
    """Return the table without an index; that of the primary key has a name of its own."""
    return replace(table, primary_key=()) if name.upper() == _PRIMARY else table


def _rename(table: TableDefinition, reader: TokenReader) -> TableDefinition:
    if reader.at_any(("INDEX", "KEY")):
        reader.skip_item()
        return table
    if reader.skip("COLUMN"):
        reader.skip("IF", "EXISTS")
        position = _position(table, reader.identifier(), former=True)
        reader.expect("TO")
        existing = table.columns[position]
        renamed = replace(existing, name=_NewName(reader.identifier()))
        table = replace(table, columns=(*table.columns[:position], renamed, *table.columns[position + 1 :]))
        return _renamed_in_key(table, existing.name, renamed.name)
    if not reader.skip("TO") and not reader.skip("AS"):
        reader.skip("=")
    return replace(table, id=TableId(*reader.qualified(table.id.schema)))


def _alter(table: TableDefinition, reader: TokenReader) -> TableDefinition:
    """ALTER COLUMN: sets or drops a default."""
    if reader.at_any(("INDEX", "KEY", "CHECK", "CONSTRAINT")):
        reader.skip_item()
        return table
    reader.skip("COLUMN")
    reader.skip("IF", "EXISTS")
    position = table.position(reader.identifier())
    if position is None:
        raise NotUnderstoodError("unknown column")
    column = table.columns[position]
    if reader.skip("SET", "DEFAULT"):
        has_default, default = read_default(reader, column.jdbc_type)
        column = replace(column, has_default=has_default or column.optional, default=default)
    elif reader.skip("DROP", "DEFAULT"):
        column = replace(column, has_default=column.optional, default=None)
    elif not reader.skip("SET", "VISIBLE") and not reader.skip("SET", "INVISIBLE"):
        raise NotUnderstoodError(f"SET or DROP expected at {reader.next.text!r}")
    return replace(table, columns=(*table.columns[:position], column, *table.columns[position + 1 :]))


def _convert(table: TableDefinition, reader: TokenReader, tables: Tables) -> TableDefinition:
    """CONVERT TO CHARACTER SET: changes the charset of the table and of all its columns."""
    if not reader.skip("CHARACTER", "SET") and not reader.skip("CHARSET"):
        raise NotUnderstoodError("charset expected")
    name: str | None = reader.identifier()
    if name is not None and name.upper() == "DEFAULT":
        name = tables.charset(table.id.schema)
    if reader.skip("COLLATE"):
        reader.identifier()
    if name is not None and name.lower() == "binary":
        raise NotUnderstoodError("strings become binary strings")
    columns = tuple(replace(column, charset=name) if column.uses_charset else column for column in table.columns)
    return replace(table, columns=columns, charset=name)


def _options(table: TableDefinition, reader: TokenReader) -> TableDefinition:
    """Read table options, which no commas need to separate."""
    while not reader.at_item_end and not skip_partitions(reader):
        reader.skip("DEFAULT")
        if reader.skip("CHARACTER", "SET") or reader.skip("CHARSET"):
            reader.skip("=")
            table = replace(table, charset=reader.identifier())
        elif reader.skip("COLLATE"):
            reader.skip("=")
            table = replace(table, charset=charset_of(reader.identifier()))
        elif reader.skip("COMMENT"):
            reader.skip("=")
            table = replace(table, comment=reader.take().text[1:-1])
        elif not skip_option(reader):
            raise NotUnderstoodError(f"specification expected at {reader.next.text!r}")
    return table


def _convert_partition(table: TableDefinition, reader: TokenReader, tables: Tables) -> TableDefinition:
    """CONVERT PARTITION: makes a table of a partition."""
    reader.identifier()
    reader.expect("TO", "TABLE")
    tables.put(replace(table, id=tables.id(*reader.qualified(table.id.schema))))
    reader.skip_rest()
    return table


_SPECIFICATIONS: dict[str, Callable[[TableDefinition, TokenReader], TableDefinition]] = {
    "ADD": _add,
    "MODIFY": _modify,
    "CHANGE": _change,
    "DROP": _drop,
    "RENAME": _rename,
    "ALTER": _alter,
}


def names_of(columns: Sequence[ColumnDefinition]) -> list[str]:
    return [column.name for column in columns]

"""What differs between databases: one class each."""

from __future__ import annotations

from sluiceway.connectors.jdbc.dialects.base import Dialect
from sluiceway.connectors.jdbc.dialects.mysql import MySqlDialect
from sluiceway.connectors.jdbc.dialects.postgresql import PostgreSqlDialect
from sluiceway.connectors.jdbc.dialects.sqlite import SqliteDialect

_DIALECTS: dict[str, type[Dialect]] = {each.name: each for each in (PostgreSqlDialect, MySqlDialect, SqliteDialect)}


def dialect_of(name: str, *, quote: bool = True) -> Dialect:
    """Return the dialect ``postgresql``, ``mysql`` or ``sqlite``; ``quote`` False leaves identifiers bare in SQL."""
    return _DIALECTS[name](quote=quote)

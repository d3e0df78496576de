"""Names the tables that sinks create in databases for themselves, which sources leave out unless a list names them. No I/O."""

from __future__ import annotations

OFFSETS_TABLE = "sluiceway_offsets"
"""The default name of the JDBC sink's table for offsets."""


def is_own_table(name: str) -> bool:
    """Return whether a table, without its schema, has the name of one of these."""
    return name.lower() == OFFSETS_TABLE

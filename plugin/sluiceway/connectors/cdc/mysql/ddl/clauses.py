"""Reads the clauses of DDL statements that change no columns. No I/O.

The clauses are those of MariaDB 10.3 to 11.8 and MySQL 5.7 to 9. Each function returns whether one of its clauses was next.
"""

from __future__ import annotations

from sluiceway.connectors.cdc.mysql.ddl.tokens import Kind, TokenReader

_OPTIONS = frozenset(
    (
        "ALGORITHM",
        "AUTOEXTEND_SIZE",
        "AUTO_INCREMENT",
        "AVG_ROW_LENGTH",
        "CHECKSUM",
        "COMPRESSION",
        "CONNECTION",
        "DELAY_KEY_WRITE",
        "ENCRYPTED",
        "ENCRYPTION",
        "ENCRYPTION_KEY_ID",
        "ENGINE",
        "ENGINE_ATTRIBUTE",
        "IETF_QUOTES",
        "INSERT_METHOD",
        "ITEF_QUOTES",
        "KEY_BLOCK_SIZE",
        "LOCK",
        "MAX_ROWS",
        "MIN_ROWS",
        "PACK_KEYS",
        "PAGE_CHECKSUM",
        "PAGE_COMPRESSED",
        "PAGE_COMPRESSION_LEVEL",
        "PASSWORD",
        "RAID_CHUNKS",
        "RAID_CHUNKSIZE",
        "RAID_TYPE",
        "ROW_FORMAT",
        "SECONDARY_ENGINE",
        "SECONDARY_ENGINE_ATTRIBUTE",
        "SEQUENCE",
        "STATS_AUTO_RECALC",
        "STATS_PERSISTENT",
        "STATS_SAMPLE_PAGES",
        "STORAGE",
        "TABLESPACE",
        "TABLE_CHECKSUM",
        "TRANSACTIONAL",
        "TYPE",
        "UNION",
    )
)
_PHRASES = (
    ("WITH", "SYSTEM", "VERSIONING"),
    ("WITHOUT", "SYSTEM", "VERSIONING"),
    ("START", "TRANSACTION"),
)
_ALTERATIONS = (
    ("FORCE",),
    ("ENABLE", "KEYS"),
    ("DISABLE", "KEYS"),
    ("DISCARD", "TABLESPACE"),
    ("IMPORT", "TABLESPACE"),
    ("WITH", "VALIDATION"),
    ("WITHOUT", "VALIDATION"),
    ("SECONDARY_LOAD",),
    ("SECONDARY_UNLOAD",),
)
_PARTITIONS = ("COALESCE", "REORGANIZE", "TRUNCATE", "ANALYZE", "CHECK", "OPTIMIZE", "REBUILD", "REPAIR", "DISCARD", "IMPORT")
_ATTRIBUTES = (
    *_PHRASES[:2],
    ("VIRTUAL",),
    ("STORED",),
    ("PERSISTENT",),
    ("VISIBLE",),
    ("INVISIBLE",),
    ("NOT", "SECONDARY"),
    ("NOT", "ENFORCED"),
    ("ENFORCED",),
    ("GENERATED", "ALWAYS", "AS", "ROW", "START"),
    ("GENERATED", "ALWAYS", "AS", "ROW", "END"),
    ("AS", "ROW", "START"),
    ("AS", "ROW", "END"),
)
_VALUES = frozenset({Kind.WORD, Kind.NAME, Kind.STRING, Kind.NUMBER, Kind.BITS})


def skip_wait(reader: TokenReader) -> bool:
    """Skip WAIT or NOWAIT, with which MariaDB's statements say how long they wait for a lock."""
    if reader.skip("NOWAIT"):
        return True
    if not reader.at("WAIT") or reader.peek().kind is not Kind.NUMBER:
        return False
    reader.take()
    reader.take()
    return True


def skip_option(reader: TokenReader) -> bool:
    """Skip an option of a table: a known one, or one of a storage engine of MariaDB, which has an equals sign."""
    if any(reader.skip(*words) for words in _PHRASES):
        return True
    if reader.at("DATA", "DIRECTORY") or reader.at("INDEX", "DIRECTORY"):
        reader.take()
    elif not reader.at_any(_OPTIONS):
        return _skip_setting(reader)
    reader.take()
    reader.skip("=")
    if reader.at("("):
        reader.parenthesized()
        return True
    return _skip_value(reader)


def _skip_setting(reader: TokenReader) -> bool:
    """Skip ``name=value``."""
    if reader.next.kind not in (Kind.WORD, Kind.NAME) or reader.peek().text != "=":
        return False
    reader.take()
    reader.take()
    return _skip_value(reader)


def _skip_value(reader: TokenReader) -> bool:
    if reader.next.kind not in _VALUES:
        return False
    reader.take()
    return True


def skip_alteration(reader: TokenReader) -> bool:
    """Skip a specification of ALTER TABLE that changes no columns and no options."""
    if any(reader.skip(*words) for words in _ALTERATIONS):
        return True
    if reader.skip("ORDER", "BY"):
        _skip_order(reader)
        return True
    return skip_partitions(reader)


def _skip_order(reader: TokenReader) -> None:
    reader.skip_item()
    while reader.at(",") and reader.peek(2).upper in (",", "", "ASC", "DESC"):
        reader.take()
        reader.skip_item()


def skip_partitions(reader: TokenReader) -> bool:
    """Skip a clause about partitions, which is the last one of a statement."""
    manages = reader.at_any(_PARTITIONS) and reader.peek().upper == "PARTITION"
    if not manages and not any(
        reader.at(*words)
        for words in (
            ("PARTITION", "BY"),
            ("REMOVE", "PARTITIONING"),
            ("UPGRADE", "PARTITIONING"),
            ("EXCHANGE", "PARTITION"),
            ("CONVERT", "TABLE"),
        )
    ):
        return False
    reader.skip_rest()
    return True


def skip_attribute(reader: TokenReader) -> bool:
    """Skip an attribute of a column that says nothing about its type, its default, and its keys."""
    if any(reader.skip(*words) for words in _ATTRIBUTES):
        return True
    if reader.skip("GENERATED", "ALWAYS", "AS") or reader.skip("AS"):
        return _skip_expression(reader)
    if reader.at("CONSTRAINT") or reader.at("CHECK"):
        return _skip_check(reader)
    if reader.skip("REFERENCES"):
        _skip_reference(reader)
        return True
    if reader.at_any(("COLUMN_FORMAT", "STORAGE", "SRID", "ENGINE_ATTRIBUTE", "SECONDARY_ENGINE_ATTRIBUTE")):
        reader.take()
        reader.skip("=")
        return _skip_value(reader)
    return _skip_setting(reader)


def _skip_expression(reader: TokenReader) -> bool:
    if not reader.at("("):
        return False
    reader.parenthesized()
    return True


def _skip_check(reader: TokenReader) -> bool:
    if reader.skip("CONSTRAINT") and not reader.at("CHECK"):
        reader.identifier()
    return reader.skip("CHECK") and _skip_expression(reader)


def _skip_reference(reader: TokenReader) -> None:
    reader.qualified("")
    _skip_expression(reader)
    if reader.skip("MATCH"):
        reader.take()
    while reader.skip("ON", "DELETE") or reader.skip("ON", "UPDATE"):
        if not (reader.skip("SET", "NULL") or reader.skip("SET", "DEFAULT") or reader.skip("NO", "ACTION")):
            reader.take()

"""Parses data types of column definitions. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from sluiceway.connectors.cdc.mysql.ddl.model import JdbcType
from sluiceway.connectors.cdc.mysql.ddl.tokens import Kind, NotUnderstoodError, TokenReader

_NUMERIC_SUFFIXES = ("SIGNED", "UNSIGNED", "ZEROFILL")
_LONGEST = 2**31 - 1

_TYPES = {
    **dict.fromkeys(("TINYINT", "INT1", "SMALLINT", "INT2"), JdbcType.SMALLINT),
    **dict.fromkeys(("MEDIUMINT", "INT3", "MIDDLEINT", "INT", "INTEGER", "INT4", "YEAR"), JdbcType.INTEGER),
    **dict.fromkeys(("BIGINT", "INT8", "SERIAL"), JdbcType.BIGINT),
    "REAL": JdbcType.REAL,
    **dict.fromkeys(("DOUBLE", "FLOAT8"), JdbcType.DOUBLE),
    **dict.fromkeys(("FLOAT", "FLOAT4"), JdbcType.FLOAT),
    **dict.fromkeys(("DECIMAL", "DEC", "FIXED"), JdbcType.DECIMAL),
    "NUMERIC": JdbcType.NUMERIC,
    "BIT": JdbcType.BIT,
    **dict.fromkeys(("BOOL", "BOOLEAN"), JdbcType.BOOLEAN),
    "DATE": JdbcType.DATE,
    "TIME": JdbcType.TIME,
    "DATETIME": JdbcType.TIMESTAMP,
    "TIMESTAMP": JdbcType.TIMESTAMP_WITH_TIMEZONE,
    "BINARY": JdbcType.BINARY,
    "VARBINARY": JdbcType.VARBINARY,
    **dict.fromkeys(("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB"), JdbcType.BLOB),
    **dict.fromkeys(("CHAR", "CHARACTER", "ENUM", "SET"), JdbcType.CHAR),
    **dict.fromkeys(("VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "LONG"), JdbcType.VARCHAR),
    "NCHAR": JdbcType.NCHAR,
    "NVARCHAR": JdbcType.NVARCHAR,
    **dict.fromkeys(
        (
            "UUID",
            "INET4",
            "INET6",
            "JSON",
            "VECTOR",
            "GEOMETRY",
            "POINT",
            "LINESTRING",
            "POLYGON",
            "MULTIPOINT",
            "MULTILINESTRING",
            "MULTIPOLYGON",
            "GEOMETRYCOLLECTION",
            "GEOMCOLLECTION",
        ),
        JdbcType.OTHER,
    ),
}

_DEFAULT_LENGTHS = {
    **dict.fromkeys(("DECIMAL", "DEC", "FIXED", "NUMERIC"), (10, 0)),
    "BIT": (1, None),
}

_CHARSETS = {"ASCII": "latin1", "UNICODE": "ucs2"}
_BINARY = {JdbcType.CHAR: JdbcType.BINARY, JdbcType.VARCHAR: JdbcType.VARBINARY}

_VARYING = {"CHAR": JdbcType.VARCHAR, "CHARACTER": JdbcType.VARCHAR, "NCHAR": JdbcType.NVARCHAR}


@dataclass
class DataType:
    """A data type: name in upper case with its suffixes, length and scale, charset, and the literals of ENUM and SET."""

    name: str
    jdbc_type: int
    length: int | None = None
    scale: int | None = None
    charset: str | None = None
    collation: str | None = None
    values: tuple[str, ...] = ()


def read_data_type(reader: TokenReader) -> DataType:
    """Read a data type. Raises NotUnderstoodError for an unknown one."""
    if reader.skip("NATIONAL"):
        return _national(reader)
    word = reader.take()
    if word.kind is not Kind.WORD or word.upper not in _TYPES:
        raise NotUnderstoodError(f"data type expected at {word.text!r}")
    found = DataType(word.upper, _TYPES[word.upper])
    _read_second_word(reader, found)
    if found.name in ("ENUM", "SET"):
        found.values = _values(reader)
        found.length = 1 if found.name == "ENUM" else max(0, 2 * len(found.values) - 1)
    else:
        _read_length(reader, found)
    _read_suffixes(reader, found)
    if found.length is None:
        found.length, scale = _DEFAULT_LENGTHS.get(word.upper, (None, None))
        found.scale = scale if found.scale is None else found.scale
    elif found.scale is None:
        found.scale = _DEFAULT_LENGTHS.get(word.upper, (None, None))[1]
    _finish(found)
    return found


def _finish(found: DataType) -> None:
    if found.name == "SERIAL":
        found.name = "BIGINT UNSIGNED"
    if found.jdbc_type in (JdbcType.NCHAR, JdbcType.NVARCHAR):
        found.charset = "utf8"  # the charset of national strings
        if found.jdbc_type == JdbcType.NCHAR and found.length is None:
            found.length = 1


def _national(reader: TokenReader) -> DataType:
    word = reader.take().upper
    varying = reader.skip("VARYING") or word == "VARCHAR"
    found = DataType(f"NATIONAL {word}", JdbcType.NVARCHAR if varying else JdbcType.NCHAR)
    if varying and word != "VARCHAR":
        found.name += " VARYING"
    _read_length(reader, found)
    _read_suffixes(reader, found)
    _finish(found)
    return found


def _read_second_word(reader: TokenReader, found: DataType) -> None:
    if found.name in _VARYING and reader.skip("VARYING"):
        found.jdbc_type = _VARYING[found.name]
        found.name += " VARYING"
    elif found.name == "NCHAR" and reader.skip("VARCHAR"):
        found.name, found.jdbc_type = "NCHAR VARCHAR", JdbcType.NVARCHAR
    elif found.name == "LONG":
        if reader.skip("VARBINARY"):
            found.name, found.jdbc_type = "LONG VARBINARY", JdbcType.BLOB
        elif reader.skip("VARCHAR"):
            found.name = "LONG VARCHAR"
    elif found.name in ("DOUBLE", "FLOAT8") and reader.skip("PRECISION"):
        found.name += " PRECISION"


def _read_length(reader: TokenReader, found: DataType) -> None:
    if not reader.skip("("):
        return
    found.length = min(int(reader.take().text.partition(".")[0] or 0), _LONGEST)
    if reader.skip(","):
        found.scale = int(reader.take().text)
    reader.expect(")")


def _values(reader: TokenReader) -> tuple[str, ...]:
    reader.expect("(")
    values = []
    while not reader.skip(")"):
        values.append(reader.take().text)
        reader.skip(",")
    return tuple(values)


def _read_suffixes(reader: TokenReader, found: DataType) -> None:
    while True:
        if reader.at_any(_NUMERIC_SUFFIXES) or (found.jdbc_type in (JdbcType.CHAR, JdbcType.VARCHAR) and reader.at("BINARY")):
            found.name += f" {reader.take().upper}"
        elif reader.skip("CHARACTER", "SET") or reader.skip("CHARSET"):
            reader.skip("=")
            found.charset = reader.identifier()
        elif reader.skip("COLLATE"):
            reader.skip("=")
            found.collation = reader.identifier()
        elif reader.at_any(frozenset(_CHARSETS)):
            found.charset = _CHARSETS[reader.take().upper]
        elif reader.at("BYTE") and found.jdbc_type in _BINARY:
            reader.take()
            found.jdbc_type = _BINARY[found.jdbc_type]
        elif not _compressed(reader):
            return


def _compressed(reader: TokenReader) -> bool:
    """Skip MariaDB's COMPRESSED attribute with its method."""
    if not reader.skip("COMPRESSED"):
        return False
    if reader.skip("="):
        reader.take()
    return True

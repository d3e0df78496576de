"""Decodes the messages of PostgreSQL's output plugin pgoutput, protocol version 1. No I/O.

Values stay text. A value that the log leaves out because it did not change (TOAST) is UNAVAILABLE.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from sluiceway.connectors.cdc.postgres.tuples import TupleRow, read_row, read_rows

POSTGRES_EPOCH_MICROS = 946_684_800_000_000
"""Microseconds from 1970 to 2000, where PostgreSQL's timestamps begin."""


class Begin(NamedTuple):
    final_lsn: int
    micros: int
    xid: int


class Commit(NamedTuple):
    lsn: int
    end_lsn: int
    micros: int


class RelationColumn(NamedTuple):
    name: str
    type_oid: int
    typmod: int
    key: bool


class Relation(NamedTuple):
    oid: int
    schema: str
    table: str
    identity: str
    columns: tuple[RelationColumn, ...]


class Insert(NamedTuple):
    relation: int
    new: TupleRow


class Update(NamedTuple):
    relation: int
    old: TupleRow | None
    full: bool
    new: TupleRow


class Delete(NamedTuple):
    relation: int
    old: TupleRow
    full: bool


class Truncate(NamedTuple):
    relations: tuple[int, ...]


class Message(NamedTuple):
    """A logical message (``pg_logical_emit_message``)."""

    transactional: bool
    lsn: int
    prefix: str
    content: bytes


class Origin(NamedTuple):
    lsn: int
    name: str


class Other(NamedTuple):
    """A message without meaning for records, such as a type's name."""

    kind: bytes


Decoded = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Message | Origin | Other

BEGIN = b"B"
"""The first byte of the message with which a transaction begins."""
_BEGIN = struct.Struct(">qqI")
_COMMIT = struct.Struct(">BQQq")
_COLUMN = struct.Struct(">Ii")
_COUNT = struct.Struct(">H")
_LENGTH = struct.Struct(">I")


def decode(data: bytes) -> Decoded:
    """Decode one message."""
    handler = _HANDLERS.get(data[:1])
    return Other(data[:1]) if handler is None else handler(data)


def commit_micros(begin: bytes) -> int:
    """Return when the transaction of a BEGIN message was committed, in microseconds since the epoch."""
    return _begin(begin).micros


def _text(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


def _begin(data: bytes) -> Begin:
    final, micros, xid = _BEGIN.unpack_from(data, 1)
    return Begin(final, micros + POSTGRES_EPOCH_MICROS, xid)


def _commit(data: bytes) -> Commit:
    _flags, lsn, end, micros = _COMMIT.unpack_from(data, 1)
    return Commit(lsn, end, micros + POSTGRES_EPOCH_MICROS)


def _relation(data: bytes) -> Relation:
    (oid,) = _LENGTH.unpack_from(data, 1)
    schema, at = _text(data, 5)
    table, at = _text(data, at)
    identity = chr(data[at])
    (count,) = _COUNT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        key = bool(data[at] & 1)
        name, at = _text(data, at + 1)
        type_oid, typmod = _COLUMN.unpack_from(data, at)
        at += 8
        columns.append(RelationColumn(name, type_oid, typmod, key))
    return Relation(oid, schema or "pg_catalog", table, identity, tuple(columns))


def _insert(data: bytes) -> Insert:
    return Insert(_LENGTH.unpack_from(data, 1)[0], read_row(data, 6))


def _update(data: bytes) -> Update:
    relation = _LENGTH.unpack_from(data, 1)[0]
    if data[5] == 0x4E:  # N: the new row
        return Update(relation, None, False, read_row(data, 6))
    old, new = read_rows(data, 6)
    return Update(relation, old, data[5] == 0x4F, new)  # O: all columns of the old row; K: those of the replica identity


def _delete(data: bytes) -> Delete:
    return Delete(_LENGTH.unpack_from(data, 1)[0], read_row(data, 6), data[5] == 0x4F)


def _truncate(data: bytes) -> Truncate:
    (count,) = _LENGTH.unpack_from(data, 1)
    return Truncate(struct.unpack_from(f">{count}I", data, 6))


def _message(data: bytes) -> Message:
    flags, lsn = struct.unpack_from(">BQ", data, 1)
    prefix, at = _text(data, 10)
    (length,) = _LENGTH.unpack_from(data, at)
    return Message(bool(flags & 1), lsn, prefix, data[at + 4 : at + 4 + length])


def _origin(data: bytes) -> Origin:
    (lsn,) = struct.unpack_from(">Q", data, 1)
    return Origin(lsn, _text(data, 9)[0])


_HANDLERS: dict[bytes, Callable[[bytes], Decoded]] = {
    BEGIN: _begin,
    b"C": _commit,
    b"R": _relation,
    b"I": _insert,
    b"U": _update,
    b"D": _delete,
    b"T": _truncate,
    b"M": _message,
    b"O": _origin,
}

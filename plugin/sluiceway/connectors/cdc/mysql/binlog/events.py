"""Decodes binary log events other than rows: header, format description, rotation, GTIDs, queries, commits. No I/O."""

from __future__ import annotations

import enum
import struct
import uuid
import zlib
from dataclasses import dataclass

from sluiceway.errors import ConnectError

_VERSION = 1
_FLAGS, _SOURCE, _NUMBER, _TAG = range(4)
_SOURCE_BYTES = 16


class EventType(enum.IntEnum):
    """Types of events in their headers, as far as the connectors know them."""

    START_V3 = 1
    QUERY = 2
    STOP = 3
    ROTATE = 4
    INTVAR = 5
    LOAD = 6
    SLAVE = 7
    CREATE_FILE = 8
    APPEND_BLOCK = 9
    EXECUTE_LOAD = 10
    DELETE_FILE = 11
    NEW_LOAD = 12
    RAND = 13
    USER_VARIABLE = 14
    FORMAT_DESCRIPTION = 15
    XID = 16
    BEGIN_LOAD_QUERY = 17
    EXECUTE_LOAD_QUERY = 18
    TABLE_MAP = 19
    WRITE_ROWS_V1 = 23
    UPDATE_ROWS_V1 = 24
    DELETE_ROWS_V1 = 25
    INCIDENT = 26
    HEARTBEAT = 27
    IGNORABLE = 28
    ROWS_QUERY = 29
    WRITE_ROWS = 30
    UPDATE_ROWS = 31
    DELETE_ROWS = 32
    GTID = 33
    ANONYMOUS_GTID = 34
    PREVIOUS_GTIDS = 35
    TRANSACTION_CONTEXT = 36
    VIEW_CHANGE = 37
    XA_PREPARE = 38
    PARTIAL_UPDATE_ROWS = 39
    TRANSACTION_PAYLOAD = 40
    HEARTBEAT_V2 = 41
    GTID_TAGGED = 42
    ANNOTATE_ROWS = 160
    BINLOG_CHECKPOINT = 161
    MARIADB_GTID = 162
    MARIADB_GTID_LIST = 163
    START_ENCRYPTION = 164
    QUERY_COMPRESSED = 165
    WRITE_ROWS_COMPRESSED_V1 = 166
    UPDATE_ROWS_COMPRESSED_V1 = 167
    DELETE_ROWS_COMPRESSED_V1 = 168
    WRITE_ROWS_COMPRESSED = 169
    UPDATE_ROWS_COMPRESSED = 170
    DELETE_ROWS_COMPRESSED = 171


GTIDS = frozenset({EventType.GTID, EventType.GTID_TAGGED, EventType.ANONYMOUS_GTID, EventType.MARIADB_GTID})
"""The events with which a transaction, or a statement outside of one, begins."""


WITHOUT_ROWS = frozenset(
    {
        EventType.START_V3,
        EventType.STOP,
        EventType.ROTATE,
        EventType.INTVAR,  # the values that the statement after it needs
        EventType.SLAVE,
        EventType.APPEND_BLOCK,  # the file of LOAD DATA, before its statement
        EventType.DELETE_FILE,
        EventType.RAND,
        EventType.USER_VARIABLE,
        EventType.FORMAT_DESCRIPTION,
        EventType.BEGIN_LOAD_QUERY,
        EventType.HEARTBEAT,
        EventType.IGNORABLE,
        EventType.PREVIOUS_GTIDS,
        EventType.TRANSACTION_CONTEXT,
        EventType.VIEW_CHANGE,
        EventType.HEARTBEAT_V2,
        EventType.BINLOG_CHECKPOINT,
        EventType.MARIADB_GTID_LIST,
        EventType.START_ENCRYPTION,
    }
)
"""The types that hold neither rows nor a statement. A reader may pass over them, and over no others."""

HEADER_BYTES = 19
CHECKSUM_BYTES = 4
_FORMAT_CHECKSUM_OFFSET = 5  # the algorithm's byte before the checksum of the format description itself
_HEADER = struct.Struct("<IBIIIH")
_QUERY = struct.Struct("<IIBHH")
_LOAD_BYTES = 13  # of LOAD DATA: the file's id, and where the statement names it
_ARTIFICIAL = 0x20
_MAY_BE_IGNORED = 0x80
_STANDALONE, _GROUP_COMMIT, _PREPARED, _COMPLETED = 0x01, 0x02, 0x40, 0x80


@dataclass(frozen=True, slots=True)
class Header:
    """The common header: time in seconds since the epoch, position of the following event, size with header and checksum."""

    timestamp: int
    type: int
    server_id: int
    size: int
    next_position: int
    flags: int

    @property
    def position(self) -> int:
        """The position of this event in its file; 0 for events that the server made up for the dump."""
        return max(self.next_position - self.size, 0) if self.next_position else 0

    @property
    def artificial(self) -> bool:
        return bool(self.flags & _ARTIFICIAL)

    @property
    def kind(self) -> str:
        """The name of the type, or its number."""
        return EventType(self.type).name if self.type in EventType._value2member_map_ else str(self.type)

    @property
    def has_no_changes(self) -> bool:
        """Whether the event may be passed over: its type holds no rows, or the server says so (LOG_EVENT_IGNORABLE_F)."""
        return self.type in WITHOUT_ROWS or bool(self.flags & _MAY_BE_IGNORED)


def read_header(packet: memoryview) -> Header:
    """Return the header of an event."""
    return Header(*_HEADER.unpack_from(packet, 0))


@dataclass(frozen=True, slots=True)
class FormatDescription:
    """Describes how to read the events that follow: post-header lengths by event type, and whether there are checksums."""

    server_version: str
    has_checksums: bool
    post_header_lengths: bytes

    @classmethod
    def read(cls, packet: memoryview) -> FormatDescription:
        body = bytes(packet[HEADER_BYTES:])
        version = body[2:52].rstrip(b"\0").decode("ascii", "replace")
        algorithm = body[-_FORMAT_CHECKSUM_OFFSET]
        return cls(version, algorithm == 1, body[57:-_FORMAT_CHECKSUM_OFFSET])

    def table_id_bytes(self, event_type: int) -> int:
        """Return the size of table ids in this type of event: 6 except in the logs of ancient servers."""
        lengths = self.post_header_lengths
        return 4 if len(lengths) >= event_type and lengths[event_type - 1] == 6 else 6


@dataclass(frozen=True, slots=True)
class Rotation:
    """Names the file that the next events are in, and their position."""

    file: str
    position: int

    @classmethod
    def read(cls, body: memoryview) -> Rotation:
        return cls(bytes(body[8:]).decode("utf-8", "replace"), int.from_bytes(body[:8], "little"))


@dataclass(frozen=True, slots=True)
class Query:
    """A statement: DDL, or BEGIN and COMMIT of transactions that have no Xid event."""

    thread: int
    database: str
    sql: str

    @classmethod
    def read(cls, body: memoryview, *, compressed: bool = False, is_load: bool = False) -> Query:
        thread, _, database_length, _, variables_length = _QUERY.unpack_from(body, 0)
        start = _QUERY.size + (_LOAD_BYTES if is_load else 0) + variables_length
        database = bytes(body[start : start + database_length]).decode("utf-8", "replace")
        sql = bytes(body[start + database_length + 1 :])
        text = uncompressed(sql) if compressed else sql
        return cls(thread, database, text.decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Gtid:
    """The id of the transaction that follows.

    ``standalone`` statements (DDL) have no commit event. MariaDB marks XA transactions that are only ``prepared``, and names the
    ``xid`` of these and of their ends as ``first part,second part,format``, the parts in hexadecimal digits.
    """

    text: str
    standalone: bool
    prepared: bool = False
    xid: str | None = None

    @classmethod
    def read_mariadb(cls, header: Header, body: memoryview) -> Gtid:
        sequence, domain = struct.unpack_from("<QI", body, 0)
        flags = body[12]
        xid = _mariadb_xid(body, 21 if flags & _GROUP_COMMIT else 13) if flags & (_PREPARED | _COMPLETED) else None
        return cls(f"{domain}-{header.server_id}-{sequence}", bool(flags & _STANDALONE), bool(flags & _PREPARED), xid)

    @classmethod
    def read_mysql(cls, body: memoryview) -> Gtid:
        source = uuid.UUID(bytes=bytes(body[1:17]))
        return cls(f"{source}:{int.from_bytes(body[17:25], 'little')}", standalone=False)

    @classmethod
    def read_tagged(cls, body: memoryview) -> Gtid:
        """Read MySQL's event of a GTID with a tag."""
        return cls(tagged_gtid(body), standalone=False)


def _mariadb_xid(body: memoryview, at: int) -> str:
    kind, first, second = struct.unpack_from("<IBB", body, at)
    data = bytes(body[at + 6 : at + 6 + first + second])
    return f"{data[:first].hex()},{data[first:].hex()},{kind}"


def uncompressed(data: bytes | memoryview) -> bytes:
    """Return the content of MariaDB's compressed form: a header with the length of the length, the length, and zlib's stream.

    Raises:
        ConnectError: another algorithm than zlib.
    """
    if (data[0] & 0x70) >> 4:
        raise ConnectError("A compressed event of the binary log has an unknown algorithm. Use log_bin_compress with zlib.")
    return zlib.decompress(data[1 + (data[0] & 0x07) :])


def read_varlen(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return an integer of one to nine bytes and the position after it.

    The lowest bits of the first byte that are set count the bytes after it. The value is in the bits above the next one.
    """
    first = data[at]
    more = (~first & (first + 1)).bit_length() - 1
    end = at + 1 + more
    return int.from_bytes(data[at:end], "little") >> min(more + 1, 8), end


def tagged_gtid(data: bytes | memoryview) -> str:
    """Return the GTID of a GTID_TAGGED event, ``uuid:tag:number``, or ``uuid:number`` if its tag is empty.

    Raises:
        ConnectError: the event has another form.
    """
    version, at = read_varlen(data, 0)
    _size, at = read_varlen(data, at)
    _last, at = read_varlen(data, at)
    if version != _VERSION:
        raise ConnectError(f"The binary log has a tagged GTID in the unknown form {version}. Do not assign tags to GTIDs.")
    at = _value(data, at, _FLAGS)
    _, at = read_varlen(data, at)
    at = _value(data, at, _SOURCE)
    source = bytearray()
    for _ in range(_SOURCE_BYTES):
        byte, at = read_varlen(data, at)
        source.append(byte)
    number, at = read_varlen(data, _value(data, at, _NUMBER))
    length, at = read_varlen(data, _value(data, at, _TAG))
    tag = bytes(data[at : at + length]).decode("ascii")
    # The number is a signed integer, whose lowest bit is the sign.
    return ":".join(filter(None, (str(uuid.UUID(bytes=bytes(source))), tag, str(number >> 1))))


def _value(data: bytes | memoryview, at: int, field: int) -> int:
    """Return the position of a field's value, which its number precedes."""
    found, at = read_varlen(data, at)
    if found != field:
        raise ConnectError(
            f"A tagged GTID of the binary log has the field {found} instead of {field}. The binary log is damaged."
        )
    return at

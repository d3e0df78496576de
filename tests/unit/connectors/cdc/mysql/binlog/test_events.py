"""Headers, format descriptions, GTIDs of both servers, statements and payloads."""

from __future__ import annotations

import struct
import uuid
import zlib

import pyarrow as pa
import pytest

from sluiceway.connectors.cdc.mysql.binlog.events import (
    CHECKSUM_BYTES,
    HEADER_BYTES,
    FormatDescription,
    Gtid,
    Query,
    Rotation,
    read_header,
    uncompressed,
)
from sluiceway.connectors.cdc.mysql.binlog.payload import payload_events
from sluiceway.errors import ConnectError
from unit.connectors.cdc.mysql.binlog import mariadb_events as events


def _body(packet: bytes) -> memoryview:
    return memoryview(packet)[HEADER_BYTES:-CHECKSUM_BYTES]


def test_the_format_description_tells_of_checksums() -> None:
    found = FormatDescription.read(memoryview(events.FORMAT))

    assert (found.server_version, found.has_checksums) == ("10.11.5-MariaDB-log", True)
    assert found.table_id_bytes(23) == 6


def test_mariadb_gtids_and_their_positions() -> None:
    header = read_header(memoryview(events.GTID))

    gtid = Gtid.read_mariadb(header, _body(events.GTID))

    assert gtid == Gtid("0-223344-1846", standalone=False)
    assert Gtid.read_mariadb(read_header(memoryview(events.GTID_DDL)), _body(events.GTID_DDL)).standalone
    assert header.position == header.next_position - header.size


def test_mysql_gtids() -> None:
    source = uuid.UUID("3e11fa47-71ca-11e1-9e33-c80aa9429562")
    body = b"\x01" + source.bytes + (23).to_bytes(8, "little") + bytes(17)

    assert Gtid.read_mysql(memoryview(body)) == Gtid("3e11fa47-71ca-11e1-9e33-c80aa9429562:23", standalone=False)


def test_statements_have_their_database() -> None:
    query = Query.read(_body(events.QUERY))

    assert query.database == "tt"
    assert query.sql.startswith("create table t(id int primary key")


def test_rotations_name_the_next_file() -> None:
    assert Rotation.read(memoryview(struct.pack("<Q", 4) + b"bin.000002")) == Rotation("bin.000002", 4)


def test_compressed_content() -> None:
    text = b"insert " * 100
    packed = bytes([0x82]) + len(text).to_bytes(2, "big") + zlib.compress(text)

    assert uncompressed(packed) == text


def test_other_compressions_are_refused() -> None:
    with pytest.raises(ConnectError, match="unknown algorithm"):
        uncompressed(b"\x92\x00\x10xxx")


def test_a_payload_has_the_events_of_a_transaction() -> None:
    inner = [struct.pack("<IBIIIH", 1, 2, 7, HEADER_BYTES + len(text), 0, 0) + text for text in (b"one", b"second")]
    data = b"".join(inner)
    packed: bytes = pa.Codec("zstd").compress(data, asbytes=True)
    fields = b"".join(bytes([kind, 1, value]) for kind, value in ((2, 0), (3, len(data)), (1, min(len(packed), 250))))

    found = list(payload_events(memoryview(fields + b"\x00" + packed)))

    assert [bytes(event[HEADER_BYTES:]) for event in found] == [b"one", b"second"]


def test_a_payload_of_another_compression_is_refused() -> None:
    with pytest.raises(ConnectError, match="unknown compression 7"):
        list(payload_events(memoryview(b"\x02\x01\x07\x00abc")))

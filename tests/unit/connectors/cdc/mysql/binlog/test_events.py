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
    read_varlen,
    uncompressed,
)
from sluiceway.connectors.cdc.mysql.binlog.payload import payload_events
from sluiceway.errors import ConnectError
from unit.connectors.cdc.mysql.binlog import mariadb_events as events
from unit.connectors.cdc.mysql.binlog import mysql_events


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


def test_tagged_gtids() -> None:
    text = "6c7a1abb-e9d5-11f1-963d-02fc00000001:mytag:1"

    assert Gtid.read_tagged(_body(mysql_events.GTID_TAGGED)) == Gtid(text, standalone=False)


@pytest.mark.parametrize(("version", "field"), [(2, 0), (1, 1)])
def test_tagged_gtids_of_another_form_are_refused(version: int, field: int) -> None:
    with pytest.raises(ConnectError, match="tagged GTID"):
        Gtid.read_tagged(memoryview(bytes([version << 1, 80, 0, field << 1, 0, 0])))


@pytest.mark.parametrize("number", [0, 1, 127, 128, 16_383, 16_384, 2**31, 2**49, 2**56 - 1, 2**56, 2**64 - 1])
def test_integers_of_one_to_nine_bytes(number: int) -> None:
    more = min(max((number.bit_length() - 1) // 7, 0), 8)
    mark = (1 << more) - 1
    data = b"\xff" + number.to_bytes(8, "little") if more == 8 else (number << (more + 1) | mark).to_bytes(more + 1, "little")

    assert read_varlen(b"x" + data + b"x", 1) == (number, 1 + len(data))


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

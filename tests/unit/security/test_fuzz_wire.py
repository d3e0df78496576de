"""Bytes of replication protocols and of internal topics are read, or are an error: no crash, hang, or lack of memory.

``CASES`` sets the number of cases (`make test-security`).
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import pytest
from hypothesis import strategies as st

from sluiceway.connectors.cdc.mysql.binlog.charsets import Charsets
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
from sluiceway.connectors.cdc.mysql.binlog.json_values import json_text
from sluiceway.connectors.cdc.mysql.binlog.payload import payload_events
from sluiceway.connectors.cdc.mysql.binlog.rows import RowReaders, read_rows_event
from sluiceway.connectors.cdc.mysql.binlog.table_map import read_table_map
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.connectors.cdc.postgres import pgoutput
from sluiceway.errors import ConnectError, DataError
from sluiceway.storage import codec
from support.fuzz import fuzz, refused_cleanly
from unit.connectors.cdc.mysql.binlog import mariadb_events, mysql_events
from unit.connectors.cdc.postgres.test_pgoutput import _row

COLUMNS = b"\x01id\0" + struct.pack(">Ii", 23, -1) + b"\0a\0" + struct.pack(">Ii", 25, -1)
PGOUTPUT = [
    b"B" + struct.pack(">qqI", 7, 5, 42),
    b"C" + struct.pack(">BQQq", 0, 1, 2, 3),
    b"R" + struct.pack(">I", 9) + b"public\0t\0d" + struct.pack(">H", 2) + COLUMNS,
    b"I" + struct.pack(">I", 9) + b"N" + _row("zółw", None),
    b"U" + struct.pack(">I", 9) + b"K" + _row("1", None) + b"N" + _row("2", "?"),
    b"D" + struct.pack(">I", 9) + b"O" + _row("1" * 300),
    b"T" + struct.pack(">IBII", 2, 0, 8, 9),
    b"M" + struct.pack(">BQ", 1, 77) + b"pfx\0" + struct.pack(">I", 3) + b"abc",
    b"O" + struct.pack(">Q", 1) + b"origin\0",
]


DAMAGED = (
    ConnectError,
    IndexError,
    KeyError,
    ValueError,
    OverflowError,
    struct.error,
    zlib.error,
    TypeError,
    OSError,
    RecursionError,
)
"""What a reader raises for bytes that are no message; the task fails with it."""


@fuzz("message", message=st.sampled_from(PGOUTPUT) | st.binary(max_size=40))
def test_messages_of_pgoutput(message: bytes) -> None:
    with refused_cleanly(*DAMAGED):
        pgoutput.decode(message)


PACKETS = [
    packet
    for module in (mariadb_events, mysql_events)
    for packet in vars(module).values()
    if isinstance(packet, bytes) and len(packet) > HEADER_BYTES + CHECKSUM_BYTES
]
TABLE = read_table_map(memoryview(mariadb_events.TABLE_MAP)[HEADER_BYTES:-CHECKSUM_BYTES])


def _read_rows(packet: memoryview, body: memoryview) -> None:
    event = read_rows_event(read_header(packet).type, body)
    RowReaders(TABLE, Charsets({8: "latin1"}), Calendar(adjust_years=True)).read(event)


READERS: dict[str, Any] = {
    "format": lambda packet, body: FormatDescription.read(packet),
    "rotation": lambda packet, body: Rotation.read(body),
    "query": lambda packet, body: Query.read(body),
    "compressed query": lambda packet, body: Query.read(body, compressed=True),
    "mariadb gtid": lambda packet, body: Gtid.read_mariadb(read_header(packet), body),
    "mysql gtid": lambda packet, body: Gtid.read_mysql(body),
    "tagged gtid": lambda packet, body: Gtid.read_tagged(body),
    "uncompressed": lambda packet, body: uncompressed(body),
    "payload": lambda packet, body: list(payload_events(body)),
    "table map": lambda packet, body: read_table_map(body),
    "rows": _read_rows,
    "json": lambda packet, body: json_text(bytes(body)),
}


@pytest.mark.parametrize("name", READERS)
@fuzz("packet", share=1 / len(READERS), packet=st.sampled_from(PACKETS) | st.binary(max_size=60))
def test_events_of_binary_logs(name: str, packet: bytes) -> None:
    whole = memoryview(packet)
    with refused_cleanly(*DAMAGED):
        READERS[name](whole, whole[HEADER_BYTES : max(HEADER_BYTES, len(whole) - CHECKSUM_BYTES)])


VALUES = [
    {"properties": {"connector.class": "X", "a": "1"}},
    {"state": "PAUSED", "state.v2": "STOPPED"},
    {"state": "RUNNING", "trace": None, "worker_id": "h:1", "generation": 3, "version": "1"},
    {"tasks": 2},
    {"task-count": 2},
    {"level": "INFO"},
    {"only-failed": True, "include-tasks": False},
    {"application": "small"},
    {"position": 17},
]
KEYS = [
    "connector-c",
    "task-c-0",
    "commit-c",
    "target-state-c",
    "tasks-fencing-c",
    "restart-connector-c",
    "logger-cluster-a",
    "session-key",
]
KEYS += [
    "restart-connector-c-task-1",
    "status-connector-c",
    "status-task-c-0",
    "status-topic-t:connector-c",
    '["c",{"filename":"f"}]',
]


@pytest.mark.parametrize("key", KEYS)
@fuzz("record", share=1 / len(KEYS), record=st.sampled_from(VALUES))
def test_values_of_internal_topics(key: str, record: Any) -> None:
    content = json.dumps(record).encode("utf-8", "surrogatepass")
    codec.decode_config_record(key.encode(), content)
    codec.decode_status_record(key.encode(), content)
    with refused_cleanly(DataError):
        codec.decode_offset(content)


@fuzz(
    "content",
    content=st.sampled_from([json.dumps(each).encode() for each in VALUES] + [key.encode() for key in KEYS]) | st.binary(),
)
def test_bytes_of_internal_topics(content: bytes) -> None:
    for key, value in (
        (content, content),
        (b"connector-c", content),
        (b"status-task-c-0", content),
        (content, b"{}"),
        (content, None),
    ):
        codec.decode_config_record(key, value)
        codec.decode_status_record(key, value)
        codec.decode_offset_key(key)
    with refused_cleanly(DataError):
        codec.decode_offset(content)

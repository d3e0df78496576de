"""Rows of the log of a real MariaDB or MySQL have the values of the table: each is converted from the log and from a query."""

from __future__ import annotations

import itertools
import json
import random
import struct
from collections.abc import Iterator
from typing import Any

import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.events import CHECKSUM_BYTES, HEADER_BYTES, EventType, read_header
from sluiceway.connectors.cdc.mysql.binlog.payload import payload_events
from sluiceway.connectors.cdc.mysql.binlog.rows import OPERATIONS, Row, RowReaders, read_rows_event
from sluiceway.connectors.cdc.mysql.binlog.stream import BinlogStream, StartPosition
from sluiceway.connectors.cdc.mysql.binlog.table_map import read_table_map
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.connectors.cdc.mysql.connection import ConnectionSettings, Server, connect
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import apply_statement
from sluiceway.connectors.cdc.mysql.fields import FieldSettings, field_type
from support.database import HOST, PASSWORD, USER
from support.mariadb import MariaDbServer
from support.mysql import MySqlServer

pytestmark = pytest.mark.long

TYPES = {
    "a": "tinyint unsigned",
    "b": "smallint",
    "c": "mediumint unsigned",
    "d": "int",
    "e": "bigint unsigned",
    "f": "float",
    "g": "double",
    "h": "decimal(65,30)",
    "i": "decimal(9,0) unsigned",
    "j": "date",
    "k": "time(6)",
    "l": "time",
    "m": "datetime",
    "n": "datetime(3)",
    "o": "datetime(6)",
    "p": "year",
    "q": "varchar(300) character set latin2",
    "r": "varchar(20) character set utf16",
    "s": "char(10)",
    "t": "text",
    "u": "mediumblob",
    "v": "varbinary(20)",
    "w": "binary(7)",
    "x": "enum('one','two','three')",
    "y": "set('r','g','b')",
    "z": "bit(23)",
    "aa": "uuid",
    "ab": "inet6",
    "ac": "json",
    "ad": "point",
    "ae": "text compressed",
    "af": "timestamp(6) null",
}
ONLY_MARIADB = ("uuid", "inet6", "text compressed")
TABLE = TableId("values_of_log", "t")
POSITION_KINDS = ("file", "gtid")
REPLICAS = itertools.count(1000)


@pytest.fixture(scope="module", params=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[MariaDbServer | MySqlServer]:
    with MariaDbServer(binlog=True) if request.param == "mariadb" else MySqlServer() as started:
        yield started


def _literal(kind: str, rng: random.Random) -> str:
    """Return a random SQL value of a type."""
    base = kind.split("(")[0].split(" ")[0]
    integers = {"tinyint": (0, 255), "smallint": (-(1 << 15), (1 << 15) - 1), "mediumint": (0, (1 << 24) - 1)}
    integers |= {"int": (-(1 << 31), (1 << 31) - 1), "bigint": (0, (1 << 64) - 1), "year": (1901, 2155)}
    if base in integers:
        return str(rng.randint(*integers[base]))
    moment = f"{rng.randint(1, 9999):04}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    clock = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}.{rng.randint(0, 999999):06}"
    text = "".join(rng.choice("abcż ó'\\") for _ in range(rng.randint(0, 9))).replace("\\", "\\\\").replace("'", "''")
    makers: dict[str, Any] = {
        "float": lambda: repr(struct.unpack("f", struct.pack("f", rng.randint(-99999, 99999) / 8))[0]),
        "double": lambda: repr(rng.uniform(-1e10, 1e10)),
        "decimal": lambda: f"{rng.randint(0, 10**9 - 1)}" + ("" if "9,0" in kind else f".{rng.randint(0, 10**30 - 1):030}"),
        "date": lambda: f"'{moment}'",
        "datetime": lambda: f"'{moment} {clock}'",
        "timestamp": lambda: f"'{rng.randint(1971, 2037)}-05-06 {clock}'",
        "time": lambda: f"'{rng.choice(['', '-'])}{rng.randint(0, 837)}:{clock[3:]}'",
        "enum": lambda: f"'{rng.choice(['one', 'two', 'three'])}'",
        "set": lambda: f"'{','.join(item for item in 'rgb' if rng.random() < 0.5)}'",
        "bit": lambda: str(rng.getrandbits(23)),
        "uuid": lambda: f"'{rng.getrandbits(32):08x}-1111-{rng.choice('1467')}111-8111-{rng.getrandbits(48):012x}'",
        "inet6": lambda: f"'2001:db8::{rng.getrandbits(16):x}'",
        "json": lambda: f"'{{\"n\": {rng.randint(0, 9)}}}'",
        "point": lambda: f"point({rng.random()}, {rng.random()})",
    }
    if base in ("varbinary", "binary", "mediumblob"):
        return "x'" + rng.randbytes(rng.randint(0, 7)).hex() + "'"
    return str(makers[base]()) if base in makers else f"'{text}'"


def _events(stream: BinlogStream) -> Iterator[tuple[int, memoryview]]:
    for packet in stream.packets():
        kind, body = read_header(packet).type, packet[HEADER_BYTES:-CHECKSUM_BYTES]
        if kind == EventType.TRANSACTION_PAYLOAD:
            yield from ((read_header(inner).type, inner[HEADER_BYTES:]) for inner in payload_events(body))
        else:
            yield kind, body


def _log_rows(settings: ConnectionSettings, start: StartPosition, count: int) -> tuple[list[Row], Server]:
    server = Server(settings)
    stream = BinlogStream(connect(settings), next(REPLICAS), mariadb=server.mariadb)
    stream.start(start)
    readers: dict[int, RowReaders] = {}
    rows: list[Row] = []
    for kind, body in _events(stream):
        if kind == EventType.TABLE_MAP:
            mapped = read_table_map(body)
            readers[mapped.table_id] = RowReaders(mapped, server.charsets(), Calendar(adjust_years=False))
        elif kind in OPERATIONS:
            event = read_rows_event(kind, body)
            rows += [after for _, after in readers[event.table_id].read(event) if after is not None]
        if len(rows) >= count:
            stream.close()
    return rows, server


def _definition(server: Server) -> TableDefinition:
    tables = Tables()
    apply_statement(tables, server.create_statement(TABLE) or "", TABLE.schema)
    found = tables.get(TABLE)
    assert found is not None
    return found


@pytest.mark.parametrize("kind", POSITION_KINDS)
@pytest.mark.parametrize("compressed", [False, True])
def test_the_log_has_the_values_of_the_table(server: MariaDbServer | MySqlServer, kind: str, compressed: bool) -> None:
    rng = random.Random(7)  # noqa: S311
    settings = ConnectionSettings(HOST, server.port, USER, PASSWORD)
    mariadb = isinstance(server, MariaDbServer)
    types = {name: declared for name, declared in TYPES.items() if mariadb or declared not in ONLY_MARIADB}
    with Server(settings) as setup:
        if mariadb:
            setup.execute(f"set global log_bin_compress={int(compressed)}, global log_bin_compress_min_len=10")
        else:
            setup.execute(f"set global binlog_transaction_compression={int(compressed)}")
    with Server(settings) as setup:
        setup.execute(f"drop database if exists {TABLE.schema}")
        setup.execute(f"create database {TABLE.schema}")
        columns = ", ".join(f"{name} {declared}" for name, declared in types.items())
        setup.execute(f"create table {TABLE.schema}.t (id int primary key, {columns})")
        start = setup.position()
        for number in range(100):
            values = [_literal(declared, rng) if rng.random() < 0.9 else "null" for declared in types.values()]
            setup.execute(f"insert into {TABLE.schema}.t values ({number}, {', '.join(values)})")  # noqa: S608
    assert start.gtids
    rows, connection = _log_rows(settings, start if kind == "gtid" else StartPosition(start.file, start.position), 100)
    definition = _definition(connection)
    modes = FieldSettings("string", "hex", "isostring", "precise", b"?", Calendar(adjust_years=False))

    queried = connection.rows(f"select * from {TABLE.schema}.t order by id")  # noqa: S608
    connection.close()

    assert len(rows) == len(queried) == 100
    for position, column in enumerate(definition.columns):
        field = field_type(column, modes)
        assert field is not None
        snapshot = field.snapshot or field.convert
        for logged, found in zip(rows, queried, strict=True):
            expected = None if found[position] is None else snapshot(found[position])
            actual = None if logged[position] is None else field.convert(logged[position])
            if column.type_name == "TIMESTAMP":  # the log has all digits of the fraction, a query as few as needed
                expected, actual = ((value or "").rstrip("0Z").rstrip(".") for value in (expected, actual))
            if column.type_name == "FLOAT" and expected is not None:  # the text of a FLOAT has six digits
                assert actual == pytest.approx(expected, rel=1e-5)
                continue
            if (
                column.type_name == "JSON" and expected is not None and actual is not None
            ):  # MySQL's own text of a document has other spaces
                expected, actual = json.loads(expected), json.loads(actual)
            assert actual == expected, (column, logged[0])

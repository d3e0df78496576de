"""Events of a real log become records; after a restart, what was read of a transaction is skipped."""

from __future__ import annotations

import contextlib
import itertools
import json
import struct
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from sluiceway.api import ENCODED, EncodedRecords, SourceRecord, TaskConverters
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.binlog.charsets import Charsets
from sluiceway.connectors.cdc.mysql.binlog.events import CHECKSUM_BYTES, HEADER_BYTES, WITHOUT_ROWS, EventType
from sluiceway.connectors.cdc.mysql.binlog.stream import StartPosition
from sluiceway.connectors.cdc.mysql.binlog.temporal import Calendar
from sluiceway.connectors.cdc.mysql.buffer import RecordBuffer
from sluiceway.connectors.cdc.mysql.catalog import Catalog
from sluiceway.connectors.cdc.mysql.config import source_config
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import TableChange, apply_statement
from sluiceway.connectors.cdc.mysql.fields import FieldSettings
from sluiceway.connectors.cdc.mysql.history import SchemaHistory
from sluiceway.connectors.cdc.mysql.logged_statements import LoggedStatements
from sluiceway.connectors.cdc.mysql.offsets import LogPosition
from sluiceway.connectors.cdc.mysql.prepared import PREPARED_KEY, PreparedTransactions
from sluiceway.connectors.cdc.mysql.schema_changes import SchemaChanges
from sluiceway.connectors.cdc.mysql.streaming import Streaming
from sluiceway.connectors.cdc.mysql.streaming_parts import StreamingParts
from sluiceway.connectors.cdc.mysql.table_reader import ReadTable
from sluiceway.connectors.cdc.transactions import TransactionCounter
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.errors import ConnectError
from unit.connectors.cdc.mysql.binlog import mariadb_events as events

CONFIG = {
    "topic.prefix": "p",
    "database.hostname": "localhost",
    "database.user": "u",
    "database.server.id": "7",
    "database.include.list": "tt",
    "schema.history.internal.kafka.bootstrap.servers": "localhost:9",
    "schema.history.internal.kafka.topic": "h",
}
TRANSACTION = (events.FORMAT, events.GTID, events.TABLE_MAP, events.INSERT, events.XID)


class _History(SchemaHistory):
    """Keeps the records in memory."""

    def __init__(self) -> None:
        super().__init__({}, "p")
        self.records: list[tuple[str, Mapping[str, Any]]] = []

    def record(self, change: TableChange, position: Mapping[str, Any]) -> None:
        self.records.append((change.ddl, position))


@dataclass
class _Log:
    """A connector's state around the streaming of events."""

    config: dict[str, str] = field(default_factory=dict)
    tables: Tables = field(default_factory=lambda: Tables(server_charset="utf8mb4"))
    history: _History = field(default_factory=_History)
    buffer: RecordBuffer = field(default_factory=lambda: RecordBuffer(1000, 1 << 20, lambda: None))
    position: LogPosition = field(default_factory=lambda: LogPosition("mariadb", "p"))
    converters: TaskConverters | None = None
    columns: bool = False
    together: int = 0
    counter: TransactionCounter = field(default_factory=TransactionCounter)
    prepared: PreparedTransactions = field(init=False)
    earlier: list[bytes] = field(default_factory=list)
    read: ReadTable = field(default_factory=lambda: ReadTable(None))

    def streaming(self) -> Streaming:
        config = source_config({**CONFIG, **self.config})
        emitter = Emitter(config.common, "mariadb", self.converters)
        if self.columns:
            emitter.encode_columns()
        calendar = Calendar(adjust_years=True)
        settings = FieldSettings("string", "hex", "adaptive_time_microseconds", "long", b"?", calendar)
        catalog = Catalog(config.common.schemas(self.position.schema), settings, config.common.config)
        changes = SchemaChanges(config, self.tables, self.history, emitter, self.position, "mariadb", lambda _table: self.read)
        return Streaming(
            StreamingParts(
                config=config,
                tables=self.tables,
                catalog=catalog,
                changes=changes,
                statements=LoggedStatements(config, self.tables),
                emitter=emitter,
                position=self.position,
                counter=self.counter,
                buffer=self.buffer,
                charsets=Charsets({8: "latin1"}),
                calendar=calendar,
                mariadb=True,
                read_table=lambda _table: self.read,
                prepared=self.prepared,
                second_dump=self._second_dump,
            )
        )

    @contextlib.contextmanager
    def _second_dump(self, start: StartPosition) -> Iterator[Iterator[memoryview]]:
        assert start.position
        yield map(memoryview, self.earlier)

    def __post_init__(self) -> None:
        self.prepared = PreparedTransactions(self.position)

    def records(self, *packets: bytes) -> list[SourceRecord]:
        self.position.rewind()
        streaming = self.streaming()
        for packet in packets:
            streaming.handle(memoryview(packet))
        found = self.buffer.take(1000)
        assert isinstance(found, list)
        return found

    def _converted(self, record: SourceRecord) -> tuple[bytes | None, bytes | None]:
        assert self.converters is not None
        parts = ((self.converters.key, record.key_schema, record.key), (self.converters.value, record.value_schema, record.value))
        key, value = (
            data if schema is ENCODED else converter.encoder(record.topic, schema)(data) for converter, schema, data in parts
        )
        return key, value

    def run(self, *packets: bytes) -> list[tuple[bytes | None, bytes | None]]:
        """Return the keys and values of the records, as the runtime converts them."""
        self.streaming().run(map(memoryview, packets), lambda: False)
        sent: list[tuple[bytes | None, bytes | None]] = []
        while len(found := self.buffer.take(1000)):
            if isinstance(found, EncodedRecords):
                self.together += len(found)
                sent += zip(found.keys, found.values, strict=True)
            else:
                sent += [self._converted(record) for record in found]
        return sent


@pytest.fixture
def log() -> _Log:
    """A log whose table is known by its CREATE TABLE statement."""
    found = _Log()
    found.position.start_at(StartPosition("bin.000001", 4, "0-223344-1844"))
    found.records(events.FORMAT, events.GTID_DDL, events.QUERY)
    found.history.records.clear()
    return found


def test_a_statement_is_recorded_before_its_record() -> None:
    found = _Log()
    found.position.start_at(StartPosition("bin.000001", 4, "0-223344-1844"))

    [record] = found.records(events.FORMAT, events.GTID_DDL, events.QUERY)

    [(ddl, position)] = found.history.records
    assert ddl == record.value["ddl"]
    assert position == record.source_offset
    assert (position["gtids"], position["event"]) == ("0-223344-1844", 1)
    assert record.value["tableChanges"][0]["type"] == "CREATE"
    assert found.buffer.offset is not None
    assert found.buffer.offset["gtids"] == "0-223344-1845"


def test_rows_become_records(log: _Log) -> None:
    first, second = log.records(*TRANSACTION)

    assert (first.topic, first.key["id"], first.value["op"]) == ("p.tt.t", 1, "c")
    assert first.value["after"]["d"] == "-12.5000"
    assert second.value["after"]["d"] is None
    assert (first.value["source"]["gtid"], second.value["source"]["row"]) == ("0-223344-1846", 1)
    assert log.buffer.offset is not None
    assert log.buffer.offset["gtids"] == "0-223344-1846"


@pytest.mark.parametrize(
    ("config", "sent"),
    [
        ({}, True),
        ({"gtid.source.includes": "SOURCE"}, True),
        ({"gtid.source.includes": "9-9,SOURCE"}, True),
        ({"gtid.source.includes": "9-9"}, False),
        ({"gtid.source.includes": "9-9", "gtid.source.filter.dml.events": "false"}, True),
        ({"gtid.source.excludes": "9-9"}, True),
        ({"gtid.source.excludes": r"\d+-\d+"}, False),
        ({"gtid.source.excludes": "SOURCE", "gtid.source.filter.dml.events": "false"}, True),
    ],
    ids=str,
)
@pytest.mark.parametrize("columns", [False, True])
def test_rows_of_gtid_sources_that_are_left_out_have_no_records(
    log: _Log, config: dict[str, str], sent: bool, columns: bool
) -> None:
    log.config.update({key: value.replace("SOURCE", "0-223344") for key, value in config.items()})
    log.columns = columns
    assert bool(log.records(*TRANSACTION)) == sent
    assert log.position.offset()["gtids"] == "0-223344-1846"


@pytest.mark.parametrize("read", [0, 1])
def test_a_restart_skips_what_was_read(log: _Log, read: int) -> None:
    stored = log.records(*TRANSACTION)[read].source_offset
    restarted = _Log(tables=log.tables)
    restarted.position.load(stored or {})

    again = restarted.records(*TRANSACTION)

    assert [record.key["id"] for record in again] == [1, 2][read + 1 :]


def test_a_lost_connection_inside_a_transaction_repeats_nothing(log: _Log) -> None:
    log.records(*TRANSACTION[:-1])

    assert log.position.offset()["gtids"] == "0-223344-1845"
    assert log.records(*TRANSACTION) == []
    assert log.position.offset()["gtids"] == "0-223344-1846"


def test_other_databases_have_no_records(log: _Log) -> None:
    log.config["database.include.list"] = "elsewhere"

    assert log.records(*TRANSACTION) == []


def test_a_partial_image_is_completed_from_the_row_before(log: _Log) -> None:
    [record] = log.records(events.FORMAT, events.GTID, events.TABLE_MAP, events.PARTIAL_UPDATE, events.XID)

    assert (record.key["id"], record.value["after"]["id"], record.value["after"]["a"]) == (1, 1, 8)


def test_a_table_that_is_not_known_is_read_by_the_metadata_of_the_log() -> None:
    unknown = _Log()

    first, _ = unknown.records(*TRANSACTION)

    assert first.value["after"]["s"] == "é"
    assert first.key["id"] == 1


def _event(kind: int, flags: int = 0) -> bytes:
    body = b"\x00" * 40
    return (
        struct.pack("<IBIIIH", 1, kind, 7, HEADER_BYTES + len(body) + CHECKSUM_BYTES, 500, flags) + body + bytes(CHECKSUM_BYTES)
    )


def _statement(sql: str, *, load: bool = False) -> bytes:
    """Return the event of a statement on the database ``tt``, or of LOAD DATA."""
    body = struct.pack("<IIBHH", 1, 0, 2, 0, 0) + bytes(13 if load else 0) + b"tt\0" + sql.encode()
    size = HEADER_BYTES + len(body) + CHECKSUM_BYTES
    kind = EventType.EXECUTE_LOAD_QUERY if load else EventType.QUERY
    return struct.pack("<IBIIIH", 1, kind, 223344, size, 400_000, 0) + body + bytes(CHECKSUM_BYTES)


def _handled(log: _Log) -> set[int]:
    return {int(EventType.ROTATE), int(EventType.FORMAT_DESCRIPTION), *log.streaming()._handlers}


def test_an_event_that_may_hold_rows_and_has_no_handler_stops_the_task(log: _Log) -> None:
    passed_over = set()
    for kind in set(range(256)) - _handled(log):
        try:
            log.records(events.FORMAT, events.GTID, _event(kind))
        except ConnectError as error:
            assert f"type {EventType(kind).name if kind in set(EventType) else kind} at " in str(error)  # noqa: PT017
        else:
            passed_over.add(kind)

    assert passed_over == WITHOUT_ROWS - _handled(log)
    assert set(EventType) - _handled(log) - WITHOUT_ROWS == {
        EventType.LOAD,
        EventType.CREATE_FILE,
        EventType.EXECUTE_LOAD,
        EventType.NEW_LOAD,
        EventType.INCIDENT,
    }


def test_an_event_that_the_server_lets_readers_ignore_is_passed_over(log: _Log) -> None:
    assert log.records(events.FORMAT, _event(250, flags=0x80)) == []


@pytest.mark.parametrize("mode", ["warn", "ignore"])
def test_an_unknown_event_is_skipped_if_the_config_says_so(log: _Log, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    log.config["event.deserialization.failure.handling.mode"] = mode

    assert log.records(events.FORMAT, _event(250)) == []
    assert ("type 250" in caplog.text) == (mode == "warn")


def test_transactions_have_records_if_the_config_says_so(log: _Log) -> None:
    log.config["provide.transaction.metadata"] = "true"

    begin, first, second, end = log.records(*TRANSACTION)

    assert (begin.value["status"], end.value["status"], end.value["event_count"]) == ("BEGIN", "END", 2)
    assert (first.value["transaction"]["total_order"], second.value["transaction"]["total_order"]) == (1, 2)
    assert begin.topic == "p.transaction"


_UNKNOWN_CLAUSE = "alter table t frobnicate 5, modify s text"


def _definition(sql: str) -> TableDefinition:
    tables = Tables(charsets={"tt": "utf8mb4"})
    apply_statement(tables, sql, "tt")
    return tables.tables[TableId("tt", "t")]


def _without_names(packet: bytes) -> bytes:
    """Return a table map as a server with binlog_row_metadata=MINIMAL would write it: the metadata ends before the names."""
    return packet[: packet.index(b"\x04\x11\x02id")] + bytes(CHECKSUM_BYTES)


def _today() -> TableDefinition:
    """The table as it is when the connector, which lags, asks the server: ``s`` and ``g`` are other columns now."""
    return _definition(
        "create table t (id int primary key, a tinyint unsigned default 5, d decimal(9,2), s int, e enum('x','y'), "
        "g datetime(3), z int, b bit(11), n time(6))"
    )


def _renamed() -> TableDefinition:
    """A table of the same types: only names tell it from the known one."""
    return _definition(
        "create table t(id int primary key, a tinyint unsigned, renamed decimal(10,4), s varchar(20) character set latin1, "
        "e enum('x','y'), g datetime(3), b bit(11), n time(6))"
    )


def test_rows_behind_an_unknown_clause_have_the_columns_of_the_log(log: _Log, caplog: pytest.LogCaptureFixture) -> None:
    log.read = ReadTable(_today(), certain=False)
    change, first, _ = log.records(events.FORMAT, events.GTID_DDL, _statement(_UNKNOWN_CLAUSE), *TRANSACTION[1:])

    assert "frobnicate" in caplog.text
    assert change.value["tableChanges"][0]["table"] is None
    after = first.value["after"]
    assert [field.name for field in after.schema.fields] == ["id", "a", "d", "s", "e", "g", "b", "n"]
    assert (after["s"], after["d"], first.key["id"]) == ("é", "-12.5000", 1)
    assert after.schema.field("a").schema.default == 5


def test_rows_behind_an_unknown_clause_without_names_are_refused(log: _Log) -> None:
    log.read = ReadTable(_renamed(), certain=False)
    packets = [events.FORMAT, events.GTID, _without_names(events.TABLE_MAP), events.INSERT, events.XID]
    assert len(log.records(*packets)) == 2
    with pytest.raises(ConnectError, match="in the binary log is unknown"):
        log.records(events.FORMAT, events.GTID_DDL, _statement(_UNKNOWN_CLAUSE), *packets[1:])


@pytest.mark.parametrize("mode", ["warn", "skip"])
def test_rows_without_names_are_skipped_if_the_config_says_so(log: _Log, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    log.config["inconsistent.schema.handling.mode"] = mode
    log.read = ReadTable(_renamed(), certain=False)
    packets = [events.GTID, _without_names(events.TABLE_MAP), events.INSERT]

    assert len(log.records(events.FORMAT, events.GTID_DDL, _statement(_UNKNOWN_CLAUSE), *packets)) == 1
    assert ("Its rows are skipped" in caplog.text) == (mode == "warn")


def test_a_definition_read_at_the_end_of_the_log_counts(log: _Log) -> None:
    log.read = ReadTable(_renamed())
    packets = [events.GTID, _without_names(events.TABLE_MAP), events.INSERT]
    change, first, _ = log.records(events.FORMAT, events.GTID_DDL, _statement(_UNKNOWN_CLAUSE), *packets)

    assert change.value["tableChanges"][0]["table"]["columns"][2]["name"] == "renamed"
    assert first.value["after"]["renamed"] == "-12.5000"


def test_a_known_table_with_other_types_than_the_log_is_read_again(log: _Log) -> None:
    """A change of the table's structure that was lost."""
    log.tables.put(_today())
    log.read = ReadTable(_today(), certain=False)
    first, _ = log.records(*TRANSACTION)

    assert first.value["after"]["s"] == "é"


def test_comments_are_the_docs_of_fields(log: _Log) -> None:
    log.tables.keep_comments = True
    log.records(events.FORMAT, events.GTID_DDL, _statement("alter table t modify a tinyint unsigned comment 'its age'"))

    [first, _] = log.records(*TRANSACTION)

    assert first.value["after"].schema.field("a").schema.doc == "its age"


def test_the_schema_history_has_the_id_of_the_statement(log: _Log) -> None:
    log.config["provide.transaction.metadata"] = "true"
    log.records(events.FORMAT, events.GTID_DDL, _statement("alter table t add z int"))

    assert log.history.records[-1][1]["transaction_id"] == "0-223344-1845"


def test_statements_have_the_number_of_the_row_before_them_and_all_their_tables(log: _Log) -> None:
    sql = "rename table t to u, u to v, x to y"
    *_, one, two, three = log.records(*TRANSACTION, events.GTID_DDL, _statement(sql))

    assert [each.value["source"]["row"] for each in (one, two, three)] == [1, 1, 1]
    assert {each.value["source"]["table"] for each in (one, two, three)} == {"u,v,y"}
    assert [[change["id"] for change in each.value["tableChanges"]] for each in (one, two, three)] == [[], ['"tt"."v"'], []]


@pytest.mark.parametrize("skipped", ["none", "t"])
def test_truncate_table_is_neither_in_the_schema_topic_nor_in_the_history(log: _Log, skipped: str) -> None:
    log.config["skipped.operations"] = skipped
    records = log.records(events.FORMAT, events.GTID_DDL, _statement("truncate table t wait 3"))

    assert [each.value["op"] for each in records] == (["t"] if skipped == "none" else [])
    assert log.history.records == []


# The rows are (1, ...) and (1, 7, ...): message.key.columns makes the update change the key.
_MOVED = {"provide.transaction.metadata": "true", "message.key.columns": "tt.t:id,a"}


def _counts(records: list[SourceRecord]) -> list[tuple[str, int, int]]:
    blocks = [(each.value["op"], each.value["transaction"]) for each in records if each.value and "transaction" in each.value]
    return [(operation, block["total_order"], block["data_collection_order"]) for operation, block in blocks]


@pytest.mark.parametrize(
    ("config", "counted"),
    [
        ({}, [("c", 1, 1), ("c", 2, 2), ("d", 3, 3), ("c", 4, 4)]),
        ({"tombstones.on.delete": "false"}, [("c", 1, 1), ("c", 2, 2), ("d", 3, 3), ("c", 4, 4)]),
        ({"skipped.operations": "c"}, [("d", 1, 1), ("c", 2, 2)]),
        ({"skipped.operations": "u"}, [("c", 1, 1), ("c", 2, 2)]),
    ],
)
def test_each_record_of_a_transaction_counts_once(log: _Log, config: dict[str, str], counted: list[tuple[str, int, int]]) -> None:
    log.config = {**_MOVED, **config}

    records = log.records(*TRANSACTION[:-1], events.UPDATE, events.XID)

    assert _counts(records) == counted
    assert records[-1].value["event_count"] == len(counted)
    assert [each["event_count"] for each in records[-1].value["data_collections"]] == [len(counted)]


@pytest.mark.parametrize("stored", range(6))
def test_a_restart_goes_on_counting_and_loses_no_part_of_a_changed_key(log: _Log, stored: int) -> None:
    log.config = dict(_MOVED)
    packets = (*TRANSACTION[:-1], events.UPDATE, events.XID)
    records = log.records(*packets)
    restarted = _Log(tables=log.tables, config=log.config)
    offset = records[stored].source_offset or {}
    restarted.position.load(offset)
    restarted.counter.load(offset)

    again = restarted.records(*packets)

    sent = _counts(records[: stored + 1]) + _counts(again)
    assert [each for each, _ in itertools.groupby(sent)] == _counts(records)  # the delete may come twice
    assert again[-1].value["event_count"] == 4


@pytest.mark.parametrize("statement", ["ROLLBACK TO `a`", "SAVEPOINT `a`", "ROLLBACK"])
def test_changes_that_are_taken_back_are_logged_and_a_savepoint_ends_no_transaction(
    log: _Log, caplog: pytest.LogCaptureFixture, statement: str
) -> None:
    log.config["provide.transaction.metadata"] = "true"
    whole = statement == "ROLLBACK"

    records = log.records(
        *TRANSACTION[:-1], _statement(statement), *(() if whole else (events.TABLE_MAP, events.INSERT, events.XID))
    )

    assert _counts(records) == [("c", number, number) for number in range(1, 3 if whole else 5)]
    assert [each.value["event_count"] for each in records if each.topic == "p.transaction"] == [None, 2 if whole else 4]
    assert (f"The statement '{statement}' in the binary log" in caplog.text) == statement.startswith("ROLLBACK")


def test_a_rollback_without_captured_rows_is_not_logged(log: _Log, caplog: pytest.LogCaptureFixture) -> None:
    log.config["database.include.list"] = "other"
    log.records(*TRANSACTION[:-1], _statement("ROLLBACK"))
    assert "takes changes back" not in caplog.text


def test_statements_instead_of_rows_are_reported(log: _Log, caplog: pytest.LogCaptureFixture) -> None:
    load = _statement("load data infile '/tmp/x' into table t", load=True)

    assert log.records(events.FORMAT, events.GTID, _statement("insert into t values (1)"), load, events.XID) == []
    assert [each.split(" that it changes")[0].rpartition(" of ")[2] for each in caplog.messages] == ["tt.t", "tt.t"]
    assert log.buffer.offset is not None
    assert log.buffer.offset["gtids"] == "0-223344-1846"


def test_a_statement_instead_of_rows_stops_the_task_if_the_config_says_so(log: _Log) -> None:
    log.config["sluiceway.cdc.statements"] = "fail"

    with pytest.raises(ConnectError, match=r"instead of the rows of tt\.t "):
        log.records(events.FORMAT, events.GTID, _statement("delete from t"))


XID = "6731,62,7"
_XA_TEXT = "X'6731',X'62',7"


def _packet(kind: int, body: bytes, position: int) -> bytes:
    size = HEADER_BYTES + len(body) + CHECKSUM_BYTES
    return struct.pack("<IBIIIH", 1, kind, 223344, size, position, 0) + body + bytes(CHECKSUM_BYTES)


def _xa_gtid(sequence: int, flags: int) -> bytes:
    body = struct.pack("<QIBIBB", sequence, 0, flags, 7, 2, 1) + b"g1b"
    return _packet(EventType.MARIADB_GTID, body, 540_000 + sequence)


PREPARED = (
    _xa_gtid(1846, 0x4C),
    events.TABLE_MAP,
    events.INSERT,
    _statement(f"XA END {_XA_TEXT}"),
    _packet(EventType.XA_PREPARE, struct.pack("<BIII", 0, 7, 2, 1) + b"g1b", 550_100),
)
BETWEEN = (_xa_gtid(1847, 0x0C), events.TABLE_MAP, events.UPDATE, events.XID)


def _end(how: str) -> tuple[bytes, bytes]:
    return _xa_gtid(1848, 0x8D), _statement(f"XA {how} {_XA_TEXT}")


def _xa_log(log: _Log) -> _Log:
    log.config = {"sluiceway.cdc.compat": "correct", "provide.transaction.metadata": "true"}
    log.earlier = [events.FORMAT, *TRANSACTION[1:], *PREPARED, *BETWEEN]
    return log


def _seen(records: list[SourceRecord]) -> list[tuple[str, Any]]:
    return [(each.value["status" if each.topic.endswith(".transaction") else "op"], each.key["id"]) for each in records]


def test_rows_of_a_prepared_transaction_wait_for_its_commit(log: _Log) -> None:
    _xa_log(log)

    assert _seen(log.records(events.FORMAT, *PREPARED, *BETWEEN)) == [
        ("BEGIN", "0-223344-1847"),
        ("u", 1),
        ("END", "0-223344-1847"),
    ]
    begin, first, second, end = log.records(events.FORMAT, *_end("COMMIT"))
    assert (begin.value["status"], first.key["id"], second.key["id"], end.value["event_count"]) == ("BEGIN", 1, 2, 2)
    assert first.value["source"]["gtid"] == begin.value["id"] == "0-223344-1848"
    assert PREPARED_KEY in (second.source_offset or {})
    assert log.buffer.offset is not None
    assert PREPARED_KEY not in log.position.offset()


def test_rows_of_a_prepared_transaction_that_is_rolled_back_have_no_records(log: _Log) -> None:
    _xa_log(log)

    assert log.records(events.FORMAT, *PREPARED, *_end("ROLLBACK")) == []
    assert log.prepared.offset() == {}


def test_a_transaction_that_is_committed_in_one_phase_is_sent_at_once(log: _Log) -> None:
    _xa_log(log)
    one_phase = _packet(EventType.XA_PREPARE, struct.pack("<BIII", 1, 7, 2, 1) + b"g1b", 550_100)

    assert [kind for kind, _ in _seen(log.records(events.FORMAT, *PREPARED[:-1], one_phase))] == ["BEGIN", "c", "c", "END"]


@pytest.mark.parametrize("metadata", ["true", "false"])
@pytest.mark.parametrize("stored", [1, 2])
def test_a_restart_waits_for_the_commit_and_skips_the_rows_that_were_sent(log: _Log, stored: int, metadata: str) -> None:
    _xa_log(log).config["provide.transaction.metadata"] = metadata
    log.records(events.FORMAT, *PREPARED, *BETWEEN)
    sent = log.records(events.FORMAT, *_end("COMMIT"))
    count = stored + (metadata == "true")
    restarted = _xa_log(_Log(tables=log.tables))
    restarted.config["provide.transaction.metadata"] = metadata
    offset = sent[count - 1].source_offset or {}
    restarted.position.load(offset)
    restarted.counter.load(offset)
    restarted.prepared.load(offset)

    again = restarted.records(events.FORMAT, *_end("COMMIT"))

    assert _seen(sent[:count]) + _seen(again) == _seen(sent)


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_connection_lost_among_the_rows_of_a_prepared_transaction_loses_and_repeats_none(log: _Log, lost: int) -> None:
    _xa_log(log).config["provide.transaction.metadata"] = "false"
    xa = (*PREPARED[:3], *PREPARED[1:3], *PREPARED[1:3], *PREPARED[3:])
    log.earlier = [events.FORMAT, *xa]
    log.records(events.FORMAT, *xa)
    with pytest.MonkeyPatch.context() as patch:
        put, calls = log.buffer.put, iter(range(10))

        def fails(*arguments: Any, **named: Any) -> None:
            if next(calls) == lost:
                raise ConnectionResetError
            put(*arguments, **named)

        patch.setattr(log.buffer, "put", fails)
        with pytest.raises(ConnectionResetError):
            log.records(events.FORMAT, *_end("COMMIT"))
    sent = log.buffer.take(10)
    assert isinstance(sent, list)

    again = log.records(events.FORMAT, *_end("COMMIT"))

    assert [kind for kind, _ in _seen(sent)] == ["c", "c"] * lost
    assert [kind for kind, _ in _seen(again)] == ["c", "c"] * (3 - lost)


def test_debeziums_form_sends_the_rows_before_the_commit(log: _Log) -> None:
    assert [each.value["op"] for each in log.records(events.FORMAT, *PREPARED, *_end("ROLLBACK"))] == ["c", "c"]


def test_the_rows_of_a_commit_must_be_in_the_log(log: _Log) -> None:
    _xa_log(log)
    log.records(events.FORMAT, *PREPARED)
    log.earlier = [events.FORMAT, *BETWEEN, *_end("COMMIT")]

    with pytest.raises(ConnectError, match="its rows no longer"):
        log.records(events.FORMAT, *_end("COMMIT"))


def test_a_commit_of_rows_before_the_position_is_logged(log: _Log, caplog: pytest.LogCaptureFixture) -> None:
    assert _xa_log(log).records(events.FORMAT, *_end("COMMIT")) == []
    assert f"transaction {XID}, which is committed, are before the position" in caplog.text


@pytest.mark.parametrize("columns", [False, True])
def test_only_the_last_record_of_a_changed_key_has_the_offset_behind_it(log: _Log, columns: bool) -> None:
    log.config["message.key.columns"] = "tt.t:id,a"
    converters = TaskConverters(JsonConverter(), JsonConverter())
    for converter in converters:
        converter.configure({"schemas.enable": "false"})
    log.converters, log.columns = converters, columns
    log.streaming().run(map(memoryview, (events.FORMAT, events.GTID, events.TABLE_MAP, events.UPDATE, events.XID)))

    records = log.buffer.take(10)

    assert isinstance(records, list)
    assert [(each.source_offset or {}).get("row", 0) for each in records] == [0, 0, 1]


def test_truncate_has_a_transaction_block(log: _Log) -> None:
    log.config = {"provide.transaction.metadata": "true", "skipped.operations": "none"}
    truncate, change = log.records(events.FORMAT, events.GTID_DDL, _statement("truncate t"))

    assert _counts([truncate]) == [("t", 1, 1)]
    assert truncate.value["transaction"]["id"] == truncate.value["source"]["gtid"]
    assert change.value["ddl"] == "truncate t"
    assert "transaction_id" not in (log.buffer.offset or {})


def test_the_right_form_of_truncate_has_begin_and_end(log: _Log) -> None:
    log.config = {
        "provide.transaction.metadata": "true",
        "skipped.operations": "none",
        "sluiceway.cdc.compat": "correct",
        "include.schema.changes": "false",
    }
    begin, truncate, end = log.records(events.FORMAT, events.GTID_DDL, _statement("truncate table t"))

    assert (begin.value["status"], end.value["status"], end.value["event_count"]) == ("BEGIN", "END", 1)
    assert _counts([truncate]) == [("t", 1, 1)]


@pytest.mark.parametrize("last", [events.XID, events.INSERT])
def test_rows_of_several_events_are_encoded_together(last: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)
    converters = TaskConverters(JsonConverter(), JsonConverter())
    for converter in converters:
        converter.configure({"schemas.enable": "false"})
    logs = [_Log(converters=converters), _Log(converters=converters, columns=True)]
    packets = [*TRANSACTION[1:] * 60, *TRANSACTION[1:-1], last]
    sent = []
    for each in logs:
        each.position.start_at(StartPosition("bin.000001", 4, "0-223344-1844"))
        each.streaming().run(map(memoryview, (events.FORMAT, events.GTID_DDL, events.QUERY)))
        each.buffer.take(1000)
        sent.append(each.run(events.FORMAT, *packets))

    assert sent[0] == sent[1]
    assert len(sent[0]) > 60
    assert logs[1].together == len(sent[0])
    assert logs[0].buffer.offset == logs[1].buffer.offset
    assert logs[0].position.skips == logs[1].position.skips


_BACK = (
    *TRANSACTION[:-1],
    _statement("SAVEPOINT `a`"),
    events.TABLE_MAP,
    events.UPDATE,
    _statement("ROLLBACK TO `a`"),
    events.TABLE_MAP,
    events.COMPRESSED_DELETE,
    events.XID,
)


@pytest.mark.parametrize("config", [{"sluiceway.cdc.compat": "correct"}, {"binlog.buffer.size": "1"}], ids=str)
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize(
    ("packets", "operations"), [(_BACK, "ccd"), ((*_BACK[:-1], _statement("ROLLBACK")), ""), ((*TRANSACTION[:-1],), "")]
)
def test_rows_that_are_taken_back_have_no_records(
    log: _Log,
    packets: tuple[bytes, ...],
    operations: str,
    columns: bool,
    config: dict[str, str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    log.config = {**config, "tombstones.on.delete": "false"}
    log.converters, log.columns = _json_converters(), columns

    assert "".join(json.loads(value or b"")["op"] for _, value in log.run(*packets)) == operations
    assert "takes changes back" not in caplog.text
    assert log.position.in_transaction is False
    log.config = {"tombstones.on.delete": "false"}
    log.position.begin(None, 4)
    log.position.commit(4)
    assert len(log.run(*packets)) == len([each for each in packets if each in (events.UPDATE, events.COMPRESSED_DELETE)]) + 2


def _json_converters() -> TaskConverters:
    converters = TaskConverters(JsonConverter(), JsonConverter())
    for converter in converters:
        converter.configure({"schemas.enable": "false"})
    return converters


@pytest.mark.parametrize("read", range(3))
def test_a_restart_behind_rows_that_were_taken_back_skips_what_was_read(log: _Log, read: int) -> None:
    log.config = {"sluiceway.cdc.compat": "correct", "tombstones.on.delete": "false"}
    log.streaming().run(map(memoryview, _BACK))
    records = log.buffer.take(10)
    assert isinstance(records, list)
    restarted = _Log(tables=log.tables, config=log.config)
    restarted.position.load(records[read].source_offset or {})
    restarted.position.rewind()

    restarted.streaming().run(map(memoryview, _BACK))

    again = restarted.buffer.take(10)
    assert isinstance(again, list)
    assert [each.value["op"] for each in (*records[: read + 1], *again)] == ["c", "c", "d"]


def test_a_savepoint_that_the_log_does_not_have_is_logged(log: _Log, caplog: pytest.LogCaptureFixture) -> None:
    log.config["sluiceway.cdc.compat"] = "correct"
    log.streaming().run(map(memoryview, (*TRANSACTION[:-1], _statement("ROLLBACK TO `other`"), events.XID)))

    assert len(log.buffer.take(10)) == 2
    assert "The statement 'ROLLBACK TO `other`' in the binary log" in caplog.text


def test_rows_that_a_prepared_transaction_took_back_are_not_sent_with_its_commit(log: _Log) -> None:
    _xa_log(log)
    back = (PREPARED[0], _statement("SAVEPOINT `s`"), *PREPARED[1:3], _statement("ROLLBACK TO `s`"), *BETWEEN[1:3], *PREPARED[3:])
    log.earlier = [events.FORMAT, *back]
    log.streaming().run(map(memoryview, (events.FORMAT, *back)))
    stored = log.position.offset()
    assert json.loads(stored[PREPARED_KEY])[XID][3] == [[0, 1]]
    restarted = _xa_log(_Log(tables=log.tables))
    restarted.earlier = log.earlier
    restarted.position.load(stored)
    restarted.prepared.load(stored)

    restarted.position.rewind()
    restarted.streaming().run(map(memoryview, (events.FORMAT, *_end("COMMIT"))))

    found = restarted.buffer.take(10)
    assert isinstance(found, list)
    assert [kind for kind, _ in _seen(found)] == ["BEGIN", "u", "END"]


def test_a_statement_within_a_transaction_does_not_end_it(log: _Log) -> None:
    """As CREATE TABLE ... SELECT, whose rows follow: a restart in between must not lose them."""
    log.records(*TRANSACTION[:2], _statement("create table x (a int)"), *TRANSACTION[2:-1])

    assert log.position.in_transaction
    assert log.position.offset()["gtids"] == "0-223344-1845"
    assert [
        each.key["id"] for each in log.records(*TRANSACTION[:2], _statement("create table x (a int)"), *TRANSACTION[2:])
    ] == []
    assert log.position.offset()["gtids"] == "0-223344-1846"


def test_a_savepoint_of_mysqls_xa_transaction_does_not_end_it(log: _Log) -> None:
    xa = (_xa_gtid(1846, 0x0D), _statement(f"XA START {_XA_TEXT}"), *PREPARED[1:3], _statement("SAVEPOINT `a`"))
    log.records(events.FORMAT, *xa)

    assert log.position.in_transaction
    assert log.position.offset()["gtids"] == "0-223344-1845"
    log.records(events.FORMAT, *xa, *PREPARED[3:])
    assert log.position.offset()["gtids"] == "0-223344-1846"

"""HBase's source and sink on a real server: rows, cells and timestamps, regions that split and merge, servers that are away."""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.config.intervals import IntervalRun
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.hbase import HBaseSinkConnector, HBaseSourceConnector
from sluiceway.connectors.hbase.client import Delete, Put
from sluiceway.connectors.hbase.sink import HBaseSinkTask
from sluiceway.connectors.hbase.source import HBaseSourceTask
from sluiceway.data import FLOAT64_SCHEMA, INT32_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.errors import ConfigError, ConnectError, RetriableError
from sluiceway.runtime.memory import MemoryConnectorContext, MemoryOffsets, MemorySinkContext, MemorySourceContext
from sluiceway.testing import SinkConnectorContract, SourceConnectorContract
from support.engine import RunningTask
from support.eventually import eventually
from support.exactly_once import exactly_once_worker
from support.hbase.server import HBaseServer
from support.intervals import hours
from support.kafka import Kafka
from support.sink_tasks import put_until_taken

pytestmark = pytest.mark.kafka

ROW = Schema.struct({"name": STRING_SCHEMA, "age": INT32_SCHEMA, "price": FLOAT64_SCHEMA, "note": OPTIONAL_STRING_SCHEMA})
OLD = 1_700_000_000_000  # ms


@pytest.fixture(scope="module")
def server() -> Iterator[HBaseServer]:
    with HBaseServer() as started:
        yield started


@pytest.fixture
def table(server: HBaseServer, unique: Callable[[str], str]) -> str:
    return server.create(unique("t"), "cf", "d")


def config_of(kind: type, server: HBaseServer, table: str, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {
        "name": table,
        "connector.class": f"{kind.__module__}.{kind.__qualname__}",
        "hbase.thrift.servers": f"127.0.0.1:{server.port}",
        "hbase.table": table,
        **given,
    }


def sink_record(key: Any, value: Any, offset: int = 0, *, at: int | None = OLD, schema: Schema | None = None) -> SinkRecord:
    return SinkRecord("topic", 0, offset, value, schema, key, timestamp=at)


class Sink:
    """A sink task without Kafka."""

    def __init__(self, server: HBaseServer, table: str, **more: str) -> None:
        self.config = config_of(HBaseSinkConnector, server, table, **more)
        self.context = MemorySinkContext(self.config)
        self.task = HBaseSinkTask()
        self.task.initialize(self.context)
        self.task.start(self.config)

    def put(self, *records: SinkRecord) -> None:
        self.task.put(records)

    @property
    def refused(self) -> list[str]:
        reporter = self.context.errant_record_reporter
        assert reporter is not None
        return [str(error) for _record, error in reporter.reported]


class Source:
    """The tasks of a source without Kafka, whose offsets are stored as soon as records are polled."""

    def __init__(
        self, server: HBaseServer, table: str, offsets: MemoryOffsets | None = None, tasks: int = 1, **more: str
    ) -> None:
        quick = {"hbase.horizon.ms": "0", "poll.interval.ms": "1", "hbase.regions.interval.ms": "1000"}
        self.config = {**quick, **config_of(HBaseSourceConnector, server, table, **more)}
        self.offsets = MemoryOffsets() if offsets is None else offsets
        self.context = MemoryConnectorContext(self.offsets)
        self.connector = HBaseSourceConnector()
        self.connector.initialize(self.context)
        self.connector.start(self.config)
        self.task_configs = self.connector.task_configs(tasks)
        self.tasks = [self._started(config) for config in self.task_configs]

    def _started(self, given: Mapping[str, str]) -> HBaseSourceTask:
        task = HBaseSourceTask()
        task.initialize(MemorySourceContext(given, self.offsets))
        task.start(given)
        return task

    def poll(self, task: HBaseSourceTask) -> Sequence[SourceRecord]:
        found = task.poll() or ()
        self.offsets.store_all(found)
        if not found:
            for partition, offset in task.idle_offsets():
                self.offsets.store(partition, offset)
            task.commit()
        return found

    def read(self, most: int = 1_000_000) -> list[SourceRecord]:
        """Return the records until each range was read once, or ``most`` of them."""
        found: list[SourceRecord] = []
        for task in self.tasks:
            while not task.ended and len(found) < most:
                found += self.poll(task)
        return found

    def close(self) -> None:
        self.connector.stop()
        for task in self.tasks:
            task.stop()


@contextmanager
def source(
    server: HBaseServer, table: str, offsets: MemoryOffsets | None = None, tasks: int = 1, **more: str
) -> Iterator[Source]:
    made = Source(server, table, offsets, tasks, **more)
    try:
        yield made
    finally:
        made.close()


def fill(server: HBaseServer, table: str, keys: Sequence[str], value: str = "v", at: int | None = OLD) -> None:
    with server.client() as client:
        client.put(table, [Put(key.encode(), ((b"cf", b"a", value.encode()),), at) for key in keys])


def keys_of(records: Sequence[SourceRecord]) -> list[str]:
    return [record.key for record in records]


# --- the sink


def test_fields_are_columns_in_text_or_binary(server: HBaseServer, table: str) -> None:
    row = Struct(ROW, {"name": "Zoë", "age": 258, "price": 1.5, "note": None})
    Sink(server, table).put(sink_record("a", row, schema=ROW))
    Sink(server, table, hbase_encoding="binary").put(sink_record(b"b", row, schema=ROW))
    Sink(server, table).put(
        sink_record(3, {"d:x": Decimal("1.50"), "list": [1, {"b": None}], "yes": True}),
        sink_record("text", "plain"),
    )
    assert server.rows(table) == {
        b"a": {"cf:name": "Zoë".encode(), "cf:age": b"258", "cf:price": b"1.5"},
        b"b": {"cf:name": "Zoë".encode(), "cf:age": b"\0\0\1\2", "cf:price": b"\x3f\xf8\0\0\0\0\0\0"},
        b"3": {"d:x": b"1.50", "cf:list": b'[1,{"b":null}]', "cf:yes": b"true"},
        b"text": {"cf:value": b"plain"},
    }


def test_a_row_key_is_made_of_fields(server: HBaseServer, table: str) -> None:
    Sink(server, table).put(sink_record({"shop": "x", "id": 7}, {"n": 1}))
    sink = Sink(server, table, hbase_rowkey_fields="id,name", hbase_rowkey_separator="|")
    sink.put(
        sink_record({"shop": "x", "id": 7}, {"name": "Zoë"}),
        sink_record(None, {"id": 1}),
        sink_record(None, {"id": 1, "name": ""}),
    )
    assert list(server.rows(table)) == [b"1|", "7|Zoë".encode(), b"x:7"]
    assert ["no field name" in each for each in sink.refused] == [True]


def test_null_fields_and_tombstones_delete_columns_and_rows(server: HBaseServer, table: str) -> None:
    sink = Sink(server, table)
    for number, key in enumerate(("a", "b", "c", "d")):
        sink.put(sink_record(key, {"x": "1", "y": "2", "d:z": "3"}, number))
    sink.put(sink_record("b", {"x": "4", "y": None}, 5, at=OLD + 1), sink_record("c", None, 6, at=OLD + 1))
    Sink(server, table, hbase_null_fields="ignore").put(sink_record("d", {"x": None, "y": "5"}, 7, at=OLD + 1))
    Sink(server, table, behavior_on_null_values="ignore").put(sink_record("a", None, 8, at=OLD + 1))
    failing = Sink(server, table, behavior_on_null_values="fail")
    failing.put(sink_record("a", None, 9, at=OLD + 1))
    assert len(failing.refused) == 1
    assert server.rows(table) == {
        b"a": {"cf:x": b"1", "cf:y": b"2", "d:z": b"3"},
        b"b": {"cf:x": b"4", "d:z": b"3"},
        b"d": {"cf:x": b"1", "cf:y": b"5", "d:z": b"3"},
    }


@pytest.mark.parametrize("times", ["record", "offset"])
def test_records_that_come_again_or_late_change_nothing(server: HBaseServer, table: str, times: str) -> None:
    records = [
        sink_record("a", {"x": "1"}, 0, at=OLD),
        sink_record("b", {"x": "2"}, 1, at=OLD + 1),
        sink_record("a", {"x": "3"}, 2, at=OLD + 2),
        sink_record("b", None, 3, at=OLD + 3),
        sink_record("c", None, 4, at=OLD + 4),
        sink_record("c", {"x": "5"}, 5, at=OLD + 5),
    ]
    expected = {b"a": {"cf:x": b"3"}, b"c": {"cf:x": b"5"}}
    sink = Sink(server, table, hbase_timestamp=times)
    sink.put(*records)
    assert server.rows(table) == expected
    sink.put(*records[:2])
    Sink(server, table, hbase_timestamp=times).put(*records)
    assert server.rows(table) == expected


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("deleted_by", [None, {"x": None, "y": "0"}])
def test_a_row_that_is_deleted_and_put_in_one_millisecond_is_seen(
    server: HBaseServer, table: str, together: bool, deleted_by: Any
) -> None:
    records = [
        *(sink_record("a", {"x": "1"}, 0), sink_record("a", deleted_by, 1), sink_record("a", {"x": "2"}, 2)),
        *(sink_record("a", deleted_by, 3), sink_record("a", {"x": "3"}, 4), sink_record("b", {"x": "4"}, 5)),
    ]
    sink = Sink(server, table)
    for batch in [records] if together else [[each] for each in records]:
        sink.put(*batch)
    found = server.rows(table)
    assert {key: cells["cf:x"] for key, cells in found.items()} == {b"a": b"3", b"b": b"4"}
    assert sink.task.metrics()["puts-after-deletions"] > 0
    sink.put(*records)  # the same again, as after a rebalance
    assert server.rows(table) == found


@pytest.mark.parametrize("times", ["record", "offset", "server"])
def test_any_records_of_one_key_end_as_in_the_topic(
    server: HBaseServer, table: str, chance: random.Random, monkeypatch: pytest.MonkeyPatch, times: str
) -> None:
    """Random puts, null fields and tombstones, many in one millisecond, while some calls fail or their answers are lost."""

    def unsure(call: Callable[..., None]) -> Callable[..., None]:
        def maybe(*arguments: Any) -> None:
            if chance.random() < 0.1:
                raise UnreachableError("before")
            call(*arguments)
            if chance.random() < 0.1:
                raise UnreachableError("after")

        return maybe

    expected: dict[bytes, dict[str, bytes]] = {}
    sink = Sink(server, table, hbase_timestamp=times)
    client = sink.task._opened()
    monkeypatch.setattr(client, "put", unsure(client.put))
    monkeypatch.setattr(client, "delete", unsure(client.delete))
    at, records = OLD, []
    states: list[list[tuple[bytes, dict[str, bytes]]]] = []  # before each record
    for offset in range(300):
        states.append([(key, dict(cells)) for key, cells in expected.items()])
        at += chance.choice([0, 0, 0, 0, 0, 1, 2])
        key = chance.choice("abc")
        row = expected.setdefault(key.encode(), {})
        if chance.random() < 0.35:
            records.append(sink_record(key, None, offset, at=at))
            row.clear()
            continue
        value = {name: chance.choice([None, f"{offset}"]) for name in chance.sample("xyz", chance.randint(1, 3))}
        records.append(sink_record(key, value, offset, at=at))
        for name, each in value.items():
            row.pop(f"cf:{name}", None)
            row.update({} if each is None else {f"cf:{name}": each.encode()})
    states.append(list(expected.items()))
    while records:
        count = chance.randint(1, 8)
        while True:
            with contextlib.suppress(RetriableError):
                sink.put(*records[:count])
                break
        del records[:count]
        then = states[records[0].kafka_offset if records else -1]
        assert server.rows(table) == {key: cells for key, cells in then if cells}


def test_records_that_hbase_refuses_are_reported_and_the_others_written(server: HBaseServer, table: str) -> None:
    sink = Sink(server, table, batch_bytes="100000000")  # one request
    sink.put(
        *(sink_record("a", {"x": "1"}), sink_record("b", {"nope:x": "2"}), sink_record("", {"x": "3"})),
        *(sink_record("k" * 40_000, {"x": "4"}), sink_record("c", {"x": "5" * 11_000_000}), sink_record("d", {"x": "6"})),
        *(sink_record("e", {"x": "7"}, at=-5), sink_record(None, {"x": "8"}), sink_record("f", {})),
    )
    assert list(server.rows(table)) == [b"a", b"d"]
    said = "\n".join(sink.refused)
    assert len(sink.refused) == 7
    for reason in ("no column family nope, only cf, d", "0 bytes", "40000 bytes", "before 1970", "no key", "has no fields"):
        assert reason in said
    assert "hbase.client.keyvalue.maxsize" in said
    assert "55555" not in said


def test_a_missing_table_fails_or_is_created(server: HBaseServer, unique: Callable[[str], str]) -> None:
    name = unique("missing")
    with pytest.raises(ConnectError, match=rf"has no table {name}\. Create it, or set hbase\.auto\.create=true"):
        Sink(server, name).put(sink_record("a", {"x": "1"}))
    Sink(server, name, hbase_auto_create="true", hbase_family="made").put(sink_record("a", {"x": "1"}))
    assert server.rows(name) == {b"a": {"made:x": b"1"}}


def test_a_table_that_is_disabled_or_deleted_meanwhile_is_said(server: HBaseServer, unique: Callable[[str], str]) -> None:
    table = server.create(unique("gone"), "cf")
    sink = Sink(server, table, hbase_thrift_timeout="2")
    sink.put(sink_record("a", {"x": "1"}))
    server.do("disable", table)
    with pytest.raises(RetriableError):
        sink.put(sink_record("b", {"x": "2"}))
    with pytest.raises(RetriableError, match=f"Table {table} of HBase .* is disabled"):
        sink.put(sink_record("b", {"x": "2"}))
    server.do("enable", table)
    put_until_taken(sink.task, sink.context, [sink_record("b", {"x": "2"})])
    server.do("drop", table)
    with pytest.raises((RetriableError, ConnectError)):
        sink.put(sink_record("c", {"x": "3"}))
    with pytest.raises(ConnectError, match=f"has no table {table}"):
        sink.put(sink_record("c", {"x": "3"}))
    with source(server, server.create(unique("gone"), "cf")) as reading:
        server.do("drop", reading.config["hbase.table"])
        with pytest.raises(ConnectError, match="has no table"):
            reading.read()


@pytest.mark.parametrize("field", [{b"\xff": "1"}, {None: "1"}, {"cf:x": "1", "x": "2"}, {"\ud800": "1"}, {"x": "\ud800"}])
def test_fields_that_make_no_column_are_bad_records(server: HBaseServer, table: str, field: Any) -> None:
    sink = Sink(server, table)
    sink.put(sink_record("a", field), sink_record("b", {"x": "1"}))
    assert len(sink.refused) == (0 if b"\xff" in field else 1)
    assert b"b" in server.rows(table)


def test_a_topic_names_its_table(server: HBaseServer, unique: Callable[[str], str]) -> None:
    topic = unique("orders")
    sink = Sink(server, "default:x-${topic}", hbase_auto_create="true")
    sink.put(SinkRecord(topic, 0, 0, {"x": "1"}, None, "a", timestamp=OLD))
    assert server.rows(f"x-{topic}") == {b"a": {"cf:x": b"1"}}


def test_offsets_as_timestamps_and_a_time_to_live_are_refused(server: HBaseServer, unique: Callable[[str], str]) -> None:
    name = server.create(unique("ttl"), "cf", timeToLive=86_400)
    with pytest.raises(ConfigError, match="has a TTL"):
        Sink(server, name, hbase_timestamp="offset").put(sink_record("a", {"x": "1"}))


def test_a_sink_writes_through_splits_merges_and_moves(server: HBaseServer, table: str) -> None:
    sink = Sink(server, table)
    for number, change in enumerate((("split", "k0500"), ("move",), ("merge", "k0500"))):
        batch = [sink_record(f"k{each:04d}", {"x": f"{number}"}, number, at=OLD + number) for each in range(0, 1000, 10)]
        put_until_taken(sink.task, sink.context, batch[:50])
        server.do(change[0], table, *change[1:])
        put_until_taken(sink.task, sink.context, batch[50:])
    assert {cells["cf:x"] for cells in server.rows(table).values()} == {b"2"}
    assert len(server.rows(table)) == 100


class TestSinkContract(SinkConnectorContract):
    connector_class = HBaseSinkConnector

    @pytest.fixture
    def config(self, server: HBaseServer, table: str) -> dict[str, str]:
        return config_of(HBaseSinkConnector, server, table)


# --- the source


class TestSourceContract(SourceConnectorContract):
    connector_class = HBaseSourceConnector
    record_count = 5

    @pytest.fixture
    def config(self, server: HBaseServer, table: str) -> dict[str, str]:
        fill(server, table, ["a", "b", "c", "d", "e"])
        return {**config_of(HBaseSourceConnector, server, table, batch_max_rows="2"), "hbase.horizon.ms": "0"}


def test_rows_are_maps_of_their_columns(server: HBaseServer, table: str) -> None:
    with server.client() as client:
        cells = ((b"cf", b"a", "ë".encode()), (b"d", b"", b"2"), (b"d", b"x:y", b"3"))
        client.put(table, [Put(b"r1", cells, OLD), Put(b"r2", ((b"cf", b"a", b"4"),), 5)])
    with source(server, table, topic="from.${table}") as reading:
        first, second = reading.read()
    assert (first.topic, first.key, first.timestamp) == (f"from.{table}", "r1", OLD)
    assert dict(first.value) == {"cf:a": "ë", "d:": "2", "d:x:y": "3"}
    assert (second.key, second.timestamp) == ("r2", None), "a small number is no time"
    with source(server, table, hbase_key_type="bytes", hbase_value_type="bytes", hbase_columns="d") as reading:
        [record] = reading.read()
    assert (record.key, dict(record.value)) == (b"r1", {"d:": b"2", "d:x:y": b"3"})


@pytest.mark.parametrize("encoding", ["text", "binary"])
def test_what_the_sink_wrote_is_read_with_its_types(server: HBaseServer, table: str, encoding: str) -> None:
    row = {"name": "Zoë", "age": 258, "price": 1.5, "note": None}
    Sink(server, table, hbase_encoding=encoding).put(sink_record("a", Struct(ROW, row), schema=ROW))
    columns = "cf:name,cf:age=int32,cf:price=float64,cf:note=string"
    with source(server, table, hbase_columns=columns, hbase_encoding=encoding) as reading:
        [record] = reading.read()
    assert {name: record.value[name] for name in row} == row


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_cell_that_is_not_of_its_type_is_a_bad_record(server: HBaseServer, table: str, tolerance: str) -> None:
    fill(server, table, ["a", "c"], "1")
    fill(server, table, ["b"], "secret")
    with source(server, table, hbase_columns="cf:a=int32", errors_tolerance=tolerance) as reading:
        if tolerance == "none":
            with pytest.raises(ConnectError, match="Column cf:a of a row has 6 bytes that are no int32") as raised:
                reading.read()
            assert "secret" not in str(raised.value)
            return
        assert keys_of(reading.read()) == ["a", "c"]
        [(bad, _error)] = reading.tasks[0].context.reported  # type: ignore[attr-defined]
    assert (bad.key, bad.value) == (b"b", b"{'cf:a': b'secret'}")


@pytest.mark.parametrize("whole", [True, False])
def test_later_passes_read_the_rows_with_new_cells(server: HBaseServer, table: str, whole: bool) -> None:
    offsets = MemoryOffsets()
    with server.client() as client:
        client.put(table, [Put(key, ((b"cf", b"a", b"1"), (b"cf", b"b", b"1"))) for key in (b"r1", b"r2", b"r3")])
        with source(server, table, offsets, hbase_record="row" if whole else "changes") as reading:
            assert keys_of(reading.read()) == ["r1", "r2", "r3"]
            client.put(table, [Put(b"r2", ((b"cf", b"a", b"2"),)), Put(b"r4", ((b"cf", b"a", b"2"),))])
            client.delete(table, [Delete(b"r3")])
            found: list[SourceRecord] = []

            def both() -> bool:
                found.extend(reading.poll(reading.tasks[0]))
                return len(found) >= 2

            eventually(both)
    assert [(each.key, dict(each.value)) for each in found] == [
        ("r2", {"cf:a": "2", "cf:b": "1"} if whole else {"cf:a": "2"}),
        ("r4", {"cf:a": "2"}),
    ]
    with source(server, table, offsets) as reading:
        assert reading.read() == []


def test_a_row_has_all_its_columns_although_one_is_newer_than_the_horizon(server: HBaseServer, table: str) -> None:
    """Without its newest cells, a row would lack the column: after a flush, HBase has the newest version only."""
    with server.client() as client:
        offsets = MemoryOffsets()
        fill(server, table, ["first"])
        with source(server, table, offsets, hbase_horizon_ms="0") as reading:
            reading.read()
        now = int(time.time() * 1000)
        client.put(table, [Put(b"r", ((b"cf", b"name", b"n"), (b"cf", b"state", b"old")), now)])
        client.put(table, [Put(b"r", ((b"cf", b"state", b"new"),), now + 3_600_000)])
        server.do("flush", table)
        for stored in (offsets, MemoryOffsets()):  # in a later pass, and in the first one
            with source(server, table, stored, hbase_horizon_ms="0") as reading:
                record = reading.read()[-1]
            assert (record.key, dict(record.value)) == ("r", {"cf:name": "n", "cf:state": "new"})


def test_a_request_that_fails_is_made_smaller(server: HBaseServer, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [f"r{each:04d}" for each in range(400)]
    fill(server, table, keys)
    with source(server, table) as reading:
        task = reading.tasks[0]
        assert task._client is not None
        scan, asked = task._client.scan, list[int]()

        def limited(*arguments: Any, most: int, **more: Any) -> Any:
            asked.append(most)
            if most > 40:
                raise UnreachableError("the server has died")
            return scan(*arguments, most=most, **more)

        monkeypatch.setattr(task._client, "scan", limited)
        found: list[str] = []
        for _ in range(100):
            with contextlib.suppress(RetriableError):
                found += keys_of(reading.poll(task))
    assert found == keys
    assert max(asked) <= 100


def test_a_row_that_no_request_can_read_is_named(server: HBaseServer, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(server, table, ["a", "b"])
    with source(server, table) as reading:
        task = reading.tasks[0]
        assert task._client is not None
        scan, said, found = task._client.scan, list[str](), list[str]()

        def limited(name: str, start: bytes, *arguments: Any, most: int, **more: Any) -> Any:
            if start or most > 1:
                raise UnreachableError("the server has died")
            return scan(name, start, *arguments, most=most, **more)

        monkeypatch.setattr(task._client, "scan", limited)
        for _ in range(20):
            try:
                found += keys_of(reading.poll(task))
            except RetriableError as error:
                said.append(str(error))
    assert found == ["a"]
    assert f"the first row of table {table} from 'a\\x00' on takes more than its memory" in said[-1]
    assert "first row" not in said[0]


def test_offsets_that_no_task_could_use_are_refused(server: HBaseServer, table: str) -> None:
    connector, config = HBaseSourceConnector(), config_of(HBaseSourceConnector, server, table)
    good = {"table": table, "start": "m\\xFF"}
    assert connector.alter_offsets(config, [(good, {"since": 5}), ({"table": table}, {"starts": "- m\\xFF"}), (good, None)])
    for partition, offset in (
        ({"table": "other", "start": ""}, {"since": 5}),
        ({"table": table, "start": "m\\xff"}, {"since": 5}),
        ({"table": table, "start": 5}, {"since": 5}),
        ({"table": table, "row": ""}, {"since": 5}),
        (good, {"since": 2**63}),
        ({"table": table}, {"starts": "m"}),
        (good, {"since": 99_999_999_999_999}),
    ):
        with pytest.raises(ConnectError):
            connector.alter_offsets(config, [(partition, offset)])


def test_a_position_without_a_plan_is_none(server: HBaseServer, table: str) -> None:
    """As after a crash between the two, and a merge: the range has been read as a part of another one since."""
    fill(server, table, ["a", "z"])
    offsets = MemoryOffsets([({"table": table, "start": "m"}, {"since": 0})])
    with source(server, table, offsets) as reading:
        assert keys_of(reading.read()) == ["a", "z"]
    server.do("split", table, "m")
    with source(server, table, offsets) as reading:
        assert reading.read() == []


def test_a_start_from_now_reads_what_is_written_afterwards(server: HBaseServer, table: str) -> None:
    fill(server, table, ["before"], at=None)
    offsets = MemoryOffsets()
    with source(server, table, offsets, hbase_start="now") as reading:
        assert reading.read() == []
    fill(server, table, ["after"], at=None)
    with source(server, table, offsets, hbase_start="now") as reading:
        assert keys_of(reading.read()) == ["after"]


def test_cells_are_read_once_they_are_older_than_the_horizon(server: HBaseServer, table: str) -> None:
    fill(server, table, ["old"])
    fill(server, table, ["new"], at=int(time.time() * 1000))
    with source(server, table, hbase_horizon_ms="3600000") as reading:
        assert keys_of(reading.read()) == ["old"]
    with source(server, table, hbase_horizon_ms="1") as reading:
        assert keys_of(reading.read()) == ["new", "old"]


def test_a_restart_continues_in_the_pass(server: HBaseServer, table: str) -> None:
    keys = [f"r{each:03d}" for each in range(100)]
    fill(server, table, keys)
    offsets = MemoryOffsets()
    found: list[str] = []
    while len(found) < 100:
        with source(server, table, offsets, batch_max_rows="7") as reading:
            found += keys_of(reading.read(most=1))
    assert found == keys


def test_splits_merges_and_moves_change_nothing_of_a_pass(server: HBaseServer, unique: Callable[[str], str]) -> None:
    table = server.create(unique("regions"), "cf", splits=[b"r250", b"r500", b"r750"])
    keys = [f"r{each:03d}" for each in range(1000)]
    fill(server, table, keys)
    offsets = MemoryOffsets()
    found: list[str] = []
    changes = iter([("split", "r100"), ("merge", "r500"), ("move",), ("split", "r800")])
    tasks = 1
    while len(found) < 1000:
        with source(server, table, offsets, tasks, batch_max_rows="20") as reading:
            found += [
                key for task in reading.tasks for key in keys_of(reading.poll(task) or reading.poll(task) or reading.poll(task))
            ]
            if change := next(changes, None):
                server.do(change[0], table, *change[1:])
                found += [key for task in reading.tasks for key in keys_of(reading.poll(task))]
        tasks = tasks % 3 + 1
    assert sorted(found) == keys, "each row once"
    [plan] = [offset for partition, offset in offsets.all() if "start" not in partition]
    assert plan["starts"] == "- r100 r250 r500 r750 r800"


def test_a_region_that_is_split_becomes_the_range_of_another_task(server: HBaseServer, table: str) -> None:
    fill(server, table, ["a", "z"])
    with source(server, table, tasks=2) as reading:
        assert len(reading.tasks) == 1
        assert keys_of(reading.read()) == ["a", "z"]
        server.do("split", table, "m")
        eventually(lambda: reading.context.reconfigurations, what="the connector to see the new region")
        together = Source(server, table, reading.offsets, tasks=2)
    assert len(together.tasks) == 1, "the new range takes its position from the old one, in its task"
    assert together.read() == []
    together.close()
    with source(server, table, together.offsets, tasks=2) as apart:
        assert [each["task.ranges"] for each in apart.task_configs] == ["-", "m"]
        assert apart.read() == []
        fill(server, table, ["n"], at=None)
        assert keys_of(eventually(lambda: [*apart.poll(apart.tasks[0]), *apart.poll(apart.tasks[1])])) == ["n"]


def test_rows_are_read_only_after_the_plan_is_stored(server: HBaseServer, table: str) -> None:
    fill(server, table, ["a"])
    with source(server, table) as reading:
        task = reading.tasks[0]
        assert task.poll() is None
        [(partition, offset)] = task.idle_offsets()
        assert (partition, offset) == ({"table": table, "start": ""}, {"since": 0})
        assert task.poll() is None, "before Kafka has it"
        assert task.commit_is_awaited
        task.commit()
        assert task.poll() is None
        assert list(task.idle_offsets()) == [({"table": table}, {"starts": "-"})]
        task.commit()
        assert keys_of(task.poll() or ()) == ["a"]


# --- both


def test_servers_that_are_away_are_waited_for(server: HBaseServer, table: str) -> None:
    fill(server, table, ["a"])
    sink = Sink(server, table)
    with source(server, table) as reading:
        reading.read()
        server.thrift.kill()
        try:
            with pytest.raises(RetriableError, match=r"hbase\.thrift\.servers can be reached|Thrift server"):
                sink.put(sink_record("b", {"a": "1"}, at=None))
            reading.tasks[0].context.wait(0.01)  # the next pass is due
            with pytest.raises(RetriableError, match=r"hbase\.thrift\.servers can be reached|Thrift server"):
                reading.poll(reading.tasks[0])
        finally:
            server.start()
        put_until_taken(sink.task, sink.context, [sink_record("b", {"a": "1"}, at=None)])
        assert keys_of(eventually(lambda: reading.poll(reading.tasks[0]))) == ["b"]


def test_a_second_server_is_used_if_the_first_is_away(server: HBaseServer, table: str) -> None:
    sink = Sink(server, table, hbase_thrift_servers=f"127.0.0.1:1,127.0.0.1:{server.port}")
    sink.put(sink_record("a", {"x": "1"}))
    assert list(server.rows(table)) == [b"a"]


def test_a_connection_that_was_idle_is_opened_again(server: HBaseServer, table: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with server.client() as client:
        assert client.table_exists(table)
        first = client._client
        monkeypatch.setattr(client, "_used", time.monotonic() - 3600)
        assert client.table_exists(table)
        assert client._client is not first


def test_a_run_of_an_interval_reads_the_rows_that_were_written_in_it(server: HBaseServer, unique: Callable[[str], str]) -> None:
    table = server.create(unique("hours"), "cf", "d", splits=[b"r5"])
    of_hours = hours(1_767_225_600_000, 3)
    moments = [of_hours[0].start - 1, *(at for each in of_hours for at in (each.start, each.end - 1)), of_hours[-1].end]
    for at in moments:
        fill(server, table, [f"r{number}-{at}" for number in range(10)], at=at)
    for hour in of_hours:
        keys = {"hbase.horizon.ms": "60000", **IntervalRun("c", hour, 1).keys()}
        offsets = MemoryOffsets()
        with source(server, table, offsets, 2, batch_max_rows="3", **keys) as reading:
            found = keys_of(reading.read(most=7))  # and dies
        with source(server, table, offsets, 2, batch_max_rows="3", **keys) as reading:
            found += keys_of(reading.read())
        assert sorted(found) == sorted(f"r{number}-{at}" for number in range(10) for at in (hour.start, hour.end - 1))


@pytest.mark.parametrize("kind", [HBaseSourceConnector, HBaseSinkConnector])
def test_validation_names_what_is_wrong(server: HBaseServer, table: str, kind: Any) -> None:
    def errors(**more: str) -> dict[str, str]:
        found = kind.validate(config_of(kind, server, table, **more))
        return {name: " ".join(each.errors) for name, each in found.items() if each.errors}

    assert errors() == {}
    assert "is no table of this HBase" in errors(hbase_table="nope")["hbase.table"]
    assert "is no name of a table" in errors(hbase_table="a/b")["hbase.table"]
    assert errors(hbase_thrift_servers="127.0.0.1:1") == {}, "tasks wait for it"
    assert "answers with buffered" in errors(hbase_thrift_transport="framed", hbase_thrift_timeout="2")["hbase.thrift.transport"]
    assert "answers with binary" in errors(hbase_thrift_protocol="compact", hbase_thrift_timeout="2")["hbase.thrift.protocol"]
    assert "is no host and port" in errors(hbase_thrift_servers="http://x")["hbase.thrift.servers"]
    key, value = ("hbase.columns", "nope:a") if kind is HBaseSourceConnector else ("hbase.family", "nope")
    assert "which has cf, d" in errors(**{key: value})[key]
    assert errors(hbase_table=server.create(f"{table}-other", "d", "e")) == {}, "fields may name their families"


def test_rows_go_through_kafka_exactly_once(
    server: HBaseServer, table: str, kafka: Kafka, unique: Callable[[str], str], tmp_path: Any
) -> None:
    fill(server, table, [f"r{each:03d}" for each in range(300)])
    target = server.create(unique("target"), "cf")
    kafka.create(table)
    worker = exactly_once_worker(kafka.bootstrap, unique)
    with source(server, table, batch_max_rows="50") as planned:
        given = planned.task_configs[0]
    converters = {
        "key.converter": "StringConverter",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    with RunningTask({**given, **converters, "topic": table}, worker) as running:
        values = [json.loads(value) for value in kafka.values(table, 300)]
        running.stop()
    assert values == [{"cf:a": "v"}] * 300
    sink = {**config_of(HBaseSinkConnector, server, target, topics=table), **converters, "name": unique("sink")}
    with RunningTask(sink, worker):
        eventually(lambda: len(server.rows(target)) == 300, what="all rows in the target")
    assert server.rows(target) == server.rows(table)

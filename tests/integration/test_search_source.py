"""The search sources on a real OpenSearch node: modes, points in time, indexes that come and go, and a node in trouble."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import orjson
import pytest

from sluiceway.api import SourceRecord
from sluiceway.config.intervals import IntervalRun
from sluiceway.connectors.search.source import ElasticsearchSourceConnector, OpenSearchSourceConnector
from sluiceway.connectors.search.source.connector import SearchSourceConnector
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.runtime.memory import MemoryConnectorContext, MemoryOffsets, MemorySourceContext
from sluiceway.testing import SourceConnectorContract
from support.eventually import LIMIT, eventually
from support.intervals import hours
from support.search import SearchServer

KINDS = [ElasticsearchSourceConnector, OpenSearchSourceConnector]
FAST = {"poll.interval.ms": "0", "index.poll.interval.ms": "200", "timestamp.delay.ms": "0", "read.timeout.ms": "60000"}
BASE = 1_767_225_600_000  # 2026


@pytest.fixture(scope="module")
def server() -> Iterator[SearchServer]:
    with SearchServer(**{"search.max_open_pit_context": "20"}) as started:
        yield started


@pytest.fixture
def index(unique: Callable[[str], str]) -> str:
    return unique("index").lower()


def create(server: SearchServer, index: str, shards: int = 1, refresh: str = "1s", **fields: str) -> None:
    settings = {"index": {"number_of_shards": shards, "number_of_replicas": 0, "refresh_interval": refresh}}
    mappings = {"properties": {name: {"type": kind} for name, kind in fields.items()}}
    assert server.call("PUT", f"/{index}", {"settings": settings, "mappings": mappings})["acknowledged"]


def write(server: SearchServer, index: str, documents: Mapping[str, Mapping[str, Any]], action: str = "index") -> None:
    lines = [part for key, each in documents.items() for part in ({action: {"_id": key}}, each)]
    body = b"".join(orjson.dumps(each) + b"\n" for each in lines)
    assert not server.send(f"/{index}/_bulk?refresh=true", body)["errors"]


def numbered(count: int, first: int = 0, **more: Any) -> dict[str, dict[str, Any]]:
    return {f"k{n}": {"n": n, **more} for n in range(first, first + count)}


class Source:
    """A connector with its tasks, whose offsets outlive them."""

    def __init__(
        self, server: SearchServer, kind: type[SearchSourceConnector], config: dict[str, str], max_tasks: int = 1
    ) -> None:
        self.config = {"name": "n", "connection.url": server.url, **FAST, **config}
        self.kind, self.max_tasks = kind, max_tasks
        self.offsets = MemoryOffsets()
        self.records: list[SourceRecord] = []
        self.start()

    def start(self) -> None:
        self.connector, self.context = self.kind(), MemoryConnectorContext()
        self.connector.initialize(self.context)
        self.connector.start(self.config)
        self.start_tasks()

    def start_tasks(self) -> None:
        self.tasks = []
        for config in self.connector.task_configs(self.max_tasks):
            task = self.kind.task_class()
            task.initialize(MemorySourceContext(config, self.offsets))
            task.start(config)
            self.tasks.append(task)

    def stop(self) -> None:
        for task in self.tasks:
            task.stop()
        self.connector.stop()

    def restart(self) -> None:
        self.stop()
        self.start()

    def poll(self) -> list[SourceRecord]:
        """Poll each task once, as the runtime does; all records are acknowledged."""
        found: list[SourceRecord] = []
        for task in self.tasks:
            deadline = time.monotonic() + LIMIT
            while True:
                try:
                    found += task.poll() or []
                    break
                except RetriableError:
                    assert time.monotonic() < deadline
                    time.sleep(0.2)  # as the runtime's back-off
        self.offsets.store_all(found)
        if not found:
            for task in self.tasks:
                for partition, offset in task.idle_offsets():
                    self.offsets.store(partition, offset)
        self.records += found
        return found

    def read(self, count: int) -> list[SourceRecord]:
        """Read until there are so many records in all."""
        eventually(lambda: self.poll() is not None and len(self.records) >= count, what=f"{count} records")
        return self.records

    def drain(self) -> None:
        """Poll until two polls have found nothing."""
        empty = 0
        while empty < 2:
            empty = 0 if self.poll() else empty + 1

    @property
    def ids(self) -> list[str]:
        return [str(each.key) for each in self.records]


@contextmanager
def reading(
    server: SearchServer,
    index: str,
    kind: type[SearchSourceConnector] = OpenSearchSourceConnector,
    max_tasks: int = 1,
    /,
    **config: str,
) -> Iterator[Source]:
    made = Source(server, kind, {"index": index, **{key.replace("_", "."): value for key, value in config.items()}}, max_tasks)
    try:
        yield made
    finally:
        made.stop()


def views(server: SearchServer) -> int:
    """Return how many points in time are open."""
    nodes = server.call("GET", "/_nodes/stats/indices/search")["nodes"]
    return sum(int(each["indices"]["search"]["point_in_time_current"]) for each in nodes.values())


@pytest.mark.parametrize("kind", KINDS, ids=["elasticsearch", "opensearch"])
def test_all_modes_read_each_document_once_from_several_shards(server: SearchServer, index: str, kind: Any) -> None:
    create(server, index, shards=3, n="long", t="date")
    write(server, index, numbered(500, t=BASE))
    for mode in ({}, {"mode": "timestamp", "timestamp_field": "t"}, {"incrementing_field": "n"}, {"mode": "bulk"}):
        with reading(server, index, kind, 2, batch_max_rows="7", poll_interval_ms="60000", **mode) as source:
            source.drain()
            assert len(source.tasks) == 2
            assert sorted(source.ids) == sorted(f"k{n}" for n in range(500)), mode
            one = source.records[0]
            assert (one.topic, one.value) == (index, {"n": int(str(one.key)[1:]), "t": BASE})
            source.restart()
            source.drain()
            assert len(source.ids) == (1000 if "mode" in mode and mode["mode"] == "bulk" else 500), mode
    assert views(server) == 0


def test_new_and_changed_documents_are_read_in_the_order_of_their_writes(server: SearchServer, index: str) -> None:
    create(server, index, refresh="-1", n="long")
    with reading(server, index) as source:
        write(server, index, numbered(5))
        source.read(5)
        server.call("POST", f"/{index}/_doc/k1", {"n": 10})  # not refreshed
        server.call("DELETE", f"/{index}/_doc/k2")
        server.call("POST", f"/{index}/_doc/k9", {"n": 9})
        source.read(7)
        source.drain()
        assert source.ids[5:] == ["k1", "k9"]


def test_equal_timestamps_across_pages_are_read_once_with_a_kill_after_each_page(server: SearchServer, index: str) -> None:
    create(server, index, t="date_nanos")
    write(server, index, numbered(40, t="2026-01-01T00:00:00.000000001Z"))
    write(server, index, numbered(40, 40, t="2026-01-01T00:00:00.000000002Z"))
    with reading(server, index, mode="timestamp", timestamp_field="t", batch_max_rows="7") as source:
        while len(source.ids) < 80:
            source.poll()
            source.restart()
        source.drain()
        assert sorted(source.ids) == sorted(f"k{n}" for n in range(80))
        write(server, index, {"late": {"t": "2026-01-01T00:00:00.000000002Z"}})
        source.read(81)


def test_a_young_document_is_not_read_before_the_delay(server: SearchServer, index: str) -> None:
    create(server, index, t="date")
    now = int(time.time() * 1000)
    write(server, index, {"old": {"t": now - 3_600_000}, "young": {"t": now}})
    with reading(server, index, mode="timestamp", timestamp_field="t", timestamp_delay_ms="600000") as source:
        source.drain()
        assert source.ids == ["old"]
        lag = source.tasks[0].source_lag().seconds
        assert lag is not None
        assert lag >= 600


@pytest.mark.parametrize("kind", ["date", "date_nanos"])
def test_a_run_of_an_interval_reads_its_documents_before_they_can_be_searched(
    server: SearchServer, index: str, kind: str
) -> None:
    create(server, index, shards=2, refresh="-1", t=kind)
    of_hours = hours(BASE // 3_600_000 * 3_600_000, 3)
    times = [of_hours[0].start - 1, *(at for each in of_hours for at in (each.start, each.end - 1)), of_hours[-1].end]
    lines = [part for at in times for each in range(20) for part in ({"create": {"_id": f"{at}-{each}"}}, {"t": at})]
    assert not server.send(f"/{index}/_bulk", b"".join(orjson.dumps(each) + b"\n" for each in lines))["errors"]
    for hour in of_hours:
        keys = {"timestamp.delay.ms": "600000", "batch.max.rows": "7", **IntervalRun("c", hour, 1).keys()}
        with reading(server, index, mode="timestamp", timestamp_field="t", **keys) as source:
            source.read(10)
            source.restart()
            source.drain()
            assert sorted(source.ids) == sorted(f"{at}-{each}" for at in (hour.start, hour.end - 1) for each in range(20))


def test_a_query_fields_and_headers_choose_what_a_record_has(server: SearchServer, index: str) -> None:
    create(server, index)
    write(server, index, numbered(4, a={"b": 1, "c": 2}, d=3))
    with reading(
        server,
        index,
        query='{"range": {"n": {"gte": 2}}}',
        fields_include="n,a.*",
        fields_exclude="a.c",
        metadata_headers="true",
        topic_prefix="from-",
    ) as source:
        source.drain()
        assert [each.value for each in source.records] == [{"n": n, "a": {"b": 1}} for n in (2, 3)]
        assert {each.topic for each in source.records} == {f"from-{index}"}
        headers = {each.key: each.value for each in source.records[0].headers}
        assert headers == {"_index": index, "_id": "k2", "_version": 1, "_seq_no": 2, "_primary_term": 1}


def test_a_point_in_time_that_expires_is_opened_again(server: SearchServer, index: str) -> None:
    create(server, index, shards=2)
    write(server, index, numbered(60))
    for mode in ("incrementing", "bulk"):
        with reading(server, index, mode=mode, batch_max_rows="7", poll_interval_ms="60000") as source:
            source.poll()
            assert server.call("DELETE", "/_search/point_in_time/_all")["pits"]
            source.drain()
            assert sorted(source.ids) == sorted(f"k{n}" for n in range(60))


def test_documents_written_during_a_pass_are_read_by_the_next_one(server: SearchServer, index: str) -> None:
    create(server, index)
    write(server, index, numbered(20))
    with reading(server, index, batch_max_rows="5") as source:
        source.poll()
        write(server, index, numbered(10, 15))  # changes some
        source.drain()
        assert [each.value["n"] for each in source.records] == [*range(20), *range(15, 25)]


def test_new_indexes_change_the_tasks_and_deleted_ones_end(server: SearchServer, index: str) -> None:
    with reading(server, f"{index}-*,-{index}-no", OpenSearchSourceConnector, 3) as source:
        assert source.tasks == []
        assert f"no index, alias or data stream {index}-*" in str(source.context.waits_for[-1])
        create(server, f"{index}-a")
        create(server, f"{index}-no")
        write(server, f"{index}-a", {"x": {}})
        eventually(lambda: source.context.reconfigurations == 1, what="the new index")
        assert source.context.waits_for[-1] is None
        source.start_tasks()
        source.read(1)
        server.call("DELETE", f"/{index}-a")
        source.drain()
        eventually(lambda: source.context.reconfigurations == 2, what="the deleted index")


def test_aliases_and_data_streams_stand_for_their_indexes(server: SearchServer, index: str) -> None:
    create(server, f"{index}-a")
    write(server, f"{index}-a", {"x": {}})
    server.call("POST", "/_aliases", {"actions": [{"add": {"index": f"{index}-a", "alias": f"{index}-alias"}}]})
    template = {"index_patterns": [f"{index}-s*"], "data_stream": {}, "priority": 300}
    server.call("PUT", f"/_index_template/{index}", template)
    write(server, f"{index}-stream", {"y": {"@timestamp": BASE}}, "create")
    server.call("POST", f"/{index}-stream/_rollover")
    write(server, f"{index}-stream", {"z": {"@timestamp": BASE}}, "create")
    for pattern in (f"{index}-alias,{index}-stream", f"{index}-*"):
        with reading(server, pattern) as source:
            source.drain()
            found = sorted((each.topic, str(each.key)) for each in source.records)
            assert found == [(f"{index}-a", "x"), (f"{index}-stream", "y"), (f"{index}-stream", "z")]
    filtered = {"index": f"{index}-a", "alias": f"{index}-few", "filter": {"term": {"n": 1}}}
    server.call("POST", "/_aliases", {"actions": [{"add": filtered}]})
    with pytest.raises(ConnectError, match="has a filter"), reading(server, f"{index}-few"):
        pass


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"mode": "timestamp", "timestamp_field": "s"}, "type text"),
        ({"mode": "timestamp", "timestamp_field": "missing"}, "no field missing"),
        ({"incrementing_field": "s"}, "type text"),
        ({"query": '{"nonsense": {}}'}, "nonsense"),
    ],
)
def test_what_the_server_refuses_fails_the_task(server: SearchServer, index: str, config: dict[str, str], message: str) -> None:
    create(server, index, s="text")
    write(server, index, {"x": {"s": "a"}})
    with reading(server, index, **config) as source, pytest.raises(ConnectError, match=message) as caught:
        source.tasks[0].poll()
    assert not isinstance(caught.value, RetriableError)


def test_a_page_larger_than_the_index_allows_fails_the_task(server: SearchServer, index: str) -> None:
    create(server, index)
    write(server, index, {"x": {}})
    server.call("PUT", f"/{index}/_settings", {"index.max_result_window": 10})
    with reading(server, index) as source, pytest.raises(ConnectError, match="max_result_window"):
        source.tasks[0].poll()


def test_too_many_points_in_time_are_waited_for(server: SearchServer, index: str) -> None:
    create(server, index)
    write(server, index, {"x": {}})
    opened = [server.call("POST", f"/{index}/_search/point_in_time?keep_alive=5m") for _ in range(20)]
    assert all("pit_id" in each for each in opened)
    with reading(server, index) as source:
        with pytest.raises(RetriableError, match=r"search\.max_open_pit_context"):
            source.tasks[0].poll()
        server.call("DELETE", "/_search/point_in_time/_all")
        source.read(1)


def test_validation_names_what_is_missing(server: SearchServer, index: str) -> None:
    create(server, index, s="text")
    config = {"connection.url": server.url, "index": f"{index},{index}x", "mode": "timestamp", "timestamp.field": "s"}
    found = OpenSearchSourceConnector.validate(config)
    assert f"no index, alias or data stream {index}x" in found["index"].errors[0]
    assert "type text" in found["timestamp.field"].errors[0]


@pytest.mark.parametrize("mode", ["incrementing", "bulk"])
def test_a_node_that_restarts_in_the_middle_of_a_pass(index: str, mode: str) -> None:
    with SearchServer() as server:
        create(server, index, shards=2)
        write(server, index, numbered(100))
        with reading(server, index, mode=mode, batch_max_rows="7", poll_interval_ms="600000") as source:
            source.poll()
            server.kill()
            with pytest.raises(RetriableError, match="was interrupted"):
                source.tasks[0].poll()
            server.start()
            source.drain()
            assert sorted(source.ids) == sorted(f"k{n}" for n in range(100))


def test_a_connector_waits_for_a_server_that_is_away(index: str) -> None:
    with SearchServer() as server:
        create(server, index)
        write(server, index, {"x": {}})
        server.kill()
        with reading(server, index) as source:
            assert source.tasks == []
            assert "does not answer" in str(source.context.waits_for[-1])
            server.start()
            eventually(lambda: source.context.reconfigurations > 0, what="the index")
            source.start_tasks()
            source.read(1)


class _Contract(SourceConnectorContract):
    @pytest.fixture
    def config(self, server: SearchServer, index: str) -> dict[str, str]:
        create(server, index)
        write(server, index, numbered(self.record_count))
        return {"connection.url": server.url, "index": index, **FAST}


class TestElasticsearchSourceContract(_Contract):
    connector_class = ElasticsearchSourceConnector


class TestOpenSearchSourceContract(_Contract):
    connector_class = OpenSearchSourceConnector

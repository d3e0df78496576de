"""The search sinks' tasks on a real OpenSearch node: documents, versions, mappings, bad documents, and a node in trouble."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.search.sink import ElasticsearchSinkConnector, OpenSearchSinkConnector
from sluiceway.connectors.search.sink.task import SearchSinkTask
from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Header, Schema, Struct, date_schema, decimal_schema
from sluiceway.errors import ConnectError, RetriableError
from sluiceway.runtime.memory import MemorySinkContext
from sluiceway.testing import SinkConnectorContract
from support.eventually import eventually
from support.search import SearchServer
from support.sink_tasks import put_until_taken

PATIENT = {"read.timeout.ms": "60000", "behavior.on.null.values": "delete", "schema.ignore": "true", "errors.tolerance": "all"}
KINDS = [ElasticsearchSinkConnector, OpenSearchSinkConnector]
both = pytest.mark.parametrize("kind", KINDS, ids=["elasticsearch", "opensearch"])


@pytest.fixture(scope="module")
def server() -> Iterator[SearchServer]:
    # Small limits, so that a request can exceed them.
    with SearchServer(**{"http.max_content_length": "64kb", "thread_pool.write.queue_size": "1"}) as started:
        yield started


@pytest.fixture
def index(unique: Callable[[str], str]) -> str:
    return unique("index").lower()


class Running:
    """A task and its context."""

    def __init__(self, kind: type[Any], server: SearchServer, config: dict[str, str]) -> None:
        self.config = {"name": "n", "connection.url": server.url, **PATIENT, **config}
        self.context = MemorySinkContext(self.config)
        self.task: SearchSinkTask = kind.task_class()
        self.task.initialize(self.context)
        self.task.start(self.config)

    def put(self, *records: SinkRecord) -> None:
        put_until_taken(self.task, self.context, records)

    @property
    def bad(self) -> list[int]:
        return [record.kafka_offset for record, _error in self.context.reported]


@contextmanager
def running(server: SearchServer, kind: type[Any] = ElasticsearchSinkConnector, /, **config: str) -> Iterator[Running]:
    made = Running(kind, server, {key.replace("_", "."): value for key, value in config.items()})
    try:
        yield made
    finally:
        made.task.stop()


def documents(topic: str, values: Sequence[Any], key: Callable[[int], str] = "k{}".format, first: int = 0) -> list[SinkRecord]:
    return [SinkRecord(topic, 0, first + n, value, key=key(n)) for n, value in enumerate(values)]


@both
def test_a_record_replaces_and_a_tombstone_deletes_the_document_of_its_key(server: SearchServer, index: str, kind: Any) -> None:
    with running(server, kind) as sink:
        sink.put(*documents(index, [{"a": 1}, {"b": 2}, {"c": 3}]))
        sink.put(*documents(index, [{"a": 4}, None], first=3), SinkRecord(index, 0, 5, None, key="never"))
        assert server.documents(index) == {"k0": {"a": 4}, "k2": {"c": 3}}


@both
def test_records_that_come_again_change_nothing(server: SearchServer, index: str, kind: Any) -> None:
    records = documents(index, [{"n": n} if n % 7 else None for n in range(60)], key=lambda n: f"k{n % 11}")
    with running(server, kind) as sink:
        sink.put(*records)
        before = server.documents(index)
        for first in (0, 20, 55):
            sink.put(*records[first:])
            sink.put(*records[first : first + 3])
        assert server.documents(index) == before
        assert sink.bad == []


def test_a_version_of_a_header_wins_over_the_offset(server: SearchServer, index: str) -> None:
    def versioned(offset: int, version: int) -> SinkRecord:
        return SinkRecord(index, 0, offset, {"v": version}, key="k", headers=(Header("v", version, None),))

    with running(server, external_version_header="v") as sink:
        sink.put(versioned(0, 20), versioned(1, 10))
        assert server.documents(index) == {"k": {"v": 20}}


@both
def test_an_upsert_merges_fields(server: SearchServer, index: str, kind: Any) -> None:
    method = "write_method" if kind is ElasticsearchSinkConnector else "index_write_method"
    with running(server, kind, **{method: "upsert"}) as sink:
        sink.put(*documents(index, [{"a": 1, "b": 1}, {"b": 2}, {"c": 3}], key=lambda _n: "k"))
        assert server.documents(index) == {"k": {"a": 1, "b": 2, "c": 3}}


@both
def test_ids_of_offsets(server: SearchServer, index: str, kind: Any) -> None:
    with running(server, kind, key_ignore="true") as sink:
        for _ in range(2):
            sink.put(*(SinkRecord(index, 1, n, {"n": n}) for n in range(3)))
        assert server.documents(index) == {f"{index}+1+{n}": {"n": n} for n in range(3)}


VALUE = Schema.struct({"id": INT32_SCHEMA, "name": STRING_SCHEMA, "day": date_schema(), "price": decimal_schema(2)})


def test_a_new_index_gets_the_fields_of_the_first_schema(server: SearchServer, index: str) -> None:
    value = Struct(VALUE, {"id": 1, "name": "Ann", "day": dt.date(2026, 11, 28), "price": Decimal("1.50")})
    with running(server, schema_ignore="false") as sink:
        sink.put(SinkRecord(index, 0, 0, value, VALUE, key="a"))
    found = server.call("GET", f"/{index}/_mapping")[index]["mappings"]["properties"]
    assert {name: each["type"] for name, each in found.items()} == {
        "id": "integer",
        "name": "text",
        "day": "date",
        "price": "double",
    }
    server.call("POST", f"/{index}/_refresh")
    [hit] = server.call("POST", f"/{index}/_search?q=day:2026-11-28")["hits"]["hits"]
    assert hit["_source"]["name"] == "Ann"


def test_a_tombstone_does_not_decide_the_fields(server: SearchServer, index: str) -> None:
    schema = Schema.struct({"day": date_schema()})
    value = Struct(schema, {"day": dt.date(2026, 11, 28)})
    tombstone, valued = SinkRecord(index, 0, 0, None, key="a"), SinkRecord(index, 0, 1, value, schema, key="b")
    with running(server, schema_ignore="false") as sink:
        sink.put(tombstone)
        sink.put(tombstone, valued)
    assert server.call("GET", f"/{index}/_mapping")[index]["mappings"]["properties"] == {"day": {"type": "date"}}


@pytest.mark.parametrize("name", ["", "a..b", "_id"])
def test_fields_that_no_index_can_have_are_a_fault_of_the_records(server: SearchServer, index: str, name: str) -> None:
    odd, plain = Schema.struct({name: INT32_SCHEMA}), Schema.struct({"n": INT32_SCHEMA})
    with running(server, schema_ignore="false") as sink:
        sink.put(SinkRecord(index, 0, 0, Struct(odd, {name: 1}), odd, key="a"))
        sink.put(SinkRecord(index, 0, 1, Struct(plain, {"n": 1}), plain, key="b"))
        assert sink.bad == [0]
        assert server.documents(index) == {"b": {"n": 1}}


def test_a_resource_must_exist(server: SearchServer, index: str) -> None:
    mapping = {"external_resource_usage": "INDEX", "topic_to_external_resource_mapping": f"t:{index}"}
    with running(server, **mapping) as sink, pytest.raises(ConnectError, match=r"does not exist\. Create it"):
        sink.task.put(documents("t", [{"n": 1}]))


def test_an_index_that_exists_keeps_its_fields(server: SearchServer, index: str) -> None:
    server.call("PUT", f"/{index}", {"mappings": {"properties": {"id": {"type": "keyword"}}}})
    schema = Schema.struct({"id": INT32_SCHEMA})
    with running(server, schema_ignore="false") as sink:
        sink.put(SinkRecord(index, 0, 0, Struct(schema, {"id": 1}), schema, key="a"))
    assert server.call("GET", f"/{index}/_mapping")[index]["mappings"]["properties"] == {"id": {"type": "keyword"}}


def test_bad_documents_are_reported_and_the_others_written(server: SearchServer, index: str) -> None:
    with running(server) as sink:
        sink.put(*documents(index, [{"n": 1}]))
        values: list[Any] = [{"n": "x"}, {"n": 2}, "text", [1], {"n": {"a": 1}}, {"m": 3}]
        sink.put(*documents(index, values, first=1), SinkRecord(index, 0, 9, {}, key=1.5))
        assert sorted(sink.bad) == [1, 3, 4, 5, 9]
        assert server.documents(index) == {"k0": {"n": 1}, "k1": {"n": 2}, "k5": {"m": 3}}
    errors = {record.kafka_offset: str(error) for record, error in sink.context.reported}
    assert f"The record {index}-0 at offset 1 was refused: mapper_parsing_exception" in errors[1]


@both
@pytest.mark.parametrize("behavior", ["ignore", "warn"])
def test_bad_documents_may_be_left_out(
    server: SearchServer, index: str, kind: Any, behavior: str, caplog: pytest.LogCaptureFixture
) -> None:
    with running(server, kind, **{"behavior_on_malformed_documents": behavior, "drop_invalid_message": "true"}) as sink:
        sink.context.errant_record_reporter = None
        sink.put(*documents(index, [{"n": 1}]))
        sink.put(*documents(index, [{"n": "x"}, {"n": 2}], first=1), SinkRecord(index, 0, 9, {}, key=None))
        assert server.documents(index) == {"k0": {"n": 1}, "k1": {"n": 2}}
    assert ("at offset 1 is left out" in caplog.text) == (behavior == "warn")
    assert "at offset 9 is left out" in caplog.text


def test_a_request_that_is_too_large_is_parted_and_a_document_refused(server: SearchServer, index: str) -> None:
    with running(server) as sink:
        values = [{"t": "x" * 1000}] * 150
        values[77] = {"t": "x" * 70_000}
        sink.put(*documents(index, values))
        assert sink.bad == [77]
        assert len(server.documents(index)) == 149


def test_an_index_that_is_blocked_is_waited_for(server: SearchServer, index: str) -> None:
    with running(server, max_retries="1000") as sink:
        sink.put(*documents(index, [{"n": 1}]))
        server.call("PUT", f"/{index}/_settings", {"index.blocks.read_only_allow_delete": True})  # as a full disk does
        with pytest.raises(RetriableError, match="cluster_block_exception"):
            sink.task.put(documents(index, [{"n": 2}], first=1))
        server.call("PUT", f"/{index}/_settings", {"index.blocks.read_only_allow_delete": None})
        sink.put(*documents(index, [{"n": 2}], first=1))
        assert server.documents(index) == {"k0": {"n": 2}}
        assert sink.task.metrics()["sink-throttled-ms"] > 0


def test_what_no_document_can_mend_fails_the_task(server: SearchServer, index: str) -> None:
    server.call("PUT", "/_cluster/settings", {"transient": {"action.auto_create_index": "false"}})
    try:
        with running(server) as sink:
            sink.put(*documents(index, [{"n": 1}]))
            server.call("DELETE", f"/{index}")
            with pytest.raises(ConnectError, match="index_not_found_exception") as caught:
                sink.task.put(documents(index, [{"n": 1}], first=1))
    finally:
        server.call("PUT", "/_cluster/settings", {"transient": {"action.auto_create_index": None}})
    assert not isinstance(caught.value, RetriableError)
    with running(server) as sink, pytest.raises(ConnectError, match="invalid_index_name_exception"):
        sink.task.put(documents("a#b", [{"n": 1}]))


def test_an_alias_is_written_to(server: SearchServer, index: str) -> None:
    server.call("PUT", f"/{index}", {"aliases": {f"{index}-alias": {}}})
    mapping = {"external_resource_usage": "ALIAS_INDEX", "topic_to_external_resource_mapping": f"t:{index}-alias"}
    with running(server, **mapping) as sink:
        sink.put(*documents("t", [{"n": 1}]))
        assert server.documents(index) == {"k0": {"n": 1}}


@both
def test_a_data_stream_gets_each_record_once(server: SearchServer, index: str, kind: Any) -> None:
    template = {"index_patterns": [f"logs-shop-{index}"], "data_stream": {}, "priority": 500}
    server.call("PUT", f"/_index_template/{index}", template)
    confluent = {"data_stream_type": "logs", "data_stream_dataset": "shop"}
    aiven = {"data_stream_enabled": "true", "data_stream_prefix": "logs-shop", "data_streams_existing_index_template_name": index}
    with running(
        server, kind, behavior_on_null_values="ignore", **(confluent if kind is ElasticsearchSinkConnector else aiven)
    ) as sink:
        for _ in range(2):
            sink.put(*(SinkRecord(index, 0, n, {"n": n}, key="k", timestamp=1000 + n) for n in range(3)))
    found = server.documents(f"logs-shop-{index}")
    assert found == {f"{index}+0+{n}": {"n": n, "@timestamp": 1000 + n} for n in range(3)}
    assert server.call("GET", f"/_data_stream/logs-shop-{index}")["data_streams"]


def test_the_template_of_a_data_stream_is_made(server: SearchServer, index: str) -> None:
    with running(
        server, OpenSearchSinkConnector, behavior_on_null_values="ignore", data_stream_enabled="true", data_stream_prefix=index
    ) as sink:
        sink.put(SinkRecord("t", 0, 0, {"@timestamp": "2026-11-28", "n": 1}, key="k"))
    assert server.documents(f"{index}-t") == {"t+0+0": {"@timestamp": "2026-11-28", "n": 1}}
    [template] = server.call("GET", f"/_index_template/{index}-*")["index_templates"]
    assert template["index_template"]["index_patterns"] == [f"{index}-t"]  # other indexes may begin so


def test_a_data_stream_without_a_template_is_told(server: SearchServer, index: str) -> None:
    stream = {"data_stream_type": "metrics", "data_stream_dataset": "none", "behavior_on_null_values": "ignore"}
    with running(server, **stream) as sink, pytest.raises(ConnectError, match="no matching index template"):
        sink.task.put([SinkRecord(index, 0, 0, {"n": 1}, timestamp=1)])


def test_two_topics_in_one_index_are_warned_of(server: SearchServer, index: str, caplog: pytest.LogCaptureFixture) -> None:
    with running(server, topic_index_map=f"a:{index},b:{index}") as sink:
        sink.put(*documents("a", [{"n": 1}]), *documents("b", [{"n": 2}]))
    assert caplog.text.count(f"{index} gets documents from the topics a, b") == 1


def test_requests_may_be_compressed(server: SearchServer, index: str) -> None:
    with running(server, connection_compression="true") as sink:
        sink.put(*documents(index, [{"n": n} for n in range(50)]))
        assert len(server.documents(index)) == 50


def test_a_server_that_does_not_answer_is_left_for_another(server: SearchServer, index: str) -> None:
    with running(server, connection_url=f"http://127.0.0.1:1,{server.url}") as sink:
        sink.put(*documents(index, [{"n": 1}]))
        assert server.documents(index) == {"k0": {"n": 1}}


@both
def test_validation_asks_the_server(server: SearchServer, kind: Any) -> None:
    assert not any(each.errors for each in kind.validate({"connection.url": server.url}).values())
    assert not any(each.errors for each in kind.validate({"connection.url": "http://127.0.0.1:1"}).values())


@pytest.mark.timeout(300)
def test_a_node_that_is_killed_is_waited_for(index: str) -> None:
    with SearchServer() as server, running(server, connection_timeout_ms="1000", **{"retry_backoff_ms": "50"}) as sink:
        sink.put(*documents(index, [{"n": n} for n in range(100)]))
        server.kill()
        with pytest.raises(RetriableError, match="does not answer"):
            sink.task.put(documents(index, [{"n": n} for n in range(100)], first=100))
        server.start()
        sink.put(*documents(index, [{"n": -n} for n in range(100)], first=100))
        eventually(lambda: len(server.documents(index)) == 100, what="the documents")
        assert server.documents(index) == {f"k{n}": {"n": -n} for n in range(100)}


class _Contract(SinkConnectorContract):
    topic = "contract"

    @pytest.fixture
    def config(self, server: SearchServer, index: str) -> dict[str, str]:
        return {"connection.url": server.url, **PATIENT, "name": "contract", "topics": self.topic, "topic.key.ignore": ""}

    def records(self) -> list[SinkRecord]:
        return [
            SinkRecord(self.topic, partition, offset, {"p": partition, "o": offset}, key=f"{partition}/{offset}")
            for offset in range(3)
            for partition in range(2)
        ]


class TestElasticsearchContract(_Contract):
    connector_class = ElasticsearchSinkConnector


class TestOpenSearchContract(_Contract):
    connector_class = OpenSearchSinkConnector

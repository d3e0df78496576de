"""The keys of the search sources, whose connections have the sinks' ones."""

from __future__ import annotations

import pytest

from sluiceway.connectors.search.sink import ElasticsearchSinkConnector, OpenSearchSinkConnector
from sluiceway.connectors.search.source import ElasticsearchSourceConnector, OpenSearchSourceConnector
from sluiceway.connectors.search.source.config import AIVEN, Mode, source_options
from sluiceway.errors import ConfigError

CONFIG = {"connection.url": "http://search:9200", "index": "orders-*, -orders-old"}
PAIRS = [(ElasticsearchSourceConnector, ElasticsearchSinkConnector), (OpenSearchSourceConnector, OpenSearchSinkConnector)]


@pytest.mark.parametrize(("source", "sink"), PAIRS, ids=["elasticsearch", "opensearch"])
def test_the_keys_of_connections_are_those_of_the_sink(
    source: type[ElasticsearchSourceConnector], sink: type[ElasticsearchSinkConnector]
) -> None:
    def shown(connector: type[ElasticsearchSourceConnector] | type[ElasticsearchSinkConnector]) -> dict[str, object]:
        keys = {key.name: key for key in connector.config_def() if key.group in ("Connection", "Security")}
        return {name: (key.type, key.doc) for name, key in keys.items()}

    assert shown(source) == shown(sink)


def test_the_defaults_read_each_write() -> None:
    options = source_options(AIVEN, CONFIG)
    assert options.follows_writes
    assert options.patterns == ("orders-*", "-orders-old")
    assert (options.server.read_timeout, options.delay, options.rows, options.keep_alive) == (60.0, 10.0, 1000, 300_000)
    assert (options.poll_interval, options.index_interval, options.unreachable) == (5.0, 60.0, 3600.0)


@pytest.mark.parametrize(
    ("config", "mode", "field"),
    [
        ({"mode": "bulk"}, Mode.BULK, "_seq_no"),
        ({"mode": "TIMESTAMP"}, Mode.TIMESTAMP, "@timestamp"),
        ({"mode": "timestamp", "timestamp.field": "at"}, Mode.TIMESTAMP, "at"),
        ({"incrementing.field": "id"}, Mode.INCREMENTING, "id"),
    ],
)
def test_a_mode_has_its_field(config: dict[str, str], mode: Mode, field: str) -> None:
    options = source_options(AIVEN, {**CONFIG, **config})
    assert (options.mode, options.field, options.follows_writes) == (mode, field, False)


def test_values_are_typed() -> None:
    options = source_options(
        AIVEN,
        {
            **CONFIG,
            "query": '{"term": {"a": 1}}',
            "fields.include": "a,b.*",
            "fields.exclude": "b.c",
            "topic.prefix": "p-",
            "metadata.headers": "true",
            "sluiceway.unreachable.timeout.ms": "-1",
            "timestamp.initial": "5",
        },
    )
    assert options.query == {"term": {"a": 1}}
    assert (options.include, options.exclude) == (("a", "b.*"), ("b.c",))
    assert (options.topic_prefix, options.headers, options.unreachable, options.initial) == ("p-", True, None, 5)


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"index": ""}, "index"),
        ({"index": "other:orders"}, "index"),
        ({"index": "a/_doc"}, "index"),
        ({"mode": "changes"}, "mode"),
        ({"query": "a:b"}, "query"),
        ({"query": "[]"}, "query"),
        ({"query": '{"term": {}, "range": {}}'}, "query"),
        ({"batch.max.rows": "10001"}, "batch.max.rows"),
        ({"batch.max.rows": "0"}, "batch.max.rows"),
        ({"point.in.time.keep.alive.ms": "999"}, "point.in.time.keep.alive.ms"),
        ({"timestamp.delay.ms": "-1"}, "timestamp.delay.ms"),
        ({"timestamp.field": "t"}, "timestamp.field"),
        ({"mode": "timestamp", "timestamp.field": ""}, "timestamp.field"),
        ({"mode": "bulk", "incrementing.field": "id"}, "incrementing.field"),
        ({"connection.username": "me"}, "connection.password"),
        ({"connection.url": "http://me:hush@search:9200"}, "connection.url"),
    ],
)
@pytest.mark.parametrize("kind", [ElasticsearchSourceConnector, OpenSearchSourceConnector])
def test_a_wrong_value_is_an_error_of_its_key(kind: type[ElasticsearchSourceConnector], config: dict[str, str], key: str) -> None:
    found = kind.check({**CONFIG, **config})
    assert [name for name, each in found.items() if each.errors] == [key]
    assert "hush" not in str([each.errors for each in found.values()])
    with pytest.raises(ConfigError):
        kind.task_class.options({**CONFIG, **config})

# ruff: noqa: S608 (of databases of our own)
"""Debezium's change events into real databases, with configs of Debezium's JDBC sink."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.connectors.jdbc.debezium.connector import DebeziumJdbcSinkConnector
from sluiceway.data import INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Schema, Struct, Type
from support.database import DatabaseForTest
from support.engine import RunningTask
from support.jdbc_sink import JSON, fill

pytestmark = pytest.mark.kafka

KEY = Schema.struct({"id": INT64_SCHEMA}, name="Key")
ROW = Schema.struct(
    {
        "id": INT64_SCHEMA,
        "name": OPTIONAL_STRING_SCHEMA,
        "at": Schema(Type.INT64, name="io.debezium.time.MicroTimestamp"),
        "moment": Schema(Type.STRING, name="io.debezium.time.ZonedTimestamp", optional=True),
        "day": Schema(Type.INT32, name="io.debezium.time.Date"),
        "more": Schema(Type.STRING, name="io.debezium.data.Json"),
    },
    name="Value",
    optional=True,
)
ENVELOPE = Schema.struct({"before": ROW, "after": ROW, "op": STRING_SCHEMA}, name="Envelope")
NOON = dt.datetime(2024, 5, 6, 12, 0, 0, 123456, dt.timezone.utc).replace(tzinfo=None)
MICROS = 1_714_996_800_123_456


def row(number: int, name: str) -> Struct:
    values = {"id": number, "name": name, "at": MICROS, "moment": "2024-05-06T14:00:00+02:00", "day": 1, "more": '{"a": 1}'}
    return Struct(ROW, values)


def event(topic: str, offset: int, op: str, number: int, name: str = "") -> SinkRecord:
    there = row(number, name)
    value = Struct(ENVELOPE, {"before": there if op in "ud" else None, "after": None if op == "d" else there, "op": op})
    return SinkRecord(topic, 0, offset, value, ENVELOPE, Struct(KEY, {"id": number}), KEY)


def test_change_events_keep_a_table_equal_to_their_source(
    database: DatabaseForTest, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    name = unique("cdc").replace("-", "_")
    topic, table = f"{name}.public.people", f"{name}_public_people"
    tombstone = SinkRecord(topic, 0, 4, None, None, Struct(KEY, {"id": 1}), KEY)
    events = [event(topic, 0, "r", 1, "a"), event(topic, 1, "c", 2, "b"), event(topic, 2, "u", 2, "c"), event(topic, 3, "d", 1)]
    fill(kafka_bootstrap, [*events, tombstone])
    config = {key.replace("connection.user", "connection.username"): value for key, value in database.config.items()}
    config |= {
        **JSON,
        "name": name,
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": topic,
        "insert.mode": "upsert",
        "delete.enabled": "true",
        "primary.key.mode": "record_key",
        "schema.evolution": "basic",
    }
    connector = DebeziumJdbcSinkConnector()
    connector.start(config)
    [given] = connector.task_configs(1)
    with RunningTask({**config, **given}, {"bootstrap.servers": kafka_bootstrap}, bounded=True) as task:
        assert (task.join().trace, task.join().records) == (None, 5)
    [found] = database.execute(f"select id, name, at, moment, day, more from {table}")
    moment = NOON.replace(microsecond=0)
    expected: dict[str, tuple[Any, ...]] = {
        "postgresql": (2, "c", NOON, moment.replace(tzinfo=dt.timezone.utc), dt.date(1970, 1, 2), {"a": 1}),
        "mysql": (2, "c", NOON, moment, dt.date(1970, 1, 2), '{"a": 1}'),
        "sqlite": (2, "c", "2024-05-06 12:00:00.123456", "2024-05-06 12:00:00", "1970-01-02", '{"a": 1}'),
    }
    assert found == expected[database.dialect]


@pytest.mark.parametrize(
    ("options", "number"), [({}, None), ({"replace.null.with.default": "true"}, 7)], ids=["as Debezium", "if it is told so"]
)
def test_a_null_of_a_column_with_a_default_stays_null(
    database: DatabaseForTest, kafka_bootstrap: str, unique: Callable[[str], str], options: dict[str, str], number: int | None
) -> None:
    topic = unique("nulls").replace("-", "_")
    inner = Schema.struct({"id": INT64_SCHEMA, "n": Schema(Type.INT32, optional=True, default=7)}, name="V", optional=True)
    envelope = Schema.struct({"before": inner, "after": inner, "op": STRING_SCHEMA}, name="Envelope")
    value = Struct(envelope, {"after": Struct(inner, {"id": 1}), "op": "c"})
    nulls = {"replace.null.with.default": "false"}
    fill(kafka_bootstrap, [SinkRecord(topic, 0, 0, value, envelope, Struct(KEY, {"id": 1}), KEY)], **nulls)
    config = {key.replace("connection.user", "connection.username"): each for key, each in database.config.items()}
    config |= {
        **JSON,
        "value.converter.replace.null.with.default": "false",
        "name": topic,
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": topic,
        "primary.key.mode": "record_key",
        "schema.evolution": "basic",
        **options,
    }
    connector = DebeziumJdbcSinkConnector()
    connector.start(config)
    [given] = connector.task_configs(1)
    with RunningTask({**config, **given}, {"bootstrap.servers": kafka_bootstrap}, bounded=True) as task:
        assert (task.join().trace, task.join().records) == (None, 1)
    assert database.execute(f"select id, n from {topic}") == [(1, number)]

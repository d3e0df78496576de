"""JdbcSource into a real broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, TopicPartition
from sluiceway.connectors.jdbc.source import JdbcSourceConnector
from sluiceway.testing.contexts import MemoryConnectorContext

from support.databases import DatabaseForTest
from support.engine import Offsets, RunningTask

pytestmark = pytest.mark.kafka


def end_of(bootstrap: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)[1])
    finally:
        consumer.close()


def test_a_run_in_micro_batch_mode_reads_all_tables_however_many_are_empty(
    postgresql: DatabaseForTest, kafka_bootstrap: str, unique: Callable[[str], str]
) -> None:
    for number in range(12):
        postgresql.execute(f"create table t{number:02d} (id int generated always as identity primary key, x int)")
    for number in (5, 11):
        postgresql.execute(f"insert into t{number:02d} (x) select generate_series(1, 250)")
    prefix = unique("jdbc") + "-"
    converter = "org.apache.kafka.connect.json.JsonConverter"
    config = {
        "name": prefix, "connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", **postgresql.config, "tasks.max": "1",
        "mode": "incrementing", "topic.prefix": prefix, "key.converter": converter, "value.converter": converter,
        "transforms": "origin", "transforms.origin.type": "org.apache.kafka.connect.transforms.InsertField$Value",
        "transforms.origin.static.field": "origin", "transforms.origin.static.value": "db",
    }  # fmt: skip
    connector = JdbcSourceConnector()
    connector.initialize(MemoryConnectorContext())
    connector.start(config)
    [task_config] = connector.task_configs(1)
    connector.stop()
    offsets = Offsets()
    for expected in (500, 0, 1):
        with RunningTask(
            {**config, **task_config}, {"bootstrap.servers": kafka_bootstrap}, offsets=offsets, bounded=True
        ) as task:
            result = task.join(within=60)
        assert (result.trace, result.records) == (None, expected)
        if not expected:
            postgresql.execute("insert into t11 (x) values (0)")
    assert (end_of(kafka_bootstrap, f"{prefix}t05"), end_of(kafka_bootstrap, f"{prefix}t11")) == (250, 251)

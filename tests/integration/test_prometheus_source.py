"""The Prometheus source on a real broker: scrapes, and the gap of a restart."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter

from sluiceway.connectors.observability import PrometheusSourceConnector
from sluiceway.testing import MemoryConnectorContext
from support.engine import Offsets, RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.metric_targets import exposing

pytestmark = pytest.mark.kafka
INTERVAL = 500  # milliseconds
JSON = "org.apache.kafka.connect.json.JsonConverter"
RECORDS_OF_A_SCRAPE = 4  # the counter, and three of the scrape


def test_a_restart_leaves_a_gap_that_is_marked(kafka: Kafka, topic: str, name: str) -> None:
    registry = CollectorRegistry()
    orders = Counter("orders", "Orders.", registry=registry)
    offsets = Offsets()
    with exposing(registry) as address:
        config = {
            "name": name,
            "connector.class": "PrometheusSource",
            "topic": topic,
            "targets": address,
            "scrape.interval.ms": str(INTERVAL),
            "scrape.timeout.ms": str(INTERVAL),
            "value.converter": JSON,
            "value.converter.schemas.enable": "false",
        }
        connector = PrometheusSourceConnector()
        connector.initialize(MemoryConnectorContext())
        connector.start(config)
        [task_config] = connector.task_configs(1)

        def run() -> list[dict[str, Any]]:
            """Run a task until two more scrapes are in the topic; return all records."""
            most = kafka.count(topic) + 2 * RECORDS_OF_A_SCRAPE
            with RunningTask({**config, **task_config}, kafka.worker(), offsets=offsets):
                eventually(lambda: kafka.count(topic) >= most)
            return [json.loads(value) for value in kafka.values(topic, kafka.end(topic))]

        orders.inc(5)
        first = run()
        orders.inc()
        last = first[-1]["timestamp"]
        eventually(lambda: time.time() * 1000 > last + 3 * INTERVAL, what="a scrape that is missing")
        again = run()
    [order, *_] = [each for each in first if each["name"] == "orders_total"]
    assert (order["value"], order["labels"]) == (5.0, {"job": name, "instance": address})
    assert order["start_timestamp"] is not None
    scrapes = [each for each in again if each["name"] == "up"]
    times = [each["timestamp"] for each in scrapes]
    assert times == sorted(set(times))
    assert first[0]["gap_since"] is None
    gaps = {each["timestamp"]: each["gap_since"] for each in scrapes}
    for before, after in itertools.pairwise(times):
        missing = after - before > 2 * INTERVAL  # two scrapes that follow each other are closer
        assert gaps[after] == (before if missing or gaps[after] is not None else None)
    assert last in gaps.values()
    assert [each["value"] for each in again if each["name"] == "orders_total"][-1] == 6.0

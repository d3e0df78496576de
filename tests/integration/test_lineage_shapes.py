"""Fields and sizes of a topic's records on a real broker, for OpenLineage."""

from __future__ import annotations

import json
import logging

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.lineage.shapes import FieldShape, read_shapes
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

JSON = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}


def test_the_newest_records_give_fields_and_sizes(kafka: Kafka, topic: str) -> None:
    worker = WorkerConfig.of(kafka.worker())
    assert read_shapes(JSON, worker, [topic, "no-such-topic"]) == {}, "an empty topic says nothing"
    old, new = json.dumps({"id": 1}), json.dumps({"id": 2, "name": "b"})
    kafka.produce(topic, *[old] * 10, *[new] * 5, None)
    shape = read_shapes(JSON, worker, [topic])[topic]
    assert shape.fields == (FieldShape("id", "int64"), FieldShape("name", "string"))
    assert shape.record_bytes == pytest.approx(4 * len(new) / 5), "of the five newest, one of which has no value"


def test_a_broker_that_is_away_fails_no_run(caplog: pytest.LogCaptureFixture) -> None:
    worker = WorkerConfig.of({"bootstrap.servers": "127.0.0.1:1", "request.timeout.ms": "1000"})
    with caplog.at_level(logging.INFO):
        assert read_shapes(JSON, worker, ["t"]) == {}
    assert "are missing in OpenLineage's events" in caplog.text

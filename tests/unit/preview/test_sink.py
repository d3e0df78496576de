"""Records of a sink's topics in a preview."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, cast

import pytest
from confluent_kafka import Message

from sluiceway.api import SinkConnector
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.kafka.clients import ConsumedMessage
from sluiceway.preview.request import Limits, PreviewRequest
from sluiceway.preview.sink import MessageViewer


@pytest.mark.parametrize(
    ("sink", "advice"),
    [
        ("JdbcSink", "set value.converter.schema.content"),
        ("ParquetSink", "set value.converter.schema.content"),
        ("SparkSink", "set value.converter.schema.content"),
        ("FileStreamSink", "set schemas.enable=false"),
        ("TextSink", "set schemas.enable=false"),
    ],
)
def test_plain_json_is_refused_with_the_advice_that_fits_the_sink(sink: str, advice: str) -> None:
    config = {"connector.class": sink, "connection.url": "jdbc:sqlite:x", "path": "/x", "format": "parquet", "name": "x"}
    worker = WorkerConfig.of({"key.converter": "StringConverter", "value.converter": "JsonConverter"})
    told: list[Any] = []
    with ExitStack() as resources:
        request = PreviewRequest(config, worker, None, Limits())
        viewer = MessageViewer(cast(type[SinkConnector], connector_class(sink)), config, request, told.append, resources)
        viewer.view(cast(ConsumedMessage, Message(topic="t", partition=0, offset=0, value=b'{"id": 1}', timestamp=(1, 1000))))
    [record] = told
    assert record["error"]["stage"] == "VALUE_CONVERTER"
    assert advice in record["error"]["message"]

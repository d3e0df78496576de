"""The HTTP connectors on a real broker: from a list into a topic, from there to a server, and webhooks."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from sluiceway.runtime.task import TaskCommand
from sluiceway.stack.ports import free_port
from sluiceway.storage.model import State
from support.engine import Offsets, RunningTask
from support.eventually import eventually
from support.http_server import Answer, Collector, HttpServer, ItemList
from support.kafka import Kafka
from support.listening_sources import JSON, Posting, post

pytestmark = pytest.mark.kafka

CONVERTERS = {"key.converter": "StringConverter", "value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer(ItemList(25)) as server:
        yield server


def source(server: HttpServer, topic: str, **more: str) -> dict[str, str]:
    return {
        "name": topic,
        "connector.class": "HttpSource",
        "http.request.url": f"{server.url}/cursor",
        "http.request.params": "cursor=${page.cursor}&since=${offset.timestamp}",
        "http.paging": "cursor",
        "http.paging.pointer": "/next",
        "http.response.list.pointer": "/items",
        "http.response.record.offset.pointer": "key=/id, timestamp=/updated",
        "http.timer.interval.millis": "50",
        "kafka.topic": topic,
        **CONVERTERS,
        **more,
    }


def test_a_list_goes_by_a_topic_to_a_server(kafka: Kafka, topic: str, server: HttpServer) -> None:
    with RunningTask(source(server, topic), kafka.worker(), bounded=True) as task:
        result = task.join()
        assert not result.failed, result.trace
    assert [json.loads(value)["id"] for value in kafka.values(topic, 25)] == list(range(25))
    server.work = collector = Collector()
    sink = {"name": f"{topic}-sink", "connector.class": "HttpSink", "topics": topic, "http.url": server.url}
    batches = {"batching.enabled": "true", "batch.max.size": "10", "batch.json.as.array": "true"}
    with RunningTask({**sink, **batches, **CONVERTERS}, kafka.worker(), bounded=True) as task:
        result = task.join()
        assert not result.failed, result.trace
    assert [each["id"] for body in collector.bodies for each in json.loads(body)] == list(range(25))


def test_the_end_of_a_run_without_a_record_is_stored(kafka: Kafka, topic: str, server: HttpServer) -> None:
    token = Answer(body={"items": [], "token": "t1"})
    server.work = lambda _request: token
    offsets = Offsets()
    own = {"http.response.offset.pointer": "token=/token", "http.request.params": "token=${offset.token}", "http.paging": "none"}
    config = {key: value for key, value in source(server, topic, **own).items() if key != "http.paging.pointer"}
    with RunningTask(config, {**kafka.worker(), "offset.flush.interval.ms": "100"}, store=offsets) as task:
        task.wait_for(State.RUNNING)
        eventually(lambda: list(offsets.stored.values()) == [{"token": "t1"}], what="the offset")
        assert task.stop().trace is None
    assert server.requests[-1].query == {"token": "t1"}


def test_webhooks_are_in_kafka_when_they_are_answered(kafka: Kafka, topic: str) -> None:
    port = free_port()
    config = {"name": topic, "connector.class": "WebhookSource", "topic": topic, "webhook.port": str(port)}
    config |= {**CONVERTERS, "webhook.acknowledge.timeout.ms": "200000"}  # a broker that starts may be slow
    with RunningTask(config, kafka.worker()) as task:
        task.wait_for(State.RUNNING)
        sent = [Posting(lambda number=number: post(port, b"%d" % number, JSON, path="/webhook")) for number in range(5)]
        assert {each.reply().status for each in sent} == {200}
        assert kafka.count(topic) == 5
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        assert post(port, b"5", JSON, path="/webhook").status == 503
        task.commands.give(TaskCommand.RUN)
        task.wait_for(State.RUNNING)
        eventually(lambda: post(port, b"6", JSON, path="/webhook").status == 200, what="an answer")
        assert task.stop().trace is None
    assert sorted(int(value) for value in kafka.values(topic, 6)) == [0, 1, 2, 3, 4, 6]

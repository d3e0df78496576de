"""The sources that listen, on a real broker: what they have received is in Kafka when their task has stopped."""

from __future__ import annotations

import json
import socket

import pytest

from sluiceway.runtime.task import TaskCommand
from sluiceway.stack.ports import free_port
from sluiceway.storage.model import State
from support.engine import RunningTask
from support.kafka import Kafka
from support.listening_sources import HOST, JSON, post

pytestmark = pytest.mark.kafka


def config(topic: str, name: str, port: int, **more: str) -> dict[str, str]:
    json_converter = {"value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "false"}
    given = {f"{name}.{key.replace('_', '.')}": value for key, value in more.items()}
    source = {"otlp": "OtlpSource", "statsd": "StatsdSource"}[name]
    return {"name": topic, "connector.class": source, "topic": topic, f"{name}.port": str(port), **json_converter, **given}


def names(kafka: Kafka, topic: str, count: int) -> list[str]:
    return [json.loads(value)["name"] for value in kafka.values(topic, count)]


def test_points_that_were_answered_with_success_are_in_kafka_when_the_task_has_stopped(kafka: Kafka, topic: str) -> None:
    port = free_port()
    with RunningTask(config(topic, "otlp", port, acknowledge="received"), kafka.worker()) as task:
        task.wait_for(State.RUNNING)
        task.commands.give(TaskCommand.PAUSE)  # nothing polls what comes now
        task.wait_for(State.PAUSED)
        for name in "abc":
            metric = {"name": name, "gauge": {"dataPoints": [{"asDouble": 1}]}}
            body = json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]})
            assert post(port, body.encode(), JSON).status == 200
        assert kafka.count(topic) == 0
        assert task.stop().trace is None
    assert names(kafka, topic, 3) == ["a", "b", "c"]


def test_lines_of_an_interval_that_is_not_over_are_in_kafka_when_the_task_has_stopped(kafka: Kafka, topic: str) -> None:
    port = free_port()
    with RunningTask(config(topic, "statsd", port, protocol="tcp", flush_ms="3600000"), kafka.worker()) as task:
        task.wait_for(State.RUNNING)
        with socket.create_connection((HOST, port)) as client:
            client.sendall(b"a:1|c\na:2|c\nb:7|g\n")
            client.shutdown(socket.SHUT_WR)
            assert client.recv(1) == b""  # all lines are in the buffer
        assert task.stop().trace is None
    assert names(kafka, topic, 2) == ["a", "b"]
    assert kafka.count(topic) == 2

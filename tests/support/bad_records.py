"""Connector configs, a failing transform and readers for tests of bad records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sluiceway.api import Transform
from sluiceway.errors import RetriableError
from support.engine_connectors import dotted, scripted_sink
from support.kafka import Kafka

PREFIX = "__connect.errors."
JSON = {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}


def tolerant(dlq: str = "", **more: str) -> dict[str, str]:
    queue = {
        "errors.deadletterqueue.topic.name": dlq,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    return {"errors.tolerance": "all", **(queue if dlq else {}), **dotted(more)}


def headers(message: Any) -> dict[str, str]:
    return {key: value.decode() for key, value in message.headers() or ()}


class Flaky(Transform):
    """Raises a RetriableError as often as ``failures`` says for each value."""

    failures: dict[str, int] = {}

    def apply(self, record: Any) -> Any:
        value = str(record.value)
        left = Flaky.failures.get(value, 0)
        if left:
            Flaky.failures[value] = left - 1
            raise RetriableError(f"{record.value} is not ready")
        return record.new_record(value=f"{record.value}!")


FLAKY = {"transforms": "flaky", "transforms.flaky.type": f"{__name__}.Flaky"}


def sink(name: str, topic: str, *settings: Mapping[str, str]) -> dict[str, str]:
    """Return the config of a scripted sink connector with more settings."""
    config = scripted_sink(name, topic)
    for each in settings:
        config.update(each)
    return config


def committed(kafka: Kafka, name: str, topic: str) -> int | None:
    """Return the committed offset of a sink connector in partition 0 of a topic."""
    return kafka.committed(f"connect-{name}").get((topic, 0))

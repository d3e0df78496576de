"""Settings, a transform and readers for tests of records that fail."""

from __future__ import annotations

from typing import Any

from sluiceway.api import Transform
from sluiceway.errors import RetriableError
from support.engine_connectors import dotted

PREFIX = "__connect.errors."


def tolerant(dlq: str = "", **more: str) -> dict[str, str]:
    letters = {
        "errors.deadletterqueue.topic.name": dlq,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    return {"errors.tolerance": "all", **(letters if dlq else {}), **dotted(more)}


def headers(message: Any) -> dict[str, str]:
    return {key: value.decode() for key, value in message.headers() or ()}


class Flaky(Transform):
    """Fails with a RetriableError as often as it is told to for each value, and for good for the value "never"."""

    failures: dict[str, int] = {}

    def apply(self, record: Any) -> Any:
        value = str(record.value)
        left = Flaky.failures.get(value, 0)
        if left:
            Flaky.failures[value] = left - 1
            raise RetriableError(f"{record.value} is not ready")
        return record.new_record(value=f"{record.value}!")


FLAKY = {"transforms": "flaky", "transforms.flaky.type": f"{__name__}.Flaky"}

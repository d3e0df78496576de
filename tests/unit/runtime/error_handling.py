"""A task's error handling for tests, with a dead letter queue in memory."""

from __future__ import annotations

from typing import Any

from sluiceway.converters.json_converter import JsonConverter
from sluiceway.runtime.errors.dead_letter_queue import DeadLetterQueue
from sluiceway.runtime.errors.processing_context import ConsumerRecord, ProcessingContext, Stage
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator
from sluiceway.storage.model import TaskId

TASK = TaskId("orders", 3)
MESSAGE = ConsumerRecord("t", 1, 42, 1, 1000, b"k", b"\xff", [("h", b"1")])
CONTEXT = ProcessingContext(Stage.VALUE_CONVERTER, JsonConverter, MESSAGE)
DEAD_LETTER_QUEUE = {"errors.deadletterqueue.topic.name": "dlq"}
ALL = {"errors.tolerance": "all"}


def queue(wait: Any = lambda _seconds: None) -> DeadLetterQueue:
    return DeadLetterQueue("dlq", {"delivery.report.only.error": False}, wait)


def tolerance(config: dict[str, str], **more: Any) -> RetryWithToleranceOperator:
    dead_letter_queue = queue() if "errors.deadletterqueue.topic.name" in config else None
    return RetryWithToleranceOperator(config, task=TASK, wait=lambda _seconds: None, dead_letter_queue=dead_letter_queue, **more)

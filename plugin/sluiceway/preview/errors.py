"""Notes records that fail in a preview, and tells what the connector's ``errors.*`` keys would make of them. No I/O."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from sluiceway.errors import RetriableError, java_text_of
from sluiceway.preview.images import Clip
from sluiceway.runtime.errors.error_settings import ErrorSettings
from sluiceway.runtime.errors.processing_context import ProcessingContext, class_name
from sluiceway.runtime.errors.retry_with_tolerance import RetryWithToleranceOperator

T = TypeVar("T")

_LONGEST_MESSAGE = 8 * 1024


class Failures(RetryWithToleranceOperator):
    """Error handling of a preview: notes each failure and skips its record, without a retry or a dead letter queue record."""

    def __init__(self) -> None:
        super().__init__({})
        self._last: tuple[Exception, ProcessingContext] | None = None

    def retry(self, operation: Callable[[], T], description: str, error: Exception, context: ProcessingContext) -> T | None:
        """Note the failure and return None."""
        self._last = error, context
        return None

    def execute_failed(self, description: str, error: Exception, context: ProcessingContext) -> Future[None]:
        """Note the failure."""
        self._last = error, context
        done: Future[None] = Future()
        done.set_result(None)
        return done

    def take(self) -> tuple[Exception, ProcessingContext] | None:
        """Return the failure since the last call, None if there was none."""
        last, self._last = self._last, None
        return last


class ErrorPolicy:
    """A connector's ``errors.*`` keys, in words."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """Raise ConfigError for keys that cannot be parsed."""
        self._settings = ErrorSettings.of(config)

    def image(self, error: Exception, stage: str, executing_class: type, transform: str | None = None) -> dict[str, Any]:
        """Return a failed record's error as JSON: where it was raised, and what a running task would do."""
        image: dict[str, Any] = {
            "stage": stage,
            "class": class_name(executing_class),
            "message": Clip(_LONGEST_MESSAGE).text(java_text_of(error)),
            "tolerated": self._settings.tolerant,
            "outcome": self.outcome(error),
        }
        return image if transform is None else {**image, "transform": transform}

    def outcome(self, error: Exception) -> str:
        """Return what a running task does with a record that failed with this error."""
        settings = self._settings
        told = f", and written to the dead letter queue topic {settings.dead_letter_topic}" if settings.dead_letter_topic else ""
        if settings.tolerant:
            result = f"The record is skipped, because errors.tolerance=all{told}."
        else:
            noted = f" The record is written to the dead letter queue topic {settings.dead_letter_topic}." if told else ""
            result = f"The task fails, because errors.tolerance=none.{noted}"
        if not isinstance(error, RetriableError) or not settings.retry_seconds:
            return result
        if math.isinf(settings.retry_seconds):
            return "The operation is retried without end, because errors.retry.timeout=-1."
        return f"The operation is retried for {settings.retry_seconds:g} s. If it still fails: {result}"

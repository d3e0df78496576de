"""Writes dead letters, and knows when all of them are in Kafka."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from sluiceway.errors import ConnectError, KafkaClientError
from sluiceway.kafka.clients import producer
from sluiceway.kafka.errors import mapped_errors, to_connect_error
from sluiceway.runtime.errors.dead_letter_record import DeadLetterRecord
from sluiceway.runtime.errors.retries import Wait

log = logging.getLogger(__name__)

_SLICE_SECONDS = 0.1
_PATIENCE_SECONDS = 5.0  # a full buffer is an everyday thing; a buffer that stays full is not
_WAIT_SECONDS = 1.0
_CLOSE_SECONDS = 1.0
_LOG_SECONDS = 1.0


class DeadLetterQueueFuture(Future[None]):
    """Is done once a dead letter is in Kafka. Waiting for it does the producer's work, so a task may wait inside ``put``."""

    def __init__(self, serve: Callable[[float], object]) -> None:
        super().__init__()
        self._serve = serve

    def result(self, timeout: float | None = None) -> None:
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.done() and (deadline is None or time.monotonic() < deadline):
            self._serve(_SLICE_SECONDS)


class DeadLetterQueue:
    """A producer for one task's dead letters. Letters may be sent by any thread; memory is bounded by the producer's buffer.

    A letter that Kafka refuses for good, or has not taken within ``delivery.timeout.ms``, is a failure that stays: ``serve``
    and ``flush`` raise ConnectError from then on, and no offset after it may be committed.
    """

    def __init__(self, topic: str, config: Mapping[str, Any], wait: Wait) -> None:
        """``wait`` is called while the buffer is full: with 0 to look for other orders, else to stay in the consumer group."""
        self.topic = topic
        self._producer = producer(config)
        self._wait = wait
        self._lock = threading.Lock()
        self._pending = 0
        self._failure: ConnectError | None = None
        self._next_log = 0.0

    def send(self, letter: DeadLetterRecord) -> Future[None]:
        """Hand a letter to the producer, waiting while its buffer is full. Raises ConnectError, and what ``wait`` raises."""
        doing = f"write a dead letter to topic {self.topic}"
        sent = DeadLetterQueueFuture(self._producer.poll)
        options: dict[str, Any] = {} if letter.timestamp is None else {"timestamp": letter.timestamp}

        def delivered(error: Any, _message: Any) -> None:
            self._delivered(sent, None if error is None else to_connect_error(error, doing))

        with self._lock:
            self._pending += 1
        try:
            with mapped_errors(doing):
                self._produce(letter, {**options, "headers": letter.headers, "on_delivery": delivered})
        except KafkaClientError as error:
            self._delivered(sent, error)
        except BaseException:
            with self._lock:
                self._pending -= 1
            raise
        return sent

    def serve(self) -> None:
        """Take note of what Kafka has answered by now. Raises ConnectError if a letter was lost."""
        if self._pending:
            self._producer.poll(0)
        self._raise_failure()

    def flush(self, seconds: float, check: Callable[[], None]) -> bool:
        """Wait until all letters are in Kafka; False if that takes longer than ``seconds``. ``check`` raises to give up."""
        deadline = time.monotonic() + seconds
        while True:
            self.serve()
            left = deadline - time.monotonic()
            if not self._pending or left <= 0:
                break
            check()
            self._producer.flush(min(left, _SLICE_SECONDS))
        if self._pending and time.monotonic() >= self._next_log:
            self._next_log = time.monotonic() + _LOG_SECONDS
            log.error("%d dead letters for topic %s are not acknowledged yet; no offset is committed", self._pending, self.topic)
        return not self._pending

    def close(self) -> None:
        """Give up what is not acknowledged; its offsets were not committed. Never raises."""
        with suppress(Exception):
            if self._pending:
                self._producer.flush(_CLOSE_SECONDS)
            self._producer.purge(blocking=False)

    def _produce(self, letter: DeadLetterRecord, options: Mapping[str, Any]) -> None:
        started = time.monotonic()
        while True:
            try:
                self._producer.produce(self.topic, letter.value, letter.key, **options)
                return
            except BufferError:
                self._producer.poll(_SLICE_SECONDS)
            self._raise_failure()
            patient = time.monotonic() - started < _PATIENCE_SECONDS
            if not patient and time.monotonic() >= self._next_log:
                self._next_log = time.monotonic() + _LOG_SECONDS
                log.warning("Waiting for topic %s to take dead letters; nothing is read meanwhile", self.topic)
            self._wait(0 if patient else _WAIT_SECONDS)

    def _delivered(self, sent: DeadLetterQueueFuture, error: ConnectError | None) -> None:
        with self._lock:
            self._pending -= 1
        if error is None:
            sent.set_result(None)
            return
        failure = ConnectError(f"A dead letter was not written, so no more offsets are committed: {_explained(error)}")
        failure.__cause__ = error
        if self._failure is None:
            self._failure = failure
            log.error("%s", failure)
        sent.set_exception(failure)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def _explained(error: ConnectError) -> str:
    advice = {
        "MSG_SIZE_TOO_LARGE": " Raise the topic's max.message.bytes and producer.override.max.request.size.",
        "_UNKNOWN_TOPIC": " Create the topic again, or restart the task, which creates it.",
        "UNKNOWN_TOPIC_OR_PART": " Create the topic again, or restart the task, which creates it.",
        "_MSG_TIMED_OUT": " See to the brokers of this topic, then restart the task.",
        "TOPIC_AUTHORIZATION_FAILED": " Allow the connector to write to it, then restart the task.",
    }
    return f"{error}{advice.get(getattr(error, 'code', ''), '')}"

"""Writes records to the dead letter queue topic and tracks their delivery."""

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
_FULL_BUFFER_SECONDS = 5.0  # a buffer that is full for longer is logged
_WAIT_SECONDS = 1.0
_CLOSE_SECONDS = 1.0
_LOG_SECONDS = 1.0


class DeadLetterQueueFuture(Future[None]):
    """Done once a record is in Kafka. Waiting for it polls the producer, so that a task may wait inside ``put``."""

    def __init__(self, poll: Callable[[float], object]) -> None:
        super().__init__()
        self._poll = poll

    def result(self, timeout: float | None = None) -> None:
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self.done() and (deadline is None or time.monotonic() < deadline):
            self._poll(_SLICE_SECONDS)


class DeadLetterQueue:
    """One task's producer of dead letter queue records. Any thread may send; the producer's buffer bounds the memory.

    A record that Kafka rejects, or does not acknowledge within ``delivery.timeout.ms``, is a permanent failure:
    ``poll_deliveries`` and ``flush`` raise ConnectError from then on, and no offset after that record may be committed.
    """

    def __init__(self, topic: str, config: Mapping[str, Any], wait: Wait) -> None:
        """Create the producer.

        ``wait`` is called while the producer's buffer is full: first with 0, to check for another command, then with
        seconds, so that a sink task stays in its consumer group.
        """
        self.topic = topic
        self._producer = producer(config)
        self._wait = wait
        self._lock = threading.Lock()
        self._pending = 0
        self._failure: ConnectError | None = None
        self._next_log = 0.0

    def send(self, record: DeadLetterRecord) -> Future[None]:
        """Produce a record, waiting while the buffer is full. Raises ConnectError, and what ``wait`` raises."""
        doing = f"write a dead letter queue record to topic {self.topic}"
        sent = DeadLetterQueueFuture(self._producer.poll)
        options: dict[str, Any] = {} if record.timestamp is None else {"timestamp": record.timestamp}

        def on_delivery(error: Any, _message: Any) -> None:
            self._complete(sent, None if error is None else to_connect_error(error, doing))

        with self._lock:
            self._pending += 1
        try:
            with mapped_errors(doing):
                self._produce(record, {**options, "headers": record.headers, "on_delivery": on_delivery})
        except KafkaClientError as error:
            self._complete(sent, error)
        except BaseException:
            with self._lock:
                self._pending -= 1
            raise
        return sent

    def poll_deliveries(self) -> None:
        """Handle Kafka's delivery reports without blocking. Raises ConnectError if a record was lost."""
        if self._pending:
            self._producer.poll(0)
        self._raise_failure()

    def flush(self, seconds: float, check: Callable[[], None]) -> bool:
        """Wait until all records are in Kafka; return False after ``seconds``. ``check`` may raise to end the wait."""
        deadline = time.monotonic() + seconds
        while True:
            self.poll_deliveries()
            left = deadline - time.monotonic()
            if not self._pending or left <= 0:
                break
            check()
            self._producer.flush(min(left, _SLICE_SECONDS))
        if self._pending and time.monotonic() >= self._next_log:
            self._next_log = time.monotonic() + _LOG_SECONDS
            log.error(
                "Not committing offsets: Kafka has not acknowledged %d dead letter queue records for topic %s",
                self._pending,
                self.topic,
            )
        return not self._pending

    def close(self) -> None:
        """Drop records that are not acknowledged; offsets after them were not committed. Never raises."""
        with suppress(Exception):
            if self._pending:
                self._producer.flush(_CLOSE_SECONDS)
            self._producer.purge(blocking=False)

    def _produce(self, record: DeadLetterRecord, options: Mapping[str, Any]) -> None:
        started = time.monotonic()
        while True:
            try:
                self._producer.produce(self.topic, record.value, record.key, **options)
                return
            except BufferError:
                self._producer.poll(_SLICE_SECONDS)
            self._raise_failure()
            brief = time.monotonic() - started < _FULL_BUFFER_SECONDS
            if not brief and time.monotonic() >= self._next_log:
                self._next_log = time.monotonic() + _LOG_SECONDS
                log.warning(
                    "Not reading records until topic %s accepts dead letter queue records: the buffer is full", self.topic
                )
            self._wait(0 if brief else _WAIT_SECONDS)

    def _complete(self, sent: DeadLetterQueueFuture, error: ConnectError | None) -> None:
        with self._lock:
            self._pending -= 1
        if error is None:
            sent.set_result(None)
            return
        failure = ConnectError(
            f"A dead letter queue record was not written, so no more offsets are committed: {_with_advice(error)}"
        )
        failure.__cause__ = error
        if self._failure is None:
            self._failure = failure
            log.error("%s", failure)
        sent.set_exception(failure)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def _with_advice(error: ConnectError) -> str:
    advice = {
        "MSG_SIZE_TOO_LARGE": " Raise the topic's max.message.bytes and producer.override.max.request.size.",
        "_UNKNOWN_TOPIC": " Create the topic again, or restart the task, which creates it.",
        "UNKNOWN_TOPIC_OR_PART": " Create the topic again, or restart the task, which creates it.",
        "_MSG_TIMED_OUT": " Check the brokers of this topic, then restart the task.",
        "TOPIC_AUTHORIZATION_FAILED": " Allow the connector to write to it, then restart the task.",
    }
    return f"{error}{advice.get(getattr(error, 'code', ''), '')}"

"""Reads internal topics from the beginning, or from given offsets, and follows them.

``KafkaBasedLog`` (Connect's ``KafkaBasedLog``) reads in a thread of its own, for stores. ``TopicTail`` has no thread: a
task's loop on an executor polls it between batches. Neither belongs to a consumer group, and neither ever skips.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from sluiceway.api.task import TopicPartition as Place
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, InternalTopicError, KafkaClientError
from sluiceway.kafka.admin import beginning_offsets, end_offsets, topic_id
from sluiceway.kafka.clients import admin_client, consumer, internal_consumer_config
from sluiceway.kafka.errors import MISSING_TOPIC, mapped_errors

log = logging.getLogger(__name__)

_BATCH = 2000
_WAKE_SECONDS = 0.1  # how long stop() may wait for the thread; costs ten wake-ups a second
_MISSING_SECONDS = 1.0
_LOST_POSITION = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}


class LogRecord(NamedTuple):
    """A record as it was read; ``timestamp`` in milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


class KafkaBasedLog:
    """Calls back with every record of a topic, in order within a partition, from the first one on. Driver or API server.

    ``on_record`` is called on the reader's thread and must not wait for this object. A topic that is lost while it is
    read (deleted, truncated, made anew) is remembered: from then on every read raises InternalTopicError, and ``check``
    does. A broker that is away is waited for, in the background without end, in ``read_to_end`` up to its timeout.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        topic: str,
        partitions: int,
        client_id: str,
        on_record: Callable[[LogRecord], None],
        *,
        admin: AdminClient | None = None,
        fetch_wait_ms: int = 500,
    ) -> None:
        self._admin = admin or admin_client(worker)
        self._topic = topic
        self._places = [Place(topic, partition) for partition in range(partitions)]
        self._config = internal_consumer_config(
            worker, client_id, **{"fetch.wait.max.ms": str(fetch_wait_ms), "enable.partition.eof": "true"}
        )
        self._on_record = on_record
        self._positions: dict[Place, int] = {}
        self._moved = threading.Condition()
        self._failure: ConnectError | None = None
        self._away = False
        self._id: str | None = None
        self._suspect = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, timeout: float = 60.0) -> None:
        """Read to the topic's present end, and go on reading in the background. ``timeout`` in seconds.

        Raises:
            InternalTopicError: the topic does not exist.
            ConnectError: the end was not reached in time, or the cluster cannot be asked.
        """
        self._id = topic_id(self._admin, self._topic)
        self._positions = beginning_offsets(self._admin, self._places)
        reader = consumer({**self._config, "error_cb": self._client_error})
        with mapped_errors(f"read topic '{self._topic}'"):
            # Numbers, not "from the beginning": librdkafka takes 0.5 s longer to resolve that by itself.
            reader.assign([TopicPartition(*place, offset) for place, offset in self._positions.items()])
        self._thread = threading.Thread(target=self._run, args=(reader,), name=f"log-{self._topic}", daemon=True)
        self._thread.start()
        self.read_to_end(timeout)

    def read_to_end(self, timeout: float = 30.0) -> None:
        """Return once everything has been read that was committed when this was called. Raises as ``start`` does."""
        self._check()
        self.verify()
        reached = dict(self._positions)  # taken first: while the ends are on their way, more may be written and read
        ends = end_offsets(self._admin, self._places)
        shorter = {place.partition: (end, reached[place]) for place, end in ends.items() if end < reached[place]}
        if shorter:
            self._fail(_lost(self._topic, f"it was read further than it goes now; partition: (end, read) = {shorter}"))
        self.wait_for(ends, timeout)

    def wait_for(self, positions: Mapping[Place, int], timeout: float = 30.0) -> None:
        """Return once the topic has been read up to these offsets (exclusive). Raises as ``start`` does."""
        if threading.current_thread() is self._thread:
            raise ConnectError(f"A callback of topic '{self._topic}' may not wait for the topic to be read.")
        deadline = time.monotonic() + timeout
        with self._moved:
            while missing := {place: end for place, end in positions.items() if self._positions.get(place, 0) < end}:
                self._check()
                if not self._moved.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    reached = {place.partition: (self._positions.get(place), end) for place, end in missing.items()}
                    raise ConnectError(
                        f"Topic '{self._topic}' could not be read to its end within {timeout:.0f} s; "
                        f"partition: (reached, end) = {reached}. Is the cluster up, and may this principal read the topic?"
                    )
        self._check()

    def check(self) -> None:
        """Raise what reading the topic has ended with, if it has; asks nobody."""
        if self._failure is not None:
            raise self._failure

    def verify(self) -> None:
        """Ask whether the topic is still the one that is read. Raises InternalTopicError, KafkaClientError."""
        now = topic_id(self._admin, self._topic)
        if now is None and not self._stopping.wait(_MISSING_SECONDS):  # brokers that restart may not know it for a moment
            now = topic_id(self._admin, self._topic)
        if now != self._id and not self._stopping.is_set():
            self._fail(_lost(self._topic, "it does not exist" if now is None else "another one has its name now"))
        self.check()

    def stop(self) -> None:
        """End the thread and close the consumer. May be called more than once; waits at most a moment."""
        self._stopping.set()
        with self._moved:
            self._moved.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=10)

    def _check(self) -> None:
        self.check()
        if self._stopping.is_set():
            raise ConnectError(f"The reader of topic '{self._topic}' has been stopped.")

    def _run(self, reader: Consumer) -> None:
        try:
            while not self._stopping.is_set():
                self._deliver(_batch(reader, _WAKE_SECONDS))
                if self._suspect:
                    self._look_whether_it_is_there()
        except Exception as error:
            log.exception("Reading topic %s has ended", self._topic)
            self._fail(error if isinstance(error, ConnectError) else _broken(self._topic, error))
        finally:
            reader.close()

    def _deliver(self, messages: list[Message]) -> None:
        moved: dict[Place, int] = {}
        for message in messages:
            error = message.error()
            if error is None:
                self._on_record(_record(message))
                moved[Place(self._topic, message.partition())] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                # Its offset is beyond what is no record to us: markers of transactions, and aborted ones.
                moved[Place(self._topic, message.partition())] = message.offset()
            else:
                _raise_if_lost(message)
                self._client_error(error)
        if moved:
            if self._away:
                self._away = False
                log.info("Reading topic %s goes on", self._topic)
            with self._moved:
                self._positions.update(moved)
                self._moved.notify_all()

    def _look_whether_it_is_there(self) -> None:
        try:
            self.verify()
            self._suspect = False
        except KafkaClientError as error:
            log.debug("Cannot tell yet whether topic %s is still there: %s", self._topic, error)

    def _client_error(self, error: KafkaError) -> None:
        self._suspect = self._suspect or error.code() in MISSING_TOPIC | _LOST_POSITION
        if not self._away:
            self._away = True
            log.warning("Reading topic %s is interrupted: %s (%s); trying on", self._topic, error.str(), error.name())

    def _fail(self, error: ConnectError) -> None:
        with self._moved:
            self._failure = self._failure or error
            self._moved.notify_all()


class TopicTail:
    """Follows partitions of one or more topics from given offsets on; no thread. Executor or driver, one thread only.

    The offsets are those of ``end_offsets`` or of a snapshot: records from there on are returned.
    """

    def __init__(self, worker: WorkerConfig, client_id: str, positions: Mapping[Place, int]) -> None:
        self._missing: KafkaError | None = None
        config = internal_consumer_config(worker, client_id, **{"fetch.wait.max.ms": "1000"})
        self._consumer = consumer({**config, "error_cb": self._client_error})
        self._topics = ", ".join(sorted({place.topic for place in positions}))
        with mapped_errors(f"read {self._topics}"):
            self._consumer.assign([TopicPartition(*place, offset) for place, offset in positions.items()])

    def poll(self, timeout: float = 0.0) -> list[LogRecord]:
        """Return what has come, at once if something has, else after at most ``timeout`` seconds.

        Raises:
            InternalTopicError: a topic was deleted, or does not reach to the offset asked for.
        """
        records = []
        for message in _batch(self._consumer, timeout):
            error = message.error()
            if error is None:
                records.append(_record(message))
            else:
                _raise_if_lost(message)
                log.debug("Reading topic %s is interrupted: %s (%s)", message.topic(), error.str(), error.name())
        if self._missing is not None:
            raise _lost(self._topics, self._missing.str())
        return records

    def close(self) -> None:
        self._consumer.close()

    def _client_error(self, error: KafkaError) -> None:
        """A partition that is gone is not told among the records."""
        if error.code() == KafkaError._UNKNOWN_PARTITION:
            self._missing = error


def _batch(reader: Consumer, timeout: float) -> list[Message]:
    first = reader.poll(timeout)
    if first is None:
        return []
    return [first, *reader.consume(_BATCH, 0)]  # consume(n, timeout) alone would wait for n messages or the timeout


def _record(message: Message) -> LogRecord:
    return LogRecord(
        message.topic(), message.partition(), message.offset(), message.timestamp()[1], message.key(), message.value()
    )


def _raise_if_lost(message: Message) -> None:
    error = message.error()
    if error.code() in MISSING_TOPIC | _LOST_POSITION:
        raise _lost(message.topic(), f"{error.str()} (partition {message.partition()})")


def _lost(topic: str | None, why: str) -> InternalTopicError:
    return InternalTopicError(
        f"Topic '{topic}' is not what it was: {why}. It was deleted, truncated or made anew; stop what uses it, restore the "
        "topic or accept the loss, and start again."
    )


def _broken(topic: str, error: Exception) -> ConnectError:
    return ConnectError(f"Topic '{topic}' is no longer read, because of {type(error).__name__}: {error}")

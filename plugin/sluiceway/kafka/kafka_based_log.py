"""Reads internal topics from the beginning, or from given offsets, and follows them.

``KafkaBasedLog``, like Connect's class of that name, reads in its own thread on behalf of a store. ``TopicTail`` has no
thread: a task's loop on an executor polls it between batches. Neither joins a consumer group, and neither skips records.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, cast

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as TopicPartitionOffset
from confluent_kafka.admin import AdminClient

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, InternalTopicError, KafkaClientError
from sluiceway.kafka.admin import beginning_offsets, end_offsets, topic_id
from sluiceway.kafka.clients import ConsumedMessage, admin_client, consumer, internal_consumer_config
from sluiceway.kafka.errors import MISSING_TOPIC, mapped_errors
from sluiceway.kafka.native_memory import release_free_memory

log = logging.getLogger(__name__)

_BATCH = 2000
_MIN_WAIT_SECONDS = 0.001  # librdkafka waits whole milliseconds
_POLL_SECONDS = 0.1  # the longest that stop() waits for the thread; costs ten wake-ups a second
_BRIEF_SECONDS = 0.01  # the same, and the longest wait of a fetch, for a log that is read once
_RESTART_SECONDS = 1.0
_MANY_RECORDS = 20_000  # whose buffers are worth being returned

SHORT_FETCH_MS = 100
"""For a topic with transactions: the consumer skips a marker, and so reaches the end, only when the next fetch returns."""

_LOST_POSITION = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}


class LogRecord(NamedTuple):
    """A consumed record. ``timestamp`` is in milliseconds since the epoch."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]] = ()


class KafkaBasedLog:
    """Passes every record of a topic to a callback, in order within a partition, from the beginning. Runs in any process.

    ``on_record`` is called on the reader's thread and must not wait for this object. If the topic is lost while it is
    read (deleted, truncated, created again), every later read raises InternalTopicError, and so does ``check``. While no
    broker is reachable, the background thread retries without end, and ``read_to_end`` waits up to its timeout.
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
        waits_for_transactions: bool = False,
        brief: bool = False,
    ) -> None:
        """Prepare the reader; ``start`` opens it.

        Args:
            waits_for_transactions: the topic's end is after the records of transactions that are open or being committed.
            brief: read the end and stop, sooner than with ``fetch_wait_ms``, but with a hundred requests a second while open.
        """
        self._admin = admin or admin_client(worker)
        self._topic = topic
        self._partitions = [TopicPartition(topic, partition) for partition in range(partitions)]
        self._poll_seconds = _BRIEF_SECONDS if brief else _POLL_SECONDS
        wait_ms = int(_BRIEF_SECONDS * 1000) if brief else fetch_wait_ms
        self._config = internal_consumer_config(
            worker, client_id, **{"fetch.wait.max.ms": str(wait_ms), "enable.partition.eof": "true"}
        )
        self._on_record = on_record
        self._waits_for_transactions = waits_for_transactions
        self._positions: dict[TopicPartition, int] = {}
        self._advanced = threading.Condition()
        self._failure: ConnectError | None = None
        self._interrupted = False
        self._id: str | None = None
        self._possibly_lost = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, timeout: float = 60.0) -> None:
        """Read to the topic's current end, then keep reading in the background. ``timeout`` is in seconds.

        Does not wait for open transactions: a dead task's is ended by its successor, which may need this log to start.

        Raises:
            InternalTopicError: the topic does not exist.
            ConnectError: the end was not reached in time, or the cluster did not answer.
        """
        self._id = topic_id(self._admin, self._topic)
        self._positions = beginning_offsets(self._admin, self._partitions)
        skipped = sum(self._positions.values())
        if self._id is None:  # the broker has just learned of the topic, which is new
            self._id = topic_id(self._admin, self._topic)
        reader = consumer({**self._config, "error_cb": self._client_error})
        with mapped_errors(f"read topic '{self._topic}'"):
            # Offsets instead of OFFSET_BEGINNING, which librdkafka takes 0.5 s longer to resolve.
            reader.assign([TopicPartitionOffset(*partition, offset) for partition, offset in self._positions.items()])
        self._thread = threading.Thread(target=self._run, args=(reader,), name=f"log-{self._topic}", daemon=True)
        self._thread.start()
        self._read_to_end(timeout, read_committed=True)
        if sum(self.positions.values()) - skipped >= _MANY_RECORDS:
            release_free_memory()

    def read_to_end(self, timeout: float = 30.0) -> None:
        """Wait until all records have been read that were committed before this call. Raises as ``start`` does.

        Transactions hide what was committed after their first record, and brokers finish a commit some time after they confirm
        it. Records behind such a transaction are waited for only with ``waits_for_transactions``.
        """
        self._read_to_end(timeout, read_committed=not self._waits_for_transactions)

    def _read_to_end(self, timeout: float, *, read_committed: bool) -> None:
        self._check()
        self.verify()
        reached = dict(self._positions)  # taken first: while the end offsets are requested, more records may be written and read
        ends = end_offsets(self._admin, self._partitions, read_committed=read_committed)
        shorter = {each.partition: (end, reached[each]) for each, end in ends.items() if end < reached[each]}
        if shorter:
            self._fail(_lost(self._topic, f"it ends before the offset read so far; partition: (end, read) = {shorter}"))
        self.wait_for(ends, timeout)

    def wait_for(self, positions: Mapping[TopicPartition, int], timeout: float = 30.0) -> None:
        """Wait until the topic has been read up to these offsets (exclusive). Raises as ``start`` does."""
        if threading.current_thread() is self._thread:
            raise ConnectError(f"A callback of topic '{self._topic}' must not wait for the topic to be read.")
        deadline = time.monotonic() + timeout
        with self._advanced:
            while missing := {each: end for each, end in positions.items() if self._positions.get(each, 0) < end}:
                self._check()
                if not self._advanced.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    reached = {each.partition: (self._positions.get(each), end) for each, end in missing.items()}
                    raise ConnectError(
                        f"Topic '{self._topic}' could not be read to its end within {timeout:.0f} s; "
                        f"partition: (reached, end) = {reached}. Check that the cluster is up and that this principal may read "
                        "the topic."
                    )
        self._check()

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset up to which each partition has been read (exclusive)."""
        with self._advanced:
            return dict(self._positions)

    def check(self) -> None:
        """Raise the error that ended the reading, if any. Sends no request."""
        if self._failure is not None:
            raise self._failure

    def verify(self) -> None:
        """Check by its id that the topic is still the one being read. Raises InternalTopicError, KafkaClientError."""
        current = topic_id(self._admin, self._topic)
        if current is None and not self._stopping.wait(_RESTART_SECONDS):  # a restarting broker may not know it yet
            current = topic_id(self._admin, self._topic)
        if current != self._id and not self._stopping.is_set():
            self._fail(_lost(self._topic, "it does not exist" if current is None else "another topic has its name"))
        self.check()

    def stop(self) -> None:
        """Stop the thread and close the consumer. May be called more than once."""
        self._stopping.set()
        with self._advanced:
            self._advanced.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=10)
        # The store that owns the callback owns this object too. Without the cycle, its clients end with it.
        self._on_record = _ignored

    def _check(self) -> None:
        self.check()
        if self._stopping.is_set():
            raise ConnectError(f"The reader of topic '{self._topic}' has been stopped.")

    def _run(self, reader: Consumer) -> None:
        try:
            while not self._stopping.is_set():
                self._deliver(_batch(reader, self._poll_seconds))
                if self._possibly_lost:
                    self._verify_again()
        except Exception as error:
            log.exception("Stopped reading topic %s because of an error", self._topic)
            self._fail(error if isinstance(error, ConnectError) else _broken(self._topic, error))
        finally:
            reader.close()

    def _deliver(self, messages: list[Message]) -> None:
        positions: dict[TopicPartition, int] = {}
        for message in cast("list[ConsumedMessage]", messages):
            error = message.error()
            if error is None:
                self._on_record(_record(message))
                positions[TopicPartition(self._topic, message.partition())] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                # Its offset is beyond those that hold no record for a consumer: transaction markers and aborted records.
                positions[TopicPartition(self._topic, message.partition())] = message.offset()
            else:
                _raise_if_lost(message, error)
                self._client_error(error)
        if positions:
            if self._interrupted:
                self._interrupted = False
                log.info("Reading topic %s has resumed", self._topic)
            with self._advanced:
                self._positions.update(positions)
                self._advanced.notify_all()

    def _verify_again(self) -> None:
        try:
            self.verify()
            self._possibly_lost = False
        except KafkaClientError as error:
            log.debug("Cannot check yet whether topic %s still exists: %s", self._topic, error)

    def _client_error(self, error: KafkaError) -> None:
        self._possibly_lost = self._possibly_lost or error.code() in MISSING_TOPIC | _LOST_POSITION
        if not self._interrupted:
            self._interrupted = True
            log.warning("Reading topic %s is interrupted: %s (%s); retrying", self._topic, error.str(), error.name())

    def _fail(self, error: ConnectError) -> None:
        with self._advanced:
            self._failure = self._failure or error
            self._advanced.notify_all()


class TopicTail:
    """Follows partitions of one or more topics from given offsets, without a thread. Not thread-safe.

    The offsets come from ``end_offsets`` or a snapshot. Runs on executors and on the driver.
    """

    def __init__(self, worker: WorkerConfig, client_id: str, positions: Mapping[TopicPartition, int]) -> None:
        self._missing: KafkaError | None = None
        config = internal_consumer_config(worker, client_id, **{"fetch.wait.max.ms": "1000"})
        self._consumer = consumer({**config, "error_cb": self._client_error})
        self._topics = ", ".join(sorted({each.topic for each in positions}))
        with mapped_errors(f"read {self._topics}"):
            self._consumer.assign([TopicPartitionOffset(*partition, offset) for partition, offset in positions.items()])

    def poll(self, timeout: float = 0.0) -> list[LogRecord]:
        """Return the available records, or wait up to ``timeout`` seconds for the first one.

        Raises:
            InternalTopicError: a topic was deleted, or ends before the requested offset.
        """
        records = []
        for message in cast("list[ConsumedMessage]", _batch(self._consumer, timeout)):
            error = message.error()
            if error is None:
                records.append(_record(message))
            else:
                _raise_if_lost(message, error)
                log.debug("Reading topic %s is interrupted: %s (%s)", message.topic(), error.str(), error.name())
        if self._missing is not None:
            raise _lost(self._topics, self._missing.str())
        return records

    def close(self) -> None:
        self._consumer.close()

    def _client_error(self, error: KafkaError) -> None:
        """Remember that a partition is missing: the consumer does not return this error in place of a record."""
        if error.code() == KafkaError._UNKNOWN_PARTITION:
            self._missing = error


def _ignored(_record: LogRecord) -> None:
    """Take a record that is read while the log stops."""


def _batch(reader: Consumer, timeout: float) -> list[Message]:
    # With less than a millisecond left, poll would return at once, and a caller that waits until a deadline would spin.
    first = reader.poll(max(timeout, _MIN_WAIT_SECONDS) if timeout else 0.0)
    if first is None:
        return []
    return [first, *reader.consume(_BATCH, 0)]  # consume(n, timeout) would wait until it has n messages or the timeout is over


def _record(message: ConsumedMessage) -> LogRecord:
    return LogRecord(
        message.topic(),
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        message.headers() or (),
    )


def _raise_if_lost(message: ConsumedMessage, error: KafkaError) -> None:
    if error.code() in MISSING_TOPIC | _LOST_POSITION:
        raise _lost(message.topic(), f"{error.str()} (partition {message.partition()})")


def _lost(topic: str, why: str) -> InternalTopicError:
    return InternalTopicError(
        f"Topic '{topic}' was deleted, truncated or created again while it was in use: {why}. Stop the processes that use "
        "it, restore the topic or accept the loss, and start them again."
    )


def _broken(topic: str, error: Exception) -> ConnectError:
    return ConnectError(f"Reading topic '{topic}' failed with {type(error).__name__}: {error}")

"""The JDBC sink's task: gathers records, writes them in transactions, and knows which offsets are safe."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from sluiceway.api import SinkRecord, SinkTask, TopicPartition
from sluiceway.connectors.jdbc.sink.config import MAX_RETRIES, UNREACHABLE_MS, SinkOptions
from sluiceway.connectors.jdbc.sink.session import Session, WriteError
from sluiceway.errors import ConnectError, FencedError, RetriableError

log = logging.getLogger(__name__)

_LETTER_SECONDS = 60.0


class JdbcSinkTask(SinkTask):
    """Writes to one database over one connection: each ``put`` is one transaction, and keeps nothing in memory after it.

    With exactly once, the offsets that count are those in the database: the task reads on from them whenever it is given a
    partition, and what it returns from ``pre_commit`` only tells Kafka.
    """

    _session: Session | None = None

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = SinkOptions.of(config)
        self._session = session = Session(options)
        self._retries = SinkRetries(options.max_retries, options.unreachable)
        self._unclaimed: set[TopicPartition] = set()
        self._generations: dict[TopicPartition, int] = {}
        self._rewinding: set[TopicPartition] = set()
        self._fenced = False
        session.open()

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Take partitions over from earlier tasks; a database that is away is asked again at the next ``put``."""
        if not self._options.exactly_once:
            return
        self._unclaimed.update(map(TopicPartition._make, partitions))
        try:
            self._claim()
        except RetriableError as error:
            log.warning("Partitions are taken over later: %s", error)
        self._rewinding.clear()  # reading has not begun

    def close(self, partitions: Collection[TopicPartition]) -> None:
        gone = set(map(TopicPartition._make, partitions))
        self._unclaimed -= gone
        self._rewinding -= gone
        self._fenced = False
        for partition in gone:
            self._generations.pop(partition, None)

    def put(self, records: Sequence[SinkRecord]) -> None:
        try:
            if self._unclaimed:
                self._claim()
            if self._rewinding:  # these were read from where Kafka's offsets are
                records = [record for record in records if _partition(record) not in self._rewinding]
            if records:
                self._write(records)
        except WriteError as error:
            self._retries.failed(error)
            self.context.timeout(int(self._options.backoff * 1000))
            raise
        except FencedError as error:
            self._heed(error)
        self._rewinding.clear()  # the runtime seeks once put has returned

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets of partitions that are this task's still: what was put is written."""
        if self._fenced:
            return {}
        waiting = self._unclaimed | self._rewinding
        return {place: offset for place, offset in offsets.items() if TopicPartition._make(place) not in waiting}

    def stop(self) -> None:
        if self._session is not None:
            self._session.close()

    def _claim(self) -> None:
        for partition, (offset, generation) in self._open_session.claim(self._unclaimed).items():
            self._generations[partition] = generation
            if offset is not None:
                self._rewinding.add(partition)
                self.context.offset({partition: offset})
        self._unclaimed.clear()

    def _write(self, records: Sequence[SinkRecord]) -> None:
        offsets = {}
        for record in records:
            offsets[record.original_topic, record.original_kafka_partition] = record.original_kafka_offset + 1
        stored = {TopicPartition._make(place): offset for place, offset in offsets.items()}
        self._open_session.write(self.prepared(records), stored, self._generations, self._refuse)
        self._retries.succeeded()

    def prepared(self, records: Sequence[SinkRecord]) -> Sequence[SinkRecord]:
        """Return what is to be written of records whose offsets are stored: here just these."""
        return records

    def _heed(self, error: FencedError) -> None:
        """Give the consumer group the chance to take partitions away; fail if it does not: then another group has them."""
        if self._fenced:
            raise error
        self._fenced = True
        self.context.timeout(int(self._options.backoff * 1000))
        raise RetriableError(str(error)) from error

    def _refuse(self, record: SinkRecord, error: Exception) -> None:
        """Report a bad record and wait until it is safe: its offset is stored with the batch. Raises if it cannot be."""
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise error
        reporter.report(record, error).result(_LETTER_SECONDS)

    @property
    def _open_session(self) -> Session:
        assert self._session is not None  # noqa: S101 (start made it)
        return self._session


def _partition(record: SinkRecord) -> TopicPartition:
    return TopicPartition(record.original_topic, record.original_kafka_partition)


class SinkRetries:
    """For how long failed writes are tried again: counts attempts that the database gave up, and the seconds that it was not to
    be reached; None is without end.
    """

    def __init__(self, most: int | None, unreachable_seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = unreachable_seconds
        self._clock = clock
        self._attempts = 0
        self._since: float | None = None

    def succeeded(self) -> None:
        self._attempts, self._since = 0, None

    def failed(self, error: WriteError) -> None:
        """Note a failure. Raises ConnectError if it was one too many."""
        if error.unreachable:
            now = self._clock()
            self._since = now if self._since is None else self._since
            if self._seconds is not None and now - self._since >= self._seconds:
                raise ConnectError(f"{error} (for {now - self._since:.0f} s, which {UNREACHABLE_MS} does not allow)") from error
            return
        self._since = None
        self._attempts += 1
        if self._most is not None and self._attempts > self._most:
            raise ConnectError(f"{error} (after {self._attempts} attempts; {MAX_RETRIES}={self._most})") from error

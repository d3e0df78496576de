"""The JDBC sink's task: writes records in transactions and tracks which offsets are safe. Runs on the executors."""

from __future__ import annotations

import logging
import pickle
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

from sluiceway.api import ColumnBatch, NotColumnar, RowFormReason, SinkRecord, SinkTask, TopicPartition
from sluiceway.api.outage import Outage
from sluiceway.connectors.jdbc.sink.config import MAX_RETRIES, SinkOptions
from sluiceway.connectors.jdbc.sink.session import Session, WriteError
from sluiceway.connectors.replacement import IntervalReplacement
from sluiceway.errors import ConnectError, FencedError, RetriableError

log = logging.getLogger(__name__)

_REPORT_SECONDS = 60.0


class JdbcSinkTask(SinkTask):
    """Writes to one database over one connection. Each ``put`` is one transaction; nothing stays in memory after it.

    With exactly-once delivery the offsets in the database are authoritative: the task seeks to them whenever a partition is
    assigned, and ``pre_commit`` only reports them to Kafka.

    A task that replaces the rows of an interval keeps its records in a file instead, and ``pre_commit`` writes all of them in one
    transaction once the interval has been read.
    """

    takes_columns = True

    _options: SinkOptions
    _session: Session | None = None
    _replacement: IntervalReplacement | None = None
    _spool: RecordSpool | None = None
    _replaced = False

    @classmethod
    def needs_schemas(cls, config: Mapping[str, str]) -> bool:
        return True

    def start(self, config: Mapping[str, str]) -> None:
        self._options = options = SinkOptions.of(config)
        self._retries = SinkRetries(options.max_retries, options.unreachable)
        self._unclaimed: set[TopicPartition] = set()
        self._generations: dict[TopicPartition, int] = {}
        self._rewinding: set[TopicPartition] = set()
        self._fenced = False
        self._replacement = IntervalReplacement.of(config)
        self._spool = None if self._replacement is None else RecordSpool()
        self._session = session = Session(options)
        session.open()

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Claim partitions from former owners; if the database is unreachable, the next ``put`` tries again."""
        if not self._options.exactly_once:
            return
        self._unclaimed.update(map(TopicPartition._make, partitions))
        try:
            self._claim(self._opened())
        except RetriableError as error:
            log.warning("Cannot claim partitions yet, the next put tries again: %s", error)
        self._rewinding.clear()  # the consumer has fetched nothing yet

    def close(self, partitions: Collection[TopicPartition]) -> None:
        revoked = set(map(TopicPartition._make, partitions))
        self._unclaimed -= revoked
        self._rewinding -= revoked
        self._fenced = False
        for partition in revoked:
            self._generations.pop(partition, None)

    def put(self, records: Sequence[SinkRecord]) -> None:
        session = self._opened()
        try:
            if self._unclaimed:
                self._claim(session)
            if self._rewinding:  # these records were fetched from Kafka's offsets, before the seek
                records = [record for record in records if record.original_topic_partition not in self._rewinding]
            if records:
                if self._spool is None:
                    self._write(session, records)
                else:
                    self._spool.add(records)
        except WriteError as error:
            self._failed(error)
        except FencedError as error:
            self._fence(error)
        self._rewinding.clear()  # the runtime seeks after put has returned

    def put_columns(self, batch: ColumnBatch) -> None:
        if self._spool is not None:
            raise NotColumnar("the records of an interval are written together", RowFormReason.TASK)
        if self._unclaimed or self._rewinding or batch.offsets is None:
            raise NotColumnar("partitions were assigned or read again just now", RowFormReason.TASK)
        next_offset = int(batch.offsets[-1].as_py()) + 1
        offsets = {TopicPartition(batch.original_topic, batch.partition or 0): next_offset}
        try:
            self._opened().write_columns(batch, offsets, self._generations)
        except WriteError as error:
            self._failed(error)
        except FencedError as error:
            self._fence(error)
        self._retries.succeeded()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets of the partitions that this task still owns; everything put has been written."""
        if self._fenced:
            return {}
        if self._replacement is not None and not self._replaced and not self._replace(self._replacement, offsets):
            return {}
        pending = self._unclaimed | self._rewinding
        return {partition: offset for partition, offset in offsets.items() if TopicPartition._make(partition) not in pending}

    def stop(self) -> None:
        if self._session is not None:
            self._session.close()
        if self._spool is not None:
            self._spool.close()

    def _opened(self) -> Session:
        if self._session is None:
            raise ConnectError("The JDBC sink task has not been started. Call start() first.")
        return self._session

    def _claim(self, session: Session) -> None:
        claimed = session.claim(self._unclaimed)
        if self._replacement is not None and self._replacement.is_done({each: offset for each, (offset, _) in claimed.items()}):
            self._replaced = True  # by a task that was killed before Kafka knew
        for partition, (offset, generation) in claimed.items():
            self._generations[partition] = generation
            if offset is not None:
                self._rewinding.add(partition)
                self.context.offset({partition: offset})
        self._unclaimed.clear()

    def _write(self, session: Session, records: Sequence[SinkRecord]) -> None:
        offsets = {}
        for record in records:
            offsets[record.original_topic_partition] = record.original_kafka_offset + 1
        session.write(self.prepared(records), offsets, self._generations, self._refuse)
        self._retries.succeeded()

    def _replace(self, replacement: IntervalReplacement, offsets: Mapping[TopicPartition, int]) -> bool:
        """Write the interval's records instead of its rows once all of them have been read; return whether that is so.

        Repeats a transaction that was rolled back, as ``put`` is repeated. After any other error the runtime reads the records
        again.
        """
        spool, session = self._spool, self._opened()
        assert spool is not None  # noqa: S101 (there with a replacement)
        if not replacement.is_complete(offsets):
            return False
        try:
            while not self._replaced:
                try:
                    batches = lambda: (self.prepared(each) for each in spool.batches())  # noqa: E731
                    session.replace(replacement, batches, self._generations, self._refuse)
                    self._replaced = True
                except WriteError as error:
                    if error.unreachable:  # it may last, and the task must poll meanwhile
                        raise
                    self._retries.failed(error)
                    log.warning("The rows of interval %s are not replaced yet: %s", replacement.value, error)
                    time.sleep(self._options.backoff)
        finally:
            spool.clear()
        return True

    def prepared(self, records: Sequence[SinkRecord]) -> Sequence[SinkRecord]:
        """Return the records to write for the records of a batch; subclasses may convert or drop some."""
        return records

    def _failed(self, error: WriteError) -> NoReturn:
        """Raise the error so that the runtime repeats the batch, or ConnectError if that has been done often enough."""
        self._retries.failed(error)
        self.context.timeout(int(self._options.backoff * 1000))
        raise error

    def _fence(self, error: FencedError) -> NoReturn:
        """Retry once, so that a rebalance of the consumer group can revoke partitions; fail if another group owns them."""
        if self._fenced:
            raise error
        self._fenced = True
        self.context.timeout(int(self._options.backoff * 1000))
        raise RetriableError(str(error)) from error

    def _refuse(self, record: SinkRecord, error: Exception) -> None:
        """Report a bad record and wait until the report is durable, because the batch's offset skips the record.

        Raises ``error`` without an error reporter, and the reporter's errors.
        """
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise error
        reporter.report(record, error).result(_REPORT_SECONDS)


class SinkRetries:
    """Limits retries: the number of rolled-back attempts, and the seconds without a connection; None is unlimited."""

    def __init__(self, attempts: int | None, unreachable: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._max_attempts = attempts
        self._outage = Outage(unreachable, clock)
        self._attempts = 0

    def succeeded(self) -> None:
        self._attempts = 0
        self._outage.ended()

    def failed(self, error: WriteError) -> None:
        """Count a failure. Raises ConnectError if it exceeds the limit."""
        if error.unreachable:
            self._outage.lasts(error)
            return
        self._outage.ended()
        self._attempts += 1
        if self._max_attempts is not None and self._attempts > self._max_attempts:
            raise ConnectError(f"{error} (after {self._attempts} attempts; {MAX_RETRIES}={self._max_attempts})") from error


class RecordSpool:
    """Batches of records in a file without a name, which ends with its process."""

    def __init__(self) -> None:
        self._next: dict[TopicPartition, int] = {}  # the offset behind a partition's last record
        self._file = tempfile.TemporaryFile(prefix="sluiceway-spool-")  # noqa: SIM115 (closed by ``close``)

    def add(self, records: Sequence[SinkRecord]) -> None:
        """Keep a batch, without records that are put again, as after a rebalance."""
        new = []
        for record in records:
            partition = record.original_topic_partition
            if record.original_kafka_offset >= self._next.get(partition, 0):
                self._next[partition] = record.original_kafka_offset + 1
                new.append(record)
        pickle.dump(new, self._file, pickle.HIGHEST_PROTOCOL)

    def batches(self) -> Iterator[list[SinkRecord]]:
        """Yield the batches in their order."""
        self._file.seek(0)
        with suppress(EOFError):
            while True:
                yield pickle.load(self._file)  # noqa: S301 (written by this process)

    def clear(self) -> None:
        """Forget the batches."""
        self._next.clear()
        self._file.seek(0)
        self._file.truncate()

    def close(self) -> None:
        """Delete the file."""
        self._file.close()

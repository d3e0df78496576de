"""Base classes of tasks, which copy the records, and the runtime's services for them."""

from __future__ import annotations

import abc
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import ClassVar, NamedTuple, Protocol

from sluiceway.api.columns import ColumnBatch, EncodedRecords, SourceColumns
from sluiceway.api.converter import Converter
from sluiceway.api.records import Offset, Partition, SinkRecord, SourceRecord
from sluiceway.api.records import TopicPartition as TopicPartition  # also imported from here
from sluiceway.errors import ConnectError


class OffsetStorageReader(Protocol):
    """Reads stored source offsets. Used on executors, usually in ``SourceTask.start``."""

    def offset(self, partition: Partition) -> Offset | None:
        """Return the stored offset of a source partition, or None if there is none."""

    def offsets(self, partitions: Sequence[Partition]) -> list[Offset | None]:
        """Return the stored offsets of several partitions, in the same order."""


class TransactionContext(Protocol):
    """Ends the transactions of a source task, with ``transaction.boundary=connector``. Used on executors.

    A transaction starts with the first record after the previous transaction. When the task ends, an open transaction is
    aborted, and the next task reads its records again.
    """

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Commit after this record has been sent; without ``record``, after the next batch that ``poll`` returns."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Abort the transaction after this record; without ``record``, after the next batch that ``poll`` returns.

        The offsets of aborted records are still stored, so the records are not read again.
        """


class TaskConverters(NamedTuple):
    """The converters of a source task's records."""

    key: Converter
    value: Converter


class SourceTaskContext(Protocol):
    """The runtime's services for a source task."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader: ...

    @property
    def configs(self) -> Mapping[str, str]:
        """The task's config, with references to config providers resolved."""

    @property
    def transaction_context(self) -> TransactionContext | None:
        """Ends the task's transactions; None unless exactly-once is enabled with ``transaction.boundary=connector``."""

    @property
    def converters(self) -> TaskConverters | None:
        """The converters, if nothing but them needs the records' data: no transform, and no report of tolerated errors.

        A task may then encode keys and values itself, which saves building their structs. Such a key or value is bytes or None
        with the schema ``ENCODED``, and must be what the converter returns. A task that cannot be sure that a record can be
        converted returns it as usual, so that the runtime handles the error.
        """

    def report(self, record: SourceRecord, error: ConnectError) -> None:
        """Handle a record that cannot be read as the connector's ``errors.*`` keys say: in ``poll``, instead of returning it.

        Raises ConnectError unless errors are tolerated. The record's value may be what was read, as bytes, and its source
        offset must be the position after it. A dead letter queue record of it is in Kafka before a later offset is stored.
        """

    def wait(self, seconds: float) -> None:
        """Wait in ``poll`` for records, at most so long. Ends early if the task must pause or stop, and with ``wake``."""

    def wake(self) -> None:
        """End the current ``wait``, or the next one, because there may be records. Thread-safe."""

    def waiting(self, reason: object = None, seconds: float = 0.0) -> None:
        """Show in the task's status that it waits for its system, why, and that it tries again after ``seconds``. Thread-safe.

        Without a reason, the wait is over. Not needed where ``poll`` raises RetriableError: the runtime shows that itself.
        """


class ErrantRecordReporter(Protocol):
    """Reports records that a sink task cannot write (KIP-610)."""

    def report(self, record: SinkRecord, error: BaseException) -> Future[None]:
        """Report a bad record, which is handled by the connector's ``errors.*`` keys.

        The future completes when the record is stored. The task need not wait for it, because offsets are not committed
        before.

        The call blocks while the buffer of the dead letter queue is full. If the task is stopped meanwhile, it raises an
        exception that derives from BaseException but not from Exception: do not catch it, and release resources in
        ``finally``.
        """


class SinkTaskContext(Protocol):
    """The runtime's services for a sink task."""

    @property
    def configs(self) -> Mapping[str, str]:
        """The task's config, with references to config providers resolved."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The topic partitions assigned to this task now."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """Reports bad records; None if the connector's ``errors.*`` keys do not allow it."""

    @property
    def delivery_ends(self) -> bool:
        """In ``pre_commit``: no more records of these partitions come for now, because they are revoked or the task pauses."""

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Deliver records from these offsets on, starting with the next ``put``."""

    def timeout(self, milliseconds: int) -> None:
        """Call ``put`` again after at most this time, after a RetriableError or if there are no records."""

    def pause(self, *partitions: TopicPartition) -> None:
        """Deliver no records of these partitions until ``resume``."""

    def resume(self, *partitions: TopicPartition) -> None: ...

    def request_commit(self) -> None:
        """Request an offset commit soon, before the commit interval has passed."""


class Task(abc.ABC):
    """A part of a connector's work. Runs on a Spark executor. One thread calls all methods."""

    @classmethod
    def version(cls) -> str:
        from sluiceway import __version__

        return __version__

    @abc.abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Start with this task config and open the resources needed."""

    def stop(self) -> None:  # noqa: B027 (most tasks hold no resources)
        """Release the resources that ``start`` acquired. Called once, after all other calls."""

    def metrics(self) -> Mapping[str, float]:
        """Return metrics of the task's own by name, such as ``log-behind-bytes``.

        Called by another thread than the other methods, at any time after ``start``; it must not wait.
        """
        return {}


class SourceLag(NamedTuple):
    """The lag of a source task behind its source; None for what is not known.

    Attributes:
        seconds: the age of the newest moment up to which ``poll`` has returned everything, by the source's clock.
        bytes: those that the source has and ``poll`` has not returned.
    """

    seconds: float | None = None
    bytes: float | None = None


class SourceTask(Task):
    """Reads records from another system."""

    context: SourceTaskContext

    def initialize(self, context: SourceTaskContext) -> None:
        """Set the context. Called once, before ``start``."""
        self.context = context

    @abc.abstractmethod
    def poll(self) -> Sequence[SourceRecord] | None:
        """Return the next records, or None if no records are available.

        May wait for records, at most about a second, because pausing and stopping the task wait for it; ``context.wait`` ends
        with such a command. Runs on an executor, never at the same time as another call of this task.
        """

    def poll_columns(self) -> SourceColumns | EncodedRecords | Sequence[SourceRecord] | None:
        """Return the next records like ``poll``, many of them as columns or encoded together, which is faster.

        Called instead of ``poll`` while nothing needs single records. Return few records in row form: columns have a cost for
        each batch, and the first batch of columns loads Arrow into the process.
        """
        return self.poll()

    def drain(self) -> Sequence[SourceRecord] | None:
        """Receive no more, and return the records of what was received, because the task stops.

        For tasks whose source cannot be asked again. Called once, after the last ``poll``, unless the task has failed. Kafka has
        the records before ``stop``, if it takes them in the time that a task may take to stop.
        """
        return None

    def idle_offsets(self) -> Sequence[tuple[Partition, Offset | None]]:
        """Return offsets to store although no record has them, because the source moved on without records (KIP-910).

        None removes the offset of a source partition that the task does not need any more.
        Called after a ``poll`` that returned no records. ``commit`` is called when they are stored.
        """
        return ()

    @property
    def commit_is_awaited(self) -> bool:
        """Whether the source waits for the next commit, as a database does that shuts down for what ``idle_offsets`` returned.

        Asked after a ``poll`` that returned no records. Then a commit is made at once instead of after
        ``offset.flush.interval.ms``, and ``commit`` is called also if there is nothing to store, unless the task defines its
        transactions itself.
        """
        return False

    @property
    def ended(self) -> bool | None:
        """Whether a bounded run has read all that its source has now. None: it has if two polls in a row return no records.

        Asked after each poll of a bounded run. For tasks whose records arrive while they do not poll, which cannot tell by a poll
        alone.
        """
        return None

    def paused(self) -> None:
        """Called when the task has paused: all records polled before are in Kafka, and ``poll`` is not called until ``resumed``.

        For tasks that hold what others could take, such as messages of a queue. What it raises is logged.
        """

    def resumed(self) -> None:
        """Called when the task has resumed after ``paused``, before the next ``poll``. Not called if it stops instead."""

    def source_lag(self) -> SourceLag:
        """Return how far the task is behind its source, for the metrics ``source-lag-ms`` and ``source-lag-bytes``.

        Called by another thread than the other methods, at any time after ``start``; it must not wait.
        """
        return SourceLag()

    def commit(self) -> None:
        """Called at each commit and before ``stop``, also if no record had an offset: all records polled before are in Kafka."""

    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        """Called for each record when Kafka has acknowledged it, or with partition and offset -1 if it was filtered out.

        Called between two polls, not during one. A task that waits for it returns None from ``poll``, which is called again when
        Kafka has acknowledged a record. What it raises is logged. Overriding it costs a callback for every record.
        """


class SinkTask(Task):
    """Writes records to another system."""

    context: SinkTaskContext

    def initialize(self, context: SinkTaskContext) -> None:
        """Set the context. Called once, before ``start``."""
        self.context = context

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Called when partitions are assigned, before any of their records are delivered."""

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Called when partitions are revoked, after the last commit of their offsets."""

    @abc.abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Write the next records, possibly none. Raise RetriableError to get the same records again."""

    takes_columns: ClassVar[bool] = False
    """True if ``put_columns`` is implemented."""

    @classmethod
    def needs_schemas(cls, config: Mapping[str, str]) -> bool:
        """Return whether a task with this config needs values with schemas; for the advice in errors of converters."""
        return False

    takes_schemaless_columns: ClassVar[bool] = False
    """True if ``put_columns`` also takes keys and values without a schema (``Column.objects``)."""

    def put_columns(self, batch: ColumnBatch) -> None:
        """Write a batch of records like ``put``. Called only if ``takes_columns`` is True, for batches that have a columnar form.

        Raise RetriableError to get the same records again, and NotColumnar, having written nothing, to get them by ``put``.
        """
        raise NotImplementedError

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make all records durable. The runtime then commits ``offsets``, the next offsets to read."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets that are safe to commit. The default flushes and returns all of them."""
        self.flush(offsets)
        return offsets

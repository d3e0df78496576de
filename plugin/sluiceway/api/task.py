"""What a connector author subclasses on the executors' side: the task moves the records."""

from __future__ import annotations

import abc
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple, Protocol

from sluiceway.api.records import Offset, Partition, SinkRecord, SourceRecord


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class OffsetStorageReader(Protocol):
    """Reads stored source offsets. Used on an executor, mostly in ``SourceTask.start``."""

    def offset(self, partition: Partition) -> Offset | None:
        """Return the stored offset of a source partition, or None if there is none."""

    def offsets(self, partitions: Sequence[Partition]) -> list[Offset | None]:
        """Return the stored offsets of many partitions at once, in the order asked for."""


class TransactionContext(Protocol):
    """How a source task says where its transactions end, with ``transaction.boundary=connector``. Used on an executor.

    A transaction begins with the first record after the last one's end. What has not been committed when the task ends is
    rolled back, records and offsets, and read again by the next one.
    """

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Commit once this record has been sent; without one, once all of the next batch that ``poll`` returns have been."""

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Drop the transaction's records up to and including this one; without one, all of the next batch too.

        Their offsets are stored all the same: what was dropped is not read again.
        """


class SourceTaskContext(Protocol):
    """What a source task may ask of the runtime."""

    @property
    def offset_storage_reader(self) -> OffsetStorageReader: ...

    @property
    def configs(self) -> Mapping[str, str]:
        """The task's config, references to secrets resolved."""

    @property
    def transaction_context(self) -> TransactionContext | None:
        """Where the task says what its transactions are; None unless exactly once with ``transaction.boundary=connector``."""


class ErrantRecordReporter(Protocol):
    """Takes records that a sink task could not write (KIP-610)."""

    def report(self, record: SinkRecord, error: BaseException) -> Future[None]:
        """Send a record to where bad records go, by the connector's ``errors.*`` settings.

        The answer is done once the record is safe there; offsets are not committed before, so nobody has to wait for it.

        While it waits for room in the dead letter queue's buffer, the task may be stopped. It then raises what derives from
        BaseException but not from Exception: let it pass, and release resources in ``finally``.
        """


class SinkTaskContext(Protocol):
    """What a sink task may ask of the runtime."""

    @property
    def configs(self) -> Mapping[str, str]:
        """The task's config, references to secrets resolved."""

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """The topic partitions that this task has now."""

    @property
    def errant_record_reporter(self) -> ErrantRecordReporter | None:
        """Where to report bad records, or None if the connector has no place for them."""

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Read on from these offsets from the next ``put`` on."""

    def timeout(self, milliseconds: int) -> None:
        """Call again after this long at the latest, after a RetriableError or when no records come."""

    def pause(self, *partitions: TopicPartition) -> None:
        """Deliver no records of these partitions until ``resume``."""

    def resume(self, *partitions: TopicPartition) -> None: ...

    def request_commit(self) -> None:
        """Ask for offsets to be committed soon, ahead of the interval."""


class Task(abc.ABC):
    """One share of a connector's work. Runs on a Spark executor, in one thread; its methods are never called concurrently."""

    @classmethod
    def version(cls) -> str:
        from sluiceway import __version__

        return __version__

    @abc.abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Take the task's config and open what is needed."""

    def stop(self) -> None:  # noqa: B027 (most tasks hold nothing)
        """Release what ``start`` took; called once, after the last other call."""


class SourceTask(Task):
    """Reads records from another system."""

    context: SourceTaskContext

    def initialize(self, context: SourceTaskContext) -> None:
        """Called once before ``start``."""
        self.context = context

    @abc.abstractmethod
    def poll(self) -> Sequence[SourceRecord] | None:
        """Return the next records, or None when there are none now.

        May wait a little for records, at most about a second: while it waits, pause and stop wait too. Called on an
        executor, never while another call of this task runs.
        """

    def commit(self) -> None:
        """Called after offsets were committed: everything polled before is safely in Kafka."""

    def commit_record(self, record: SourceRecord, partition: int, offset: int) -> None:
        """Called for each record once Kafka has acknowledged it, or with partition and offset -1 if it was filtered out.

        Overriding it costs a callback a record.
        """


class SinkTask(Task):
    """Writes records to another system."""

    context: SinkTaskContext

    def initialize(self, context: SinkTaskContext) -> None:
        """Called once before ``start``."""
        self.context = context

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Called when partitions were assigned, before any of their records."""

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Called when partitions are taken away, after the last commit of their offsets."""

    @abc.abstractmethod
    def put(self, records: Sequence[SinkRecord]) -> None:
        """Take the next records, maybe none. Raise RetriableError to be given the same records again."""

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Make everything taken durable; the runtime commits ``offsets`` (the next to read) afterwards."""

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Return the offsets that are safe to commit; the default flushes and returns all of them."""
        self.flush(offsets)
        return offsets

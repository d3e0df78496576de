"""Contexts of connectors and tasks with offsets in memory, for tests, and for Spark's format ``sluiceway``."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from sluiceway.api import Offset, Partition, SinkRecord, SourceRecord, TaskConverters, TopicPartition, TransactionContext
from sluiceway.errors import ConnectError

_LONGEST_WAIT_SECONDS = 0.1


class MemoryOffsets:
    """The stored offsets of one source connector, which tasks read (an ``OffsetStorageReader``).

    Offsets are converted to JSON, like in Kafka: a tuple is read back as a list, and a value without a JSON form raises
    TypeError.
    """

    def __init__(self, stored: Iterable[tuple[Partition, Offset]] = ()) -> None:
        self._stored: dict[str, str] = {}
        for partition, offset in stored:
            self.store(partition, offset)

    def store(self, partition: Partition, offset: Offset | None) -> None:
        """Store the offset of a source partition; None deletes it."""
        key = json.dumps(partition, sort_keys=True)
        if offset is None:
            self._stored.pop(key, None)
        else:
            self._stored[key] = json.dumps(offset)

    def store_all(self, records: Iterable[SourceRecord]) -> None:
        """Store the offsets of records, in order, as if Kafka had acknowledged the records."""
        for record in records:
            if record.source_partition is not None:
                self.store(record.source_partition, record.source_offset)

    def offset(self, partition: Partition) -> Offset | None:
        """Return the stored offset of a source partition, or None if there is none."""
        found = self._stored.get(json.dumps(partition, sort_keys=True))
        return None if found is None else json.loads(found)

    def offsets(self, partitions: Sequence[Partition]) -> list[Offset | None]:
        """Return the stored offsets of several partitions, in the same order."""
        return [self.offset(partition) for partition in partitions]

    def all(self) -> list[tuple[dict[str, Any], Mapping[str, Any]]]:
        """Return all source partitions with their offsets."""
        return [(json.loads(key), json.loads(value)) for key, value in self._stored.items()]

    def __len__(self) -> int:
        return len(self._stored)


class MemoryConnectorContext:
    """A ``SourceConnectorContext`` that records the connector's calls. ``waits_for`` has the reasons given to ``waiting``."""

    def __init__(self, offsets: MemoryOffsets | None = None) -> None:
        self.offset_storage_reader = MemoryOffsets() if offsets is None else offsets
        self.reconfigurations = 0
        self.errors: list[BaseException] = []
        self.waits_for: list[str | None] = []

    def request_task_reconfiguration(self) -> None:
        self.reconfigurations += 1

    def raise_error(self, error: BaseException) -> None:
        self.errors.append(error)

    def waiting(self, reason: object = None, seconds: float = 0.0) -> None:
        self.waits_for.append(None if reason is None else str(reason))


class MemorySourceContext:
    """A ``SourceTaskContext`` with offsets in memory.

    ``waits_for`` has the reasons given to ``waiting``, None for an end, and ``reported`` the bad records with their errors, if
    the config has ``errors.tolerance=all``.
    """

    def __init__(self, configs: Mapping[str, str] | None = None, offsets: MemoryOffsets | None = None) -> None:
        self.configs: Mapping[str, str] = dict(configs or {})
        self.offset_storage_reader = MemoryOffsets() if offsets is None else offsets
        self.transaction_context: TransactionContext | None = None
        self.converters: TaskConverters | None = None
        self.waits_for: list[str | None] = []
        self.reported: list[tuple[SourceRecord, ConnectError]] = []
        self._woken = threading.Event()

    def report(self, record: SourceRecord, error: ConnectError) -> None:
        if self.configs.get("errors.tolerance") != "all":
            raise error
        self.reported.append((record, error))

    def wait(self, seconds: float) -> None:
        """Wait for ``wake``, but not long, so that a test of a task without records takes little time."""
        self._woken.wait(min(seconds, _LONGEST_WAIT_SECONDS))
        self._woken.clear()

    def wake(self) -> None:
        self._woken.set()

    def waiting(self, reason: object = None, seconds: float = 0.0) -> None:
        self.waits_for.append(None if reason is None else str(reason))


class MemoryReporter:
    """An ``ErrantRecordReporter`` that keeps the records with their errors."""

    def __init__(self) -> None:
        self.reported: list[tuple[SinkRecord, BaseException]] = []

    def report(self, record: SinkRecord, error: BaseException) -> Future[None]:
        self.reported.append((record, error))
        safe: Future[None] = Future()
        safe.set_result(None)
        return safe


class MemorySinkContext:
    """A ``SinkTaskContext`` that records the task's calls.

    ``rewinds`` has the offsets set by ``offset``, ``timeouts`` the requested milliseconds, ``paused`` the partitions that are
    paused now, ``reported`` the bad records. The test sets ``assignment`` when it calls ``open`` and ``close``.
    """

    def __init__(
        self,
        configs: Mapping[str, str] | None = None,
        assignment: Iterable[TopicPartition] = (),
        *,
        reports: bool = True,
    ) -> None:
        self.configs: Mapping[str, str] = dict(configs or {})
        self.assignment = frozenset(assignment)
        self.errant_record_reporter = MemoryReporter() if reports else None
        self.rewinds: dict[TopicPartition, int] = {}
        self.timeouts: list[int] = []
        self.paused: set[TopicPartition] = set()
        self.commit_requested = False
        self.delivery_ends = False

    @property
    def reported(self) -> list[tuple[SinkRecord, BaseException]]:
        return [] if self.errant_record_reporter is None else self.errant_record_reporter.reported

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.rewinds.update(offsets)

    def timeout(self, milliseconds: int) -> None:
        self.timeouts.append(milliseconds)

    def pause(self, *partitions: TopicPartition) -> None:
        self.paused.update(partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        self.paused.difference_update(partitions)

    def request_commit(self) -> None:
        self.commit_requested = True

"""Contexts of connectors and tasks in memory, for unit tests."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Future

from sluiceway.api import SinkRecord, TaskConverters, TopicPartition, TransactionContext
from sluiceway.testing.offsets import MemoryOffsets

_LONGEST_WAIT_SECONDS = 0.1


class MemoryConnectorContext:
    """A ``ConnectorContext`` that records the connector's calls. ``waits_for`` has the reasons given to ``waiting``."""

    def __init__(self) -> None:
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
    """A ``SourceTaskContext`` with offsets in memory. ``waits_for`` has the reasons given to ``waiting``, None for an end."""

    def __init__(self, configs: Mapping[str, str] | None = None, offsets: MemoryOffsets | None = None) -> None:
        self.configs: Mapping[str, str] = dict(configs or {})
        self.offset_storage_reader = MemoryOffsets() if offsets is None else offsets
        self.transaction_context: TransactionContext | None = None
        self.converters: TaskConverters | None = None
        self.waits_for: list[str | None] = []
        self._woken = threading.Event()

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

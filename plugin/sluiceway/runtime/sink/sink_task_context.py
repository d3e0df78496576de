"""What sink tasks see of the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sluiceway.api import ErrantRecordReporter, TopicPartition


class PartitionControl(Protocol):
    """What a sink task's context needs of the consumer."""

    @property
    def assignment(self) -> frozenset[TopicPartition]: ...

    def hold(self, partitions: frozenset[TopicPartition]) -> None: ...

    def release(self, partitions: frozenset[TopicPartition]) -> None: ...


class WorkerSinkTaskContext:
    """See ``SinkTaskContext``. Wishes that the loop fulfils between two calls of the task are kept until it takes them."""

    def __init__(
        self, configs: Mapping[str, str], consumer: PartitionControl, errant_record_reporter: ErrantRecordReporter | None = None
    ) -> None:
        self.configs = configs
        self.errant_record_reporter = errant_record_reporter
        self.commit_requested = False
        self._consumer = consumer
        self._rewinds: dict[TopicPartition, int] = {}
        self._timeout: float | None = None

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        return self._consumer.assignment

    def offset(self, offsets: Mapping[TopicPartition, int]) -> None:
        self._rewinds.update(offsets)

    def timeout(self, milliseconds: int) -> None:
        self._timeout = milliseconds / 1000

    def pause(self, *partitions: TopicPartition) -> None:
        self._consumer.hold(frozenset(partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        self._consumer.release(frozenset(partitions))

    def request_commit(self) -> None:
        self.commit_requested = True

    def take_rewinds(self) -> dict[TopicPartition, int]:
        """Return the offsets that the task wants to read on from, once."""
        rewinds, self._rewinds = self._rewinds, {}
        return rewinds

    def take_timeout(self, default: float) -> float:
        """Return the seconds after which the task wants to be called again, once; else ``default``."""
        timeout, self._timeout = self._timeout, None
        return default if timeout is None else timeout

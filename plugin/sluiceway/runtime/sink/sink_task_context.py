"""Implements a sink task's context."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from sluiceway.api import ErrantRecordReporter, TopicPartition
from sluiceway.kafka.group_metadata import ConsumerGroup


class PartitionControl(Protocol):
    """The part of a consumer that a sink task's context uses."""

    @property
    def assignment(self) -> frozenset[TopicPartition]: ...

    def pause_for_task(self, partitions: frozenset[TopicPartition]) -> None: ...

    def resume_for_task(self, partitions: frozenset[TopicPartition]) -> None: ...

    def group(self) -> ConsumerGroup: ...

    def group_offsets(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]: ...


class WorkerSinkTaskContext:
    """Implements ``SinkTaskContext``. Keeps the task's requests until the worker carries them out between two calls."""

    def __init__(
        self, configs: Mapping[str, str], consumer: PartitionControl, errant_record_reporter: ErrantRecordReporter | None = None
    ) -> None:
        self.configs = configs
        self.errant_record_reporter = errant_record_reporter
        self.commit_requested = False
        self.delivery_ends = False
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
        self._consumer.pause_for_task(frozenset(partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        self._consumer.resume_for_task(frozenset(partitions))

    def request_commit(self) -> None:
        self.commit_requested = True

    def consumer_group(self) -> ConsumerGroup:
        """Return the consumer's membership in its group. Not part of ``SinkTaskContext``: for Java tasks."""
        return self._consumer.group()

    def group_offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the group's committed offsets. Not part of ``SinkTaskContext``: for Java tasks. Raises ConnectError."""
        return self._consumer.group_offsets(frozenset(partitions))

    def take_rewinds(self) -> dict[TopicPartition, int]:
        """Return and clear the offsets the task requested to read from."""
        rewinds, self._rewinds = self._rewinds, {}
        return rewinds

    def take_timeout(self, default: float) -> float:
        """Return and clear the seconds after which the task requested to be called again, or ``default``."""
        timeout, self._timeout = self._timeout, None
        return default if timeout is None else timeout

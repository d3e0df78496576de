"""Requests a connector's micro-batch from the shared application that runs it, and waits for its report.

Runs in an Airflow task; ``cancel`` also in the triggerer. Opens no more connections than the wait needs, because they are part of
the time until the first record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.kafka.admin import end_offsets, partition_count
from sluiceway.kafka.kafka_based_log import TopicTail
from sluiceway.kafka.partitioner import partition_of
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.batch_messages import (
    BatchReport,
    BatchState,
    cancellation_key,
    decode_report,
    report_key,
    request_key,
)

_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class RequestedBatch:
    """A requested micro-batch, as Airflow stores it in the arguments of the deferred task.

    Attributes:
        connector: the connector that runs; for a backfill, the temporary one.
        application: the shared application.
        id: the batch's id.
    """

    connector: str
    application: str
    id: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON can hold them."""
        return {"connector": self.connector, "application": self.application, "id": self.id}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> RequestedBatch:
        """Return the batch that ``to_dict`` wrote."""
        return cls(str(stored["connector"]), str(stored["application"]), str(stored["id"]))


@dataclass(frozen=True, slots=True)
class BatchSeen:
    """A batch according to the internal topics.

    Attributes:
        report: its last report.
        superseded: whether another batch of the connector has been requested since.
        after: the connector's progress now; None if the connector does not exist.
    """

    report: BatchReport | None
    superseded: bool
    after: ConnectorProgress | None

    @property
    def ended(self) -> BatchReport | None:
        """Return the final report."""
        return self.report if self.report is not None and self.report.state is not BatchState.RUNNING else None


class WarmBatch(Protocol):
    """One micro-batch, from its request to its report. Every method raises ConnectError if Kafka does not answer."""

    def request(self) -> None:
        """Request the batch."""

    def cancel(self) -> None:
        """Make the application drain the batch, or not start it."""

    def await_end(self, seconds: float, interrupted: Callable[[], bool]) -> bool:
        """Wait at most ``seconds`` for the final report; return whether it came."""


class KafkaWarmBatch:
    """``WarmBatch`` on a real Kafka cluster: a context manager that holds the connections."""

    def __init__(self, worker: WorkerConfig, batch: RequestedBatch) -> None:
        self._worker = worker
        self._batch = batch
        self._store = KafkaStatusBackingStore(worker, reading=False)
        self._tail: TopicTail | None = None

    def __enter__(self) -> KafkaWarmBatch:
        self._store.start()
        topic = self._worker.status_topic
        partitions = partition_count(self._store.admin, topic)
        if not partitions:
            raise ConnectError(f"Topic {topic} does not exist any more. Start the application of the connector again.")
        place = TopicPartition(topic, partition_of(report_key(self._batch.connector), partitions))
        self._tail = TopicTail(self._worker, f"{self._worker.group_id}-batches", end_offsets(self._store.admin, [place]))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._tail is not None:
            self._tail.close()
        self._store.stop()

    def request(self) -> None:
        self._store.put_message(request_key(self._batch.connector), self._batch.id.encode())

    def cancel(self) -> None:
        self._store.put_message(cancellation_key(self._batch.connector), self._batch.id.encode())

    def await_end(self, seconds: float, interrupted: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + seconds
        while self._tail is not None and time.monotonic() < deadline and not interrupted():
            for record in self._tail.poll(_POLL_SECONDS):
                if record.key == report_key(self._batch.connector) and record.value is not None:
                    report = decode_report(record.value)
                    if report.id == self._batch.id and report.state is not BatchState.RUNNING:
                        return True
        return False


def cancel(worker: WorkerConfig, batch: RequestedBatch) -> None:
    """Cancel a batch, from any process. Raises ConnectError."""
    store = KafkaStatusBackingStore(worker, reading=False)
    store.start()
    try:
        store.put_message(cancellation_key(batch.connector), batch.id.encode())
    finally:
        store.stop()


def forget(worker: WorkerConfig, connector: str) -> None:
    """Remove the messages about a connector that will have no more batches. Raises ConnectError."""
    store = KafkaStatusBackingStore(worker, reading=False)
    store.start()
    try:
        for key in (request_key(connector), cancellation_key(connector), report_key(connector)):
            store.put_message(key, None)
    finally:
        store.stop()

"""Holds a connector's lease: the transactional id that lets one driver at a time write the connector's statuses.

A driver takes the lease by fencing the id (``<group.id>-<connector>-driver``). Kafka then refuses every write of the driver
that held it before. Status records carry a generation, which each new holder increases by one. The status topic, not the
producer, says who holds the lease: a holder may close its producer and fence the id again, unless it finds a status of a later
generation by another driver.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence

from sluiceway.api.task import TopicPartition
from sluiceway.backoff import Backoff
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, FencedError, InternalTopicError, KafkaClientError
from sluiceway.herder.states import Clock
from sluiceway.kafka.errors import TOO_LARGE
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.kafka.topic_writer import Headers, ProducerRecord
from sluiceway.metrics.registry import registry
from sluiceway.storage.codec import ConnectorStatusRecord, TaskStatusRecord, decode_status_record
from sluiceway.storage.model import State, Status
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.task_commands import is_newer

log = logging.getLogger(__name__)

_CLUSTER_DOWN_SECONDS = 1800.0  # afterwards the driver ends, and Airflow starts it again
_RETRY_SECONDS = (1.0, 10.0)  # first and longest delay between two attempts
_IDLE_SECONDS = 3.0  # after which the producer is closed: it costs four threads, eight file descriptors and half a megabyte
_TAKEOVER_SECONDS = 2.0  # within which a driver that has fenced the id writes its first status
_TAKEOVER_POLL_SECONDS = 0.1
_FENCED_TIMES = 3  # in one write, after which this driver gives up


class _TakenOverError(FencedError):
    """The status topic shows a later driver."""


class ConnectorLease:
    """One connector's lease. Runs on the driver, on one thread; ``stop_waiting`` is callable from any thread.

    Args:
        connector: the connector's name.
        worker: names the cluster, the group and, as principal, the worker itself.
        worker_id: identifies this driver in status records.
        status: shows which generation of the connector wrote its status last.
    """

    def __init__(self, connector: str, worker: WorkerConfig, worker_id: str, status: KafkaStatusBackingStore) -> None:
        self.generation = 0  # until ``acquire``
        self._connector = connector
        self._worker_id = worker_id
        self._status = status
        self._heartbeat_timeout = worker.number("sluiceway.heartbeat.timeout.ms")
        self._writer = FencedWriter(worker, f"{worker.group_id}-{connector}-driver", f"{worker.group_id}-statuses")
        self._stopping = threading.Event()
        self._written = 0
        """The highest generation in a status that this driver has written, or that was there before."""
        self._used_at = 0.0

    def acquire(self) -> None:
        """Fence the previous driver and set ``generation`` to one more than the latest in the status topic."""
        self._writer.fence()
        self._status.refresh()
        before = self._status.connector(self._connector)
        if before is not None and before.worker_id != self._worker_id and self._sends_heartbeats(before):
            registry.lease_taken_over(self._connector)
            log.warning(
                "Connector %s: took the lease from %s, whose heartbeats had not stopped. That driver was killed, or two run this "
                "connector; the earlier one ends now.",
                self._connector,
                before.worker_id,
            )
        self._written = max((status.generation for status in self._statuses()), default=0)
        self.generation = self._written + 1
        self._used_at = time.monotonic()

    def close(self) -> None:
        self._writer.close()

    def close_if_idle(self) -> bool:
        """Close the producer if nothing has been written for some seconds, and return whether it was closed just now.

        The next write fences the id again.
        """
        idle = self._writer.active and time.monotonic() - self._used_at >= _IDLE_SECONDS
        if idle:
            self._writer.close()
        return idle

    @property
    def seconds_left(self) -> float:
        """Seconds until ``close_if_idle`` closes the producer."""
        return max(0.0, self._used_at + _IDLE_SECONDS - time.monotonic()) if self._writer.active else float("inf")

    def stop_waiting(self) -> None:
        """Make ``write`` fail at once while the cluster is unreachable, instead of trying again."""
        self._stopping.set()

    def wait(self, seconds: float) -> bool:
        """Wait, at most until ``stop_waiting``; return whether that has been called."""
        return self._stopping.wait(seconds)

    def verify(self) -> None:
        """Raise FencedError if the status topic, as far as it has been read, shows a later driver. Sends no request."""
        for status in self._statuses():
            if is_newer(status, self._written, self._worker_id):
                raise _TakenOverError(f"{status.worker_id} has taken connector {self._connector} over.")

    @property
    def has_statuses_of_connect(self) -> bool:
        """Whether the status topic, as far as it has been read, holds a status that a Kafka Connect worker wrote."""
        return any(status.of_connect for status in self._statuses())

    def write(self, records: Sequence[ProducerRecord], headers: Headers = ()) -> Mapping[TopicPartition, int]:
        """Write records in one transaction, trying again while the cluster is unreachable; see ``FencedWriter.write``.

        Raises FencedError after a takeover, InternalTopicError, and ConnectError for a record that is too large, and once the
        cluster has been unreachable for half an hour or the driver must stop.
        """
        deadline = time.monotonic() + _CLUSTER_DOWN_SECONDS
        backoff = Backoff(*_RETRY_SECONDS)
        fenced = 0
        while True:
            try:
                return self._write(records, headers, after_fencing=fenced > 0)
            except (InternalTopicError, _TakenOverError):
                raise
            except FencedError:
                fenced += 1
                if fenced == _FENCED_TIMES:
                    raise
                continue
            except ConnectError as error:
                is_refused = isinstance(error, KafkaClientError) and error.code in TOO_LARGE
                if is_refused or self._stopping.is_set() or time.monotonic() >= deadline:
                    raise
                delay = backoff.next()
                log.warning("[%s|worker] Cannot write its status, trying again in %g s: %s", self._connector, delay, error)
            self._stopping.wait(delay)

    def _write(self, records: Sequence[ProducerRecord], headers: Headers, *, after_fencing: bool) -> Mapping[TopicPartition, int]:
        if after_fencing:
            self._await_takeover()
        if not self._writer.active:
            self._reacquire()
        ends = self._writer.write(records, headers)
        self._written = max(self._written, *(_generation(record) for record in records))
        self._used_at = time.monotonic()
        return ends

    def _reacquire(self) -> None:
        """Fence the id again, unless another driver has taken the connector over in the meantime."""
        self._verify_newest()
        self._writer.fence()
        self._verify_newest()  # a driver that was fenced by this may have written its status just before

    def _verify_newest(self) -> None:
        self._status.refresh()
        self.verify()

    def _await_takeover(self) -> None:
        """Raise FencedError once the driver that has fenced the id writes its status.

        Return if none does: that driver has ended, or it is an earlier one that has fenced the id again before it could read of
        this driver.
        """
        deadline = time.monotonic() + _TAKEOVER_SECONDS
        while time.monotonic() < deadline:
            self._verify_newest()
            time.sleep(_TAKEOVER_POLL_SECONDS)

    def _sends_heartbeats(self, status: Status) -> bool:
        clock = Clock(int(time.time() * 1000), self._heartbeat_timeout)
        return status.state in (State.RUNNING, State.RESTARTING) and not clock.stale(status)

    def _statuses(self) -> list[Status]:
        own = self._status.connector(self._connector)
        return [*([own] if own is not None else []), *self._status.tasks(self._connector).values()]


def _generation(record: ProducerRecord) -> int:
    """Return the generation of a status record, 0 for any other."""
    _, key, value = record
    change = decode_status_record(key, value)
    if not isinstance(change, (ConnectorStatusRecord, TaskStatusRecord)) or change.status is None:
        return 0
    return change.status.generation

"""Holds a connector's lease: the transactional id that lets one driver at a time write the connector's statuses.

A driver takes the lease by fencing the id (``<group.id>-<connector>-driver``). Kafka then refuses every write of the driver
that held it before. Status records carry a generation, which each new holder increases by one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, FencedError, InternalTopicError
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.kafka.topic_writer import ProducerRecord
from sluiceway.kafka.worker_group import connect_workers
from sluiceway.storage.model import Status
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.task_commands import is_newer

log = logging.getLogger(__name__)

_CONNECT_LEAVE_SECONDS = 12.0  # a killed Kafka Connect worker stays a group member until its session times out (10 s)
_CLUSTER_DOWN_SECONDS = 1800.0  # afterwards the driver ends, and Airflow starts it again
_RETRY_SECONDS = (1.0, 10.0)  # first and longest delay between two attempts


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
        self._worker = worker
        self._worker_id = worker_id
        self._status = status
        self._writer = FencedWriter(worker, f"{worker.group_id}-{connector}-driver", f"{worker.group_id}-statuses")
        self._stopping = threading.Event()

    def acquire(self) -> None:
        """Fence the previous driver and set ``generation`` to one more than the latest in the status topic.

        Raises FencedError if Kafka Connect's own workers run the connectors of this group.
        """
        self.refuse_beside_connect(patience=_CONNECT_LEAVE_SECONDS)
        self._writer.fence()
        self._status.refresh()
        self.generation = 1 + max((status.generation for status in self._statuses()), default=0)

    def close(self) -> None:
        self._writer.close()

    def stop_waiting(self) -> None:
        """Make ``write`` fail at once while the cluster is unreachable, instead of trying again."""
        self._stopping.set()

    def write(self, records: Sequence[ProducerRecord]) -> Mapping[TopicPartition, int]:
        """Write records in one transaction, trying again while the cluster is unreachable; see ``FencedWriter.write``.

        Raises FencedError after a takeover, InternalTopicError, and ConnectError once the cluster has been unreachable for
        half an hour or the driver must stop.
        """
        deadline = time.monotonic() + _CLUSTER_DOWN_SECONDS
        delay, longest = _RETRY_SECONDS
        while True:
            try:
                if not self._writer.active:
                    self._reacquire()
                return self._writer.write(records)
            except (FencedError, InternalTopicError):
                raise
            except ConnectError as error:
                if self._stopping.is_set() or time.monotonic() >= deadline:
                    raise
                log.warning("[%s|worker] Cannot write its status, trying again in %g s: %s", self._connector, delay, error)
            self._stopping.wait(delay)
            delay = min(delay * 2, longest)

    def refuse_beside_connect(self, patience: float = 0.0) -> None:
        """Raise FencedError while Kafka Connect workers are members of this group: they ignore the lease.

        A worker that has just left may stay a member, so wait up to ``patience`` seconds for the group to become empty.
        """
        deadline = time.monotonic() + patience
        while workers := connect_workers(self._status.admin, self._worker.group_id):
            if time.monotonic() >= deadline or self._stopping.wait(_RETRY_SECONDS[0]):
                raise FencedError(
                    f"Kafka Connect runs connector {self._connector}: {len(workers)} worker(s) with group.id="
                    f"{self._worker.group_id} are up, on {', '.join(sorted(set(workers)))}. Stop them, or give this one "
                    "another group.id and topics of its own."
                )

    def _reacquire(self) -> None:
        """Fence the id again after a failed write, unless another driver has taken the connector over in the meantime."""
        self._status.refresh()
        newer = [status for status in self._statuses() if is_newer(status, self.generation, self._worker_id)]
        if newer:
            raise FencedError(f"{newer[0].worker_id} has taken connector {self._connector} over.")
        self._writer.fence()

    def _statuses(self) -> list[Status]:
        own = self._status.connector(self._connector)
        return [*([own] if own is not None else []), *self._status.tasks(self._connector).values()]

"""Reads and changes the ledger of a connector's intervals in the offsets topic. Runs in Airflow tasks and in the API server."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConflictError, FencedError
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.storage.interfaces import OffsetBackingStore
from sluiceway.storage.intervals import Ledger, Update, ledger_name
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore

log = logging.getLogger(__name__)

T = TypeVar("T")

_ATTEMPTS = 20
_JITTER_SECONDS = 0.1


def read_ledger(store: OffsetBackingStore, connector: str) -> Ledger:
    """Return a connector's ledger as it is now. ``store`` is that of the worker's offsets topic, and started."""
    return Ledger.of(store.all(ledger_name(connector)))


class IntervalLedger:
    """One connector's ledger. Several runs may change it at once: each change is decided on the newest state.

    Raises KafkaClientError if Kafka does not answer.
    """

    def __init__(self, worker: WorkerConfig, connector: str, store: KafkaOffsetBackingStore) -> None:
        self._name = ledger_name(connector)
        self._connector = connector
        self._store = store
        self._writer = FencedWriter(worker, f"{worker.group_id}-{connector}-intervals", f"{worker.group_id}-intervals")

    def read(self) -> Ledger:
        """Return the ledger as it is now."""
        return read_ledger(self._store, self._connector)

    def change(self, decide: Callable[[Ledger], tuple[T, Sequence[Update]]]) -> T:
        """Write the updates that ``decide`` returns for the newest state, all or nothing; return the other thing that it returns.

        Raises what ``decide`` raises, and ConflictError if others change the ledger all the time.
        """
        for attempt in range(_ATTEMPTS):
            try:
                self._writer.fence()
                decided, updates = decide(self.read())
                if updates:
                    self._writer.write(self._store.for_transaction(self._name, updates))
                return decided
            except FencedError:
                log.debug("Another run has changed the intervals of %s (attempt %d)", self._connector, attempt + 1)
                time.sleep(random.uniform(0, _JITTER_SECONDS * (attempt + 1)))  # noqa: S311 (not a secret)
            finally:
                self._writer.close()
        raise ConflictError(
            f"Other runs have changed the intervals of connector {self._connector} {_ATTEMPTS} times while this change was being "
            "made. Nothing was written. Try again."
        )

"""Stores the source offsets of a connector with its own offsets topic, with backups in the worker's topic."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sluiceway.api.records import Offset, Partition
from sluiceway.errors import ConnectError
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore

log = logging.getLogger(__name__)

_Offsets = Sequence[tuple[Partition, "Offset | None"]]


class ConnectorOffsetBackingStore:
    """Implements ``OffsetBackingStore`` and ``TransactionalOffsets`` on two topics, as Connect does. Runs in any process.

    ``own`` is authoritative. ``shared``, the worker's topic, supplies offsets that ``own`` lacks, so that
    ``offsets.storage.topic`` can be set and removed at any time. A failed backup is only logged, except for tombstones: an
    offset removed from ``own`` alone would come back from ``shared``, so tombstones are written to ``shared`` first.
    Thread-safe.
    """

    def __init__(self, own: KafkaOffsetBackingStore, shared: KafkaOffsetBackingStore) -> None:
        self._own = own
        self._shared = shared

    def start(self) -> None:
        """Check or create both topics and read them to their ends. Raises InternalTopicError, KafkaClientError."""
        self._own.start()
        try:
            self._shared.start()
        except BaseException:
            self._own.stop()
            raise

    def stop(self) -> None:
        self._own.stop()
        self._shared.stop()

    def get(self, connector: str, partitions: Sequence[Partition]) -> list[Offset | None]:
        """Return the stored offsets in the order of ``partitions``. Raises DataError for one that cannot be read."""
        found = self._own.get(connector, partitions)
        missing = [index for index, offset in enumerate(found) if offset is None]
        if missing:
            backups = self._shared.get(connector, [partitions[index] for index in missing])
            for index, backup in zip(missing, backups, strict=True):
                found[index] = backup
        return found

    def put(self, connector: str, offsets: _Offsets) -> None:
        """Store offsets and wait until they are acknowledged. Raises KafkaClientError after 30 s."""
        self._forget_backups(connector, offsets)
        self._own.put(connector, offsets)
        self.committed(connector, offsets)

    def for_transaction(self, connector: str, offsets: _Offsets) -> list[tuple[str, bytes, bytes | None]]:
        """Return the records as ``TransactionalOffsets`` does.

        Raises KafkaClientError if a tombstone cannot be written to the worker's topic.
        """
        records = self._own.for_transaction(connector, offsets)
        self._forget_backups(connector, offsets)
        return records

    def committed(self, connector: str, offsets: _Offsets) -> None:
        """Back up offsets that are committed in the connector's own topic."""
        backups = [(partition, offset) for partition, offset in offsets if offset is not None]
        if not backups:
            return
        try:
            self._shared.put(connector, backups)
        except ConnectError as error:
            log.warning("[%s] Cannot back up stored offsets to the worker's offsets topic: %s", connector, error)

    def all(self, connector: str) -> list[tuple[Partition, Offset]]:
        """Read to the topics' ends and return every stored partition of a connector with its offset."""
        own = self._own.all(connector)
        known = {key for _, key, _ in self._own.for_transaction(connector, own)}
        backups = self._shared.all(connector)
        keys = [key for _, key, _ in self._own.for_transaction(connector, backups)]
        return own + [backup for key, backup in zip(keys, backups, strict=True) if key not in known]

    def _forget_backups(self, connector: str, offsets: _Offsets) -> None:
        removed = [(partition, offset) for partition, offset in offsets if offset is None]
        if removed:
            self._shared.put(connector, removed)

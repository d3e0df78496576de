"""Reads stored offsets for a source connector on the driver. Connects when the connector asks for the first time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager

from sluiceway.api import Offset, Partition
from sluiceway.errors import ConnectError
from sluiceway.storage.interfaces import OffsetBackingStore

OpenOffsets = Callable[[], AbstractContextManager[OffsetBackingStore]]
"""Opens the store that has a connector's offsets."""


class ConnectorOffsetReader:
    """Implements ``OffsetStorageReader`` for one connector. Thread-safe."""

    def __init__(self, connector: str, open_offsets: OpenOffsets) -> None:
        self._connector = connector
        self._open = open_offsets
        self._resources = ExitStack()
        self._store: OffsetBackingStore | None = None
        self._closed = False
        self._lock = threading.Lock()

    def offset(self, partition: Partition) -> Offset | None:
        return self.offsets([partition])[0]

    def offsets(self, partitions: Sequence[Partition]) -> list[Offset | None]:
        """Return the offset of each partition, None without one. Raises ConnectError once the connector has stopped."""
        with self._lock:
            if self._closed:
                raise ConnectError(f"Connector {self._connector} has stopped, so it can read no offsets.")
            if self._store is None:
                self._store = self._resources.enter_context(self._open())
            return self._store.get(self._connector, partitions)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._resources.close()


@contextmanager
def started(store: OffsetBackingStore) -> Iterator[OffsetBackingStore]:
    """Start a store, and stop it at the end."""
    store.start()
    try:
        yield store
    finally:
        store.stop()

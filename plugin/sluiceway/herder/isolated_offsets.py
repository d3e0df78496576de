"""Reads and changes the offsets of a connector for a server that resolves no references and runs no connectors' code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sluiceway.api import OffsetTarget
from sluiceway.config.connector import NAME
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder.isolated import Isolated
from sluiceway.herder.offset_edits import OffsetEdit
from sluiceway.herder.offset_targets import FoundOffset, PartitionChoice
from sluiceway.herder.offsets import ConnectorOffsets, OpenGroups, kafka_groups
from sluiceway.storage.interfaces import OffsetBackingStore
from sluiceway.storage.model import ConnectorEntry
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore


class IsolatedOffsets:
    """Offers what ``ConnectorOffsets`` does.

    Reads what the worker's rights reach. Everything else needs the connector's rights or code, and runs in another process.
    """

    def __init__(
        self,
        entry: ConnectorEntry,
        worker: WorkerConfig,
        store: OffsetBackingStore | None,
        open_groups: OpenGroups,
        isolated: Isolated,
    ) -> None:
        self._config = {**(entry.config or {}), NAME: entry.name}
        self._worker = worker
        self._isolated = isolated
        self._plain = ConnectorOffsets(entry, worker, store, open_groups, resolves=False)

    @property
    def elsewhere(self) -> str:
        """Where the position is instead, for users; empty if offsets are the position."""
        return self._plain.elsewhere

    def read(self) -> list[OffsetEdit]:
        """Return every partition with its offset."""
        if self._plain.at_worker:
            return self._plain.read()
        return [(partition, offset) for partition, offset in self._call(_read)]

    def find(self, target: OffsetTarget, choice: PartitionChoice) -> list[FoundOffset]:
        """Return the offsets of a target in the chosen partitions. Those of a source are found by its own code."""
        if self._plain.of_sink and self._plain.at_worker:
            return self._plain.find(target, choice)
        return [FoundOffset(*each) for each in self._call(_find, target, choice)]

    def alter(self, edits: Sequence[OffsetEdit]) -> str:
        """Set offsets, which the connector's code checks, and return the message for the user."""
        return str(self._call(_alter, list(edits)))

    def reset(self) -> str:
        """Remove all offsets, which the connector's code checks, and return the message for the user."""
        return str(self._call(_reset))

    def _call(self, function: Any, *arguments: Any) -> Any:
        return self._isolated(function, self._config, self._worker, *arguments)


def _read(config: Mapping[str, str], worker: WorkerConfig) -> list[OffsetEdit]:
    with _opened(config, worker) as offsets:
        return offsets.read()


def _find(config: Mapping[str, str], worker: WorkerConfig, target: OffsetTarget, choice: PartitionChoice) -> list[FoundOffset]:
    with _opened(config, worker) as offsets:
        return offsets.find(target, choice)


def _alter(config: Mapping[str, str], worker: WorkerConfig, edits: Sequence[OffsetEdit]) -> str:
    with _opened(config, worker) as offsets:
        return offsets.alter(edits)


def _reset(config: Mapping[str, str], worker: WorkerConfig) -> str:
    with _opened(config, worker) as offsets:
        return offsets.reset()


@contextmanager
def _opened(config: Mapping[str, str], worker: WorkerConfig) -> Iterator[ConnectorOffsets]:
    """Return the offsets with the connector's rights. A source's store is started here."""
    store = KafkaOffsetBackingStore(worker, brief=True)
    offsets = ConnectorOffsets(ConnectorEntry(config[NAME], config), worker, store, kafka_groups)
    if offsets.of_sink:
        yield offsets
        return
    try:
        store.start()
        yield offsets
    finally:
        store.stop()

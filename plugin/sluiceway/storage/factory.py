"""Opens the stores that a mode works with, together or one at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.storage.config_backing_store import KafkaConfigStore
from sluiceway.storage.connector_offsets import ConnectorOffsetStore
from sluiceway.storage.interfaces import ConfigStore, OffsetStore, StatusStore
from sluiceway.storage.memory import MemoryConfigStore, MemoryStatusStore
from sluiceway.storage.offset_backing_store import KafkaOffsetStore
from sluiceway.storage.offsets_file import FileOffsetStore
from sluiceway.storage.status_backing_store import KafkaStatusStore

OFFSETS_FILE = "offset.storage.file.filename"
OFFSETS_TOPIC = "offsets.storage.topic"


@dataclass(frozen=True, slots=True)
class Stores:
    """The three stores. A context manager: starts them on entry, stops them on exit."""

    config: ConfigStore
    status: StatusStore
    offsets: OffsetStore

    def start(self) -> None:
        """Start all three; if one refuses, those started before are stopped and its error leaves."""
        started: list[ConfigStore | StatusStore | OffsetStore] = []
        try:
            for store in (self.config, self.status, self.offsets):
                started.append(store)
                store.start()
        except BaseException:
            for store in reversed(started):
                store.stop()
            raise

    def stop(self) -> None:
        for store in (self.offsets, self.status, self.config):
            store.stop()

    def __enter__(self) -> Stores:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()


def open_stores(worker: WorkerConfig, *, standalone: bool = False) -> Stores:
    """Return the stores of a mode, not started yet: Kafka's three topics, or memory and a file for standalone mode."""
    if standalone:
        return Stores(MemoryConfigStore(), MemoryStatusStore(), open_offsets_file(worker))
    return Stores(KafkaConfigStore(worker), KafkaStatusStore(worker), KafkaOffsetStore(worker))


def open_source_offsets(worker: WorkerConfig, config: Mapping[str, str]) -> KafkaOffsetStore | ConnectorOffsetStore:
    """Return distributed mode's offset store for one source connector, not started yet: ``offsets.storage.topic`` counts.

    For executors (a task's offsets) and for whoever shows or changes a connector's offsets.
    """
    topic = config.get(OFFSETS_TOPIC) or worker.offset_topic
    shared = KafkaOffsetStore(worker)
    return shared if topic == worker.offset_topic else ConnectorOffsetStore(KafkaOffsetStore(worker, topic), shared)


def open_offsets_file(worker: WorkerConfig) -> FileOffsetStore:
    """Return standalone mode's offset store, not started yet. Raises ConfigError if the worker names no file."""
    if not worker.values[OFFSETS_FILE]:
        raise ConfigError(f'Missing required configuration "{OFFSETS_FILE}" which has no default value.')
    return FileOffsetStore(Path(worker.text(OFFSETS_FILE)))

"""Creates the stores of distributed and standalone mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from sluiceway.config.source_keys import OFFSETS_TOPIC
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.connector_offset_backing_store import ConnectorOffsetBackingStore
from sluiceway.storage.file_offset_backing_store import FileOffsetBackingStore
from sluiceway.storage.interfaces import ConfigBackingStore, OffsetBackingStore, StatusBackingStore
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.offset_backing_store import KafkaOffsetBackingStore
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore

OFFSETS_FILE = "offset.storage.file.filename"


@dataclass(frozen=True, slots=True)
class Stores:
    """The three stores of a mode. As a context manager, starts them on entry and stops them on exit."""

    config: ConfigBackingStore
    status: StatusBackingStore
    offsets: OffsetBackingStore

    def start(self) -> None:
        """Start all three stores. If one fails, stop those already started and raise its error."""
        started: list[ConfigBackingStore | StatusBackingStore | OffsetBackingStore] = []
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


def open_stores(worker: WorkerConfig, *, standalone: bool = False, brief: bool = False) -> Stores:
    """Return the stores of a mode without starting them: on Kafka, or in memory and a file for standalone mode.

    ``brief``: they are open for one reading or change, such as those of an Airflow task.
    """
    if standalone:
        return Stores(MemoryConfigBackingStore(), MemoryStatusBackingStore(), open_offsets_file(worker))
    return Stores(
        KafkaConfigBackingStore(worker, brief=brief),
        KafkaStatusBackingStore(worker, brief=brief),
        KafkaOffsetBackingStore(worker, brief=brief),
    )


@contextmanager
def open_driver_stores(worker: WorkerConfig) -> Iterator[Stores]:
    """Start a driver's stores on Kafka, and stop them on exit. Tasks read and write the offsets, so its topic is only checked."""
    offsets = KafkaOffsetBackingStore(worker)
    stores = Stores(KafkaConfigBackingStore(worker), KafkaStatusBackingStore(worker), offsets)
    with ExitStack() as started:
        for store in (stores.config, stores.status):
            started.callback(store.stop)
            store.start()
        offsets.ensure_topic()
        yield stores


def open_source_offsets(worker: WorkerConfig, config: Mapping[str, str]) -> KafkaOffsetBackingStore | ConnectorOffsetBackingStore:
    """Return distributed mode's offset store of one source connector without starting it.

    Follows the connector's ``offsets.storage.topic``. Tasks on executors and the offsets API use it.
    """
    topic = config.get(OFFSETS_TOPIC) or worker.offset_topic
    shared = KafkaOffsetBackingStore(worker)
    return shared if topic == worker.offset_topic else ConnectorOffsetBackingStore(KafkaOffsetBackingStore(worker, topic), shared)


def open_offsets_file(worker: WorkerConfig) -> FileOffsetBackingStore:
    """Return standalone mode's offset store without starting it. Raises ConfigError if the worker names no file."""
    if not worker.values[OFFSETS_FILE]:
        raise ConfigError(f'Missing required configuration "{OFFSETS_FILE}" which has no default value.')
    return FileOffsetBackingStore(Path(worker.text(OFFSETS_FILE)))

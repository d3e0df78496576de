"""The records of the status topic through which Airflow ends a driver that is no child of its task, such as one in a cluster.

Each connector has one, whose value is the worker id of the driver that must drain and end. So a driver that a later task has
started runs on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from sluiceway.config.worker import WorkerConfig
from sluiceway.storage.codec import HOST_PREFIX
from sluiceway.storage.interfaces import StatusBackingStore
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore

_END = f"{HOST_PREFIX}end-"


def request_end(worker: WorkerConfig, connector: str, driver: str) -> None:
    """Make a connector's driver drain and end, from any process. Raises ConnectError.

    Args:
        worker: names the cluster.
        connector: the connector's name.
        driver: the driver's worker id.
    """
    store = KafkaStatusBackingStore(worker, reading=False)
    store.start()
    try:
        store.put_message(f"{_END}{connector}".encode(), driver.encode())
    finally:
        store.stop()


class EndRequests:
    """The last request of each connector, as a driver reads them. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._drivers: dict[str, str] = {}

    def follow(self, status: StatusBackingStore, changed: Callable[[], None]) -> None:
        """Read the requests, those that are there and those that follow; call ``changed``, on any thread, after each."""

        def read(key: bytes, value: bytes | None) -> None:
            name = key.decode()
            if name.startswith(_END):
                with self._lock:
                    self._drivers[name[len(_END) :]] = (value or b"").decode()
                changed()

        if isinstance(status, KafkaStatusBackingStore):
            status.on_message(read)

    def concern(self, connector: str, driver: str) -> bool:
        """Return whether the driver with this worker id must end."""
        with self._lock:
            return self._drivers.get(connector) == driver

"""REST servers over stores in memory, and calls of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx

from sluiceway.api import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.herder import Herder
from sluiceway.rest.server import RestServer
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore

FREE_PORT = "http://127.0.0.1:0"
PARTITION = TopicPartition("t", 0)

Start = Callable[..., RestServer]


def new_server(listeners: str = FREE_PORT, herder: Herder | None = None) -> RestServer:
    worker = WorkerConfig.of({"listeners": listeners})
    herder = herder or Herder(worker, MemoryConfigBackingStore(), MemoryStatusBackingStore())
    return RestServer(worker, lambda: herder)


def status_of_connectors(address: str, **options: Any) -> int:
    """Return the HTTP status of ``GET /connectors``."""
    return httpx.get(f"{address}/connectors", **options).status_code

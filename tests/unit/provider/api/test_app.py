"""Tests of the connection that an API server process opens in the background."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.errors import ConnectError
from sluiceway.herder.loggers import Loggers
from sluiceway.provider.api import app as api
from sluiceway.provider.settings import Settings
from sluiceway.storage import memory
from support.eventually import eventually


def test_a_failed_attempt_closes_what_it_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "worker.properties"
    file.write_text("bootstrap.servers=nowhere:1\n")
    opened: list[Any] = []

    def open_stores(worker: object) -> Any:
        stores = SimpleNamespace(
            config=memory.MemoryConfigBackingStore(),
            status=memory.MemoryStatusBackingStore(),
            offsets=None,
            stops=0,
            start=lambda: None,
        )
        stores.stop = lambda: setattr(stores, "stops", stores.stops + 1)
        opened.append(stores)
        return stores

    def probe(worker: object, client_id: str) -> None:
        if len(opened) < 3:
            raise ConnectError("Kafka went away again")

    monkeypatch.setattr(api, "open_stores", open_stores)
    monkeypatch.setattr(api, "KafkaProbe", probe)
    monkeypatch.setattr(api, "Dashboard", lambda *_: SimpleNamespace(start=lambda: None, stop=lambda: None))
    monkeypatch.setattr(api, "_MIN_RETRY_SECONDS", 0.01)
    backend = api.Backend(Settings(worker_properties=file, mirror_enabled=False), Loggers())
    backend.start()
    eventually(lambda: backend._connection is not None, what="the third attempt")
    assert [stores.stops for stores in opened] == [1, 1, 0]
    assert backend.herder().offline, "the API server has secrets that are not for connectors' authors"
    backend.stop()
    assert [stores.stops for stores in opened] == [1, 1, 1]
    with pytest.raises(ConnectError, match="No connection to Kafka"):
        backend.herder()

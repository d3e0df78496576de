from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConflictError, ConnectError, FencedError, KafkaClientError
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore


class Writer:
    """A writer that another one fences a number of times in a row."""

    def __init__(self, times_fenced: int, error: ConnectError | None = None) -> None:
        self.times_fenced, self.error = times_fenced, error
        self.active = False
        self.written: list[Sequence[Any]] = []

    def fence(self) -> None:
        self.active = True

    def write(self, records: Sequence[Any], _headers: Sequence[Any] = ()) -> dict[Any, int]:
        if self.error is not None:
            raise self.error
        if self.times_fenced:
            self.times_fenced -= 1
            self.active = False
            raise FencedError("fenced")
        self.written.append(records)
        return {}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluiceway.storage.config_backing_store.time.sleep", lambda _seconds: None)


def store_with(writer: Writer) -> KafkaConfigBackingStore:
    store = KafkaConfigBackingStore(WorkerConfig.of({}))
    store._writer = writer  # type: ignore[assignment]
    store._log = SimpleNamespace(  # type: ignore[assignment]
        check=lambda: None, read_to_end=lambda _timeout: None, wait_for=lambda _ends: None
    )
    return store


def test_a_write_is_retried_after_being_fenced() -> None:
    writer = Writer(times_fenced=9)
    store_with(writer).put_connector("a", {})
    assert len(writer.written) == 1


def test_a_write_that_is_always_fenced_raises_a_conflict() -> None:
    writer = Writer(times_fenced=10)
    with pytest.raises(ConflictError, match="10 times"):
        store_with(writer).put_connector("a", {})
    assert writer.written == []


def test_a_write_of_unknown_outcome_is_not_repeated() -> None:
    with pytest.raises(KafkaClientError):
        store_with(Writer(0, KafkaClientError("no answer", "_TIMED_OUT"))).put_connector("a", {})


def test_a_store_that_is_not_started_raises_an_error() -> None:
    with pytest.raises(ConnectError, match="is not started"):
        KafkaConfigBackingStore(WorkerConfig.of({})).put_connector("a", {})

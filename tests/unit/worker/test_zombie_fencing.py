"""Fencing of the exactly-once source tasks of earlier generations."""

from __future__ import annotations

import threading

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConflictError, ConnectError, FencedError, KafkaClientError
from sluiceway.storage.memory import MemoryConfigBackingStore
from sluiceway.storage.model import ConnectorEntry
from sluiceway.worker import zombie_fencing
from sluiceway.worker.zombie_fencing import fence_earlier_tasks, fence_source_tasks

FILE_SOURCE = {"connector.class": "FileStreamSource"}
ENABLED = WorkerConfig.of({"group.id": "g", "exactly.once.source.support": "enabled"})


class Writers:
    """Stands in for FencedWriter. ``fence`` raises the ``errors`` of its id, one at each call."""

    def __init__(self) -> None:
        self.fenced: list[str] = []
        self.closed = 0
        self.errors: dict[str, list[ConnectError]] = {}
        self._lock = threading.Lock()

    def __call__(self, _worker: WorkerConfig, identity: str, _client_id: str) -> Writer:
        return Writer(self, identity)


class Writer:
    def __init__(self, writers: Writers, identity: str) -> None:
        self._writers, self._id = writers, identity

    def fence(self) -> None:
        if errors := self._writers.errors.get(self._id):
            raise errors.pop(0)
        self._writers.fenced.append(self._id)

    def close(self) -> None:
        self._writers.closed += 1


@pytest.fixture
def writers(monkeypatch: pytest.MonkeyPatch) -> Writers:
    made = Writers()
    monkeypatch.setattr(zombie_fencing, "FencedWriter", made)
    return made


@pytest.fixture
def store() -> MemoryConfigBackingStore:
    made = MemoryConfigBackingStore()
    made.put_connector("c", FILE_SOURCE)
    made.put_task_configs("c", [{"t": "0"}, {"t": "1"}])
    return made


def entry(store: MemoryConfigBackingStore) -> ConnectorEntry:
    found = store.snapshot().entry("c")
    assert found is not None
    return found


def test_all_earlier_tasks_are_fenced_and_the_new_task_count_is_written(
    writers: Writers, store: MemoryConfigBackingStore
) -> None:
    fence_earlier_tasks(ENABLED, store, "c")
    assert writers.fenced == []  # there were no earlier tasks
    store.put_task_configs("c", [{"t": "0"}, {"t": "1"}, {"t": "2"}])
    fence_earlier_tasks(ENABLED, store, "c")
    assert sorted(writers.fenced) == ["g-c-0", "g-c-1"]
    assert (entry(store).task_count, entry(store).pending_fencing) == (3, False)
    fence_earlier_tasks(ENABLED, store, "c")
    assert len(writers.fenced) == writers.closed == 2


def test_a_single_task_after_a_single_task_fences_itself(writers: Writers, store: MemoryConfigBackingStore) -> None:
    for config in ({"a": "1"}, {"a": "2"}):
        store.put_task_configs("c", [config])
        fence_earlier_tasks(ENABLED, store, "c")
    assert writers.fenced == []
    assert not entry(store).pending_fencing


@pytest.mark.parametrize("support", ["disabled", "preparing"])
def test_without_exactly_once_nothing_is_fenced_or_written(
    writers: Writers, store: MemoryConfigBackingStore, support: str
) -> None:
    fence_earlier_tasks(WorkerConfig.of({"exactly.once.source.support": support}), store, "c")
    assert entry(store).task_count is None


def test_sinks_are_not_fenced(writers: Writers, store: MemoryConfigBackingStore) -> None:
    store.put_connector("c", {"connector.class": "FileStreamSink"})
    store.put_task_configs("c", [{"t": "9"}])
    fence_earlier_tasks(ENABLED, store, "c")
    assert entry(store).task_count is None


def test_a_failure_names_the_id_writes_no_task_count_and_is_retried(writers: Writers, store: MemoryConfigBackingStore) -> None:
    fence_earlier_tasks(ENABLED, store, "c")
    store.put_task_configs("c", [{"t": "new"}])
    writers.errors["g-c-1"] = [KafkaClientError("not allowed", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")]
    with pytest.raises(ConnectError, match=r"task c-1 .*not allowed.*g-c-1.*restart") as raised:
        fence_earlier_tasks(ENABLED, store, "c")
    assert not isinstance(raised.value, FencedError), "the driver itself is not fenced"
    assert entry(store).pending_fencing
    fence_earlier_tasks(ENABLED, store, "c")
    assert (entry(store).task_count, entry(store).pending_fencing) == (1, False)


def test_a_task_that_starts_during_the_fencing_is_fenced_too(writers: Writers) -> None:
    writers.errors["g-c-0"] = [FencedError("another writer fenced first")]
    fence_source_tasks(ENABLED, "c", 1)
    assert writers.fenced == ["g-c-0"]


def test_a_task_count_for_outdated_task_configs_is_refused(store: MemoryConfigBackingStore) -> None:
    with pytest.raises(ConflictError):
        store.put_task_count("c", 5)
    assert entry(store).pending_fencing

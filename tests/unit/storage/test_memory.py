from __future__ import annotations

import threading
from multiprocessing.managers import BaseManager

import pytest

from sluiceway.errors import AlreadyExistsError, NotFoundError
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import ClusterState, RestartRequest, State, Status, TargetState, TaskId

RUNNING = Status(State.RUNNING, "w", 1)


@pytest.fixture
def store() -> MemoryConfigBackingStore:
    return MemoryConfigBackingStore()


def test_a_connector_exists_from_put_to_remove(store: MemoryConfigBackingStore) -> None:
    store.put_connector("a", {"k": "v"}, TargetState.STOPPED)
    entry = store.snapshot().entry("a")
    assert entry is not None
    assert entry.config == {"k": "v", "name": "a"}
    assert entry.target_state is TargetState.STOPPED
    store.remove_connector("a")
    assert store.refresh().connectors == {}


def test_a_check_sees_the_newest_state_and_refuses(store: MemoryConfigBackingStore) -> None:
    def check(state: ClusterState) -> None:
        if state.entry("a") is not None:
            raise AlreadyExistsError("Connector a already exists")

    store.put_connector("a", {"k": "1"}, check=check)
    with pytest.raises(AlreadyExistsError):
        store.put_connector("a", {"k": "2"}, check=check)
    assert store.snapshot().connectors["a"].config == {"k": "1", "name": "a"}


def test_stopping_commits_no_tasks_and_pausing_keeps_them(store: MemoryConfigBackingStore) -> None:
    store.put_connector("a", {})
    store.put_task_configs("a", [{"x": "0"}, {"x": "1"}])
    store.put_target_state("a", TargetState.PAUSED)
    assert len(store.snapshot().connectors["a"].task_configs) == 2
    store.put_target_state("a", TargetState.STOPPED)
    assert store.snapshot().connectors["a"].task_configs == ()


def test_equal_task_configs_are_written_once_but_again_after_a_new_config(store: MemoryConfigBackingStore) -> None:
    store.put_connector("a", {"k": "1"})
    store.put_task_configs("a", [{"x": "0", "y": "1"}])
    written = store.snapshot().offset
    store.put_task_configs("a", [{"y": "1", "x": "0"}])
    assert store.snapshot().offset == written
    store.put_connector("a", {"k": "2"})
    store.put_task_configs("a", [{"x": "0", "y": "1"}])
    assert store.snapshot().offset == written + 3


def test_no_task_configs_are_committed_too(store: MemoryConfigBackingStore) -> None:
    store.put_connector("a", {})
    store.put_task_configs("a", [])
    assert store.snapshot().connectors["a"].applied_config is not None


def test_target_state_and_tasks_of_a_missing_connector_are_refused(store: MemoryConfigBackingStore) -> None:
    with pytest.raises(NotFoundError, match="Connector a not found"):
        store.put_target_state("a", TargetState.PAUSED)
    with pytest.raises(NotFoundError):
        store.put_task_configs("a", [{}])
    assert store.snapshot().offset == 0


def test_restart_requests_are_taken_once(store: MemoryConfigBackingStore) -> None:
    store.put_restart_request(RestartRequest("a", only_failed=True))
    assert store.take_restart_requests() == [RestartRequest("a", only_failed=True)]
    assert store.take_restart_requests() == []


def test_a_request_for_one_task_reaches_listeners_and_readers() -> None:
    store = MemoryConfigBackingStore()
    heard: list[tuple[str, str]] = []
    store.on_change(lambda kind, connector: heard.append((kind, connector)))
    store.put_restart_request(RestartRequest("a", task=1))
    assert heard == [("restart", "a")]
    assert store.take_restart_requests() == [RestartRequest("a", task=1)]
    assert store.snapshot().connectors == {}


def test_listeners_receive_every_kind_of_change_even_if_another_listener_fails(store: MemoryConfigBackingStore) -> None:
    heard: list[tuple[str, str]] = []

    def failing(kind: str, name: str) -> None:
        raise RuntimeError(kind)

    store.on_change(failing)
    store.on_change(lambda kind, name: heard.append((kind, name)))
    store.put_connector("a", {})
    store.put_task_configs("a", [{}])
    store.put_target_state("a", TargetState.PAUSED)
    store.put_restart_request(RestartRequest("a"))
    assert heard == [("connector", "a"), ("tasks", "a"), ("target-state", "a"), ("restart", "a")]


def test_writers_on_many_threads_lose_nothing(store: MemoryConfigBackingStore) -> None:
    def put_fifty(writer: int) -> None:
        for number in range(50):
            store.put_connector(f"{writer}-{number}", {})

    threads = [threading.Thread(target=put_fifty, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.snapshot().names()) == 200
    assert store.snapshot().offset == 200


def test_statuses_are_kept_by_connector_and_task() -> None:
    store = MemoryStatusBackingStore()
    store.put_connector("a", RUNNING)
    store.put_task(TaskId("a", 1), RUNNING)
    store.put_task(TaskId("a", 0), RUNNING)
    store.put_topic("a", 0, "t2")
    store.put_topic("a", 1, "t1")
    assert store.connector("a") == RUNNING
    assert store.connector("b") is None
    assert store.connector("a").timestamp > 0  # type: ignore[union-attr]
    assert list(store.tasks("a")) == [0, 1]
    assert store.topics("a") == ["t1", "t2"]
    store.remove_task(TaskId("a", 0))
    assert list(store.tasks("a")) == [1]
    store.remove_topics("a")
    assert store.topics("a") == []
    store.remove_connector("a")
    assert (store.connector("a"), store.tasks("a")) == (None, {})


class Manager(BaseManager):
    pass


Manager.register("configs", MemoryConfigBackingStore)
Manager.register("statuses", MemoryStatusBackingStore)


def test_the_stores_work_from_another_process_through_a_manager() -> None:
    with Manager() as manager:
        configs, statuses = manager.configs(), manager.statuses()  # type: ignore[attr-defined]
        configs.put_connector("a", {"k": "v"}, TargetState.PAUSED)
        configs.put_task_configs("a", [{"x": "0"}])
        statuses.put_task(TaskId("a", 0), RUNNING)
        assert configs.snapshot().connectors["a"].task_configs == ({"x": "0"},)
        assert statuses.tasks("a") == {0: RUNNING}
        with pytest.raises(NotFoundError):
            configs.put_target_state("b", TargetState.PAUSED)

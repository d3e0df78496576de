"""The config store on a real broker: restarts, listeners and several writers."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import AlreadyExistsError, NotFoundError
from sluiceway.storage.config_backing_store import KafkaConfigBackingStore
from sluiceway.storage.model import ClusterState, RestartRequest, TargetState
from support.eventually import LIMIT, eventually

pytestmark = pytest.mark.kafka
Open = Callable[[Any], Any]


def test_configs_survive_a_restart(worker: WorkerConfig, opened: Open) -> None:
    first = opened(KafkaConfigBackingStore(worker))
    first.put_connector("a", {"k": "ü😀"}, TargetState.PAUSED)
    first.put_task_configs("a", [{"x": "0"}])
    before = first.snapshot()
    first.stop()
    assert opened(KafkaConfigBackingStore(worker)).snapshot() == before


def test_a_snapshot_includes_a_put_that_has_returned(worker: WorkerConfig, opened: Open) -> None:
    store = opened(KafkaConfigBackingStore(worker))
    store.put_connector("a", {})
    for number in range(10):
        store.put_connector("a", {"n": str(number)})
        assert store.snapshot().connectors["a"].config == {"n": str(number), "name": "a"}


def test_listeners_get_other_writers_changes_by_kind(worker: WorkerConfig, opened: Open) -> None:
    reader, writer = opened(KafkaConfigBackingStore(worker)), opened(KafkaConfigBackingStore(worker))
    heard: list[tuple[str, str]] = []

    def fail(_kind: str, _name: str) -> None:
        raise RuntimeError("a listener's bug")

    reader.on_change(fail)
    reader.on_change(lambda kind, name: heard.append((kind, name)))
    writer.put_connector("a", {}, TargetState.PAUSED)
    writer.put_task_configs("a", [{"x": "0"}])
    writer.put_restart_request(RestartRequest("a", include_tasks=True))
    writer.remove_connector("a")
    eventually(lambda: len(heard) == 6)
    kinds = ["target-state", "connector", "tasks", "restart", "connector", "target-state"]
    assert heard == [(kind, "a") for kind in kinds]
    assert reader.take_restart_requests() == [RestartRequest("a", include_tasks=True)]
    assert reader.take_restart_requests() == []


def test_restart_requests_from_before_the_start_are_ignored(worker: WorkerConfig, opened: Open) -> None:
    opened(KafkaConfigBackingStore(worker)).put_restart_request(RestartRequest("a"))
    late = opened(KafkaConfigBackingStore(worker))
    late.refresh()
    assert late.take_restart_requests() == []


def test_another_writers_connector_is_found_at_once(worker: WorkerConfig, opened: Open) -> None:
    one, other = opened(KafkaConfigBackingStore(worker)), opened(KafkaConfigBackingStore(worker))
    for number in range(3):
        one.put_connector(f"a{number}", {})
        other.put_target_state(f"a{number}", TargetState.STOPPED)
        assert one.refresh().connectors[f"a{number}"].target_state is TargetState.STOPPED
    with pytest.raises(NotFoundError):
        other.put_target_state("b", TargetState.PAUSED)


def create_many(worker: WorkerConfig, who: int) -> None:
    """Create connectors; the entry point of a process, which exits with 1 and a traceback after an error."""
    store = KafkaConfigBackingStore(worker)
    store.start()
    for number in range(20):
        store.put_connector(f"{who}-{number}", {"who": str(who)}, TargetState.PAUSED)
        store.put_task_configs(f"{who}-{number}", [{"x": "0"}, {"x": "1"}])
    store.stop()


def test_concurrent_writers_in_several_processes_leave_complete_configs(worker: WorkerConfig, opened: Open) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=create_many, args=(worker, who)) for who in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(LIMIT)
    assert [process.exitcode for process in processes] == [0, 0]
    connectors = opened(KafkaConfigBackingStore(worker)).snapshot().connectors
    assert set(connectors) == {f"{who}-{number}" for who in range(2) for number in range(20)}
    for entry in connectors.values():
        assert entry.target_state is TargetState.PAUSED
        assert entry.task_configs == ({"x": "0"}, {"x": "1"})


def test_of_two_concurrent_creations_of_a_connector_one_is_refused(worker: WorkerConfig, opened: Open) -> None:
    stores = [opened(KafkaConfigBackingStore(worker)) for _ in range(2)]
    outcomes: list[tuple[str, str]] = []
    together = threading.Barrier(2)

    def create(name: str, who: int) -> None:
        def check(state: ClusterState) -> None:
            if state.entry(name) is not None:
                raise AlreadyExistsError(f"Connector {name} already exists")

        together.wait(LIMIT)
        try:
            stores[who].put_connector(name, {"who": str(who)}, check=check)
            outcomes.append((name, "created"))
        except AlreadyExistsError:
            outcomes.append((name, "refused"))

    names = [f"a{number}" for number in range(8)]
    threads = [threading.Thread(target=lambda who=who: [create(name, who) for name in names]) for who in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
    assert sorted(outcomes) == sorted((name, outcome) for name in names for outcome in ("created", "refused"))


def test_a_writer_reads_to_the_end_after_fencing_before_it_checks(worker: WorkerConfig, opened: Open) -> None:
    one, late = opened(KafkaConfigBackingStore(worker)), opened(KafkaConfigBackingStore(worker))
    reading = threading.Event()
    record = late._log._on_record
    late._log._on_record = lambda each: (reading.wait(LIMIT), record(each))

    def check(state: ClusterState) -> None:
        if state.entry("a") is not None:
            raise AlreadyExistsError("Connector a already exists")

    one.put_connector("a", {"who": "one"}, check=check)
    assert late.snapshot().names() == []
    threading.Timer(1.0, reading.set).start()
    with pytest.raises(AlreadyExistsError):
        late.put_connector("a", {"who": "late"}, check=check)
    assert one.refresh().connectors["a"].config == {"who": "one", "name": "a"}

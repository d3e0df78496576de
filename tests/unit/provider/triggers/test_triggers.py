"""Tests of the triggers with a fake shared view of a cluster."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError
from sluiceway.provider.driver.warm_batch import RequestedBatch
from sluiceway.provider.progress.cluster_view import ClusterKey, DriverSeen, SharedViews
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.triggers import ConditionTrigger, LagTrigger, cluster_polling, condition_trigger
from sluiceway.provider.triggers.conditions import (
    BatchEndedCondition,
    Condition,
    DriverEndedCondition,
    LagCondition,
    StateCondition,
    to_dict,
)
from sluiceway.storage.model import ConnectorEntry, TargetState


class Views(SharedViews):
    """Fake views that count their users. Reads return ``lags`` in turn; an exception among them is raised."""

    def __init__(self) -> None:
        super().__init__()
        self.lags: list[int | Exception] = []
        self.held: list[ClusterKey] = []
        self.targets = [TargetState.STARTED]
        self.most = 0
        self.running = False

    def acquire(self, cluster: ClusterKey) -> None:
        self.held.append(cluster)
        self.most = max(self.most, len(self.held))

    def view(self, cluster: ClusterKey, overrides: Any) -> Any:
        return self

    def release(self, cluster: ClusterKey) -> None:
        self.held.remove(cluster)

    def entry(self, name: str) -> ConnectorEntry:
        target = self.targets.pop(0) if len(self.targets) > 1 else self.targets[0]
        return ConnectorEntry(name, {}, target)

    def progress(self, name: str) -> ConnectorProgress:
        lag = self.lags.pop(0) if len(self.lags) > 1 else self.lags[0]
        if isinstance(lag, Exception):
            raise lag
        return ConnectorProgress(count=1000 - lag, lag=lag)

    def driver(self, name: str) -> DriverSeen:
        return DriverSeen(self.running)


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> Iterator[Views]:
    made = Views()
    monkeypatch.setattr(cluster_polling, "_VIEWS", made)
    yield made
    assert made.held == [], "every acquired view is released"


def _revived(trigger: Any) -> Any:
    path, fields = trigger.serialize()
    assert resolve_name(path) is type(trigger)
    return type(trigger)(**json.loads(json.dumps(fields)))


def _events(trigger: Any, count: int, done: Callable[[], bool] = lambda: False) -> list[Any]:
    async def collect() -> list[Any]:
        found: list[Any] = []
        running = trigger.run()
        async for event in running:
            found.append(event.payload)
            if len(found) == count:
                break
        await running.aclose()
        return found

    return asyncio.run(asyncio.wait_for(collect(), 20))


def test_a_trigger_fires_when_the_condition_is_met_despite_outages(views: Views) -> None:
    views.lags = [5, ConnectError("no broker"), 4, 0]
    trigger = _revived(ConditionTrigger.of(LagCondition("c", 0), "w", "broker", 0.001))
    assert trigger.kafka_conn_id == "broker"
    assert _events(trigger, 2) == [{"met": True, "failed": False, "seen": "lag 0, waiting for at most 0"}]
    assert views.most == 1


def test_a_cancelled_trigger_releases_the_view(views: Views) -> None:
    views.lags = [5]

    async def cancel() -> None:
        async def wait() -> None:
            async for _ in ConditionTrigger.of(LagCondition("c", 0), "w", None, 0.001).run():
                pytest.fail("it fired")

        task = asyncio.create_task(wait())
        while not views.held:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())


def test_a_lag_fires_once_for_each_commit(views: Views) -> None:
    views.lags = [1, 5, 5, 5, 7]
    assert _events(_revived(LagTrigger("c", 5, "w", 0.001)), 2) == [{"connector": "c", "lag": 5}, {"connector": "c", "lag": 7}]


def test_airflow_stores_the_condition_and_no_secret() -> None:
    condition = StateCondition("c", ("RUNNING",))
    fields = ConditionTrigger.of(condition, "/w.properties", "broker", 5.0).serialize()[1]
    assert fields == {
        "condition": to_dict(condition),
        "worker_file": "/w.properties",
        "kafka_conn_id": "broker",
        "interval": 5.0,
    }


def test_a_lag_from_before_the_resume_fires_after_it(views: Views) -> None:
    """Airflow drops events while the DAG is paused or is just being unpaused."""
    resting, running = TargetState.PAUSED, TargetState.STARTED
    views.lags, views.targets = [1005, 1004, 1003, 1002], [resting, resting, running, running]
    assert _events(_revived(LagTrigger("c", 5, "w", 0.001)), 1) == [{"connector": "c", "lag": 1002}]


def test_a_shared_view_is_closed_by_its_last_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "w").write_text("bootstrap.servers=nowhere:1\ngroup.id=g\n")
    log: list[str] = []

    class Stores:
        config = status = offsets = None

        def start(self) -> None:
            log.append("start")

        def stop(self) -> None:
            log.append("stop")

    monkeypatch.setattr("sluiceway.provider.progress.cluster_view.open_stores", lambda worker: Stores())
    views = SharedViews()
    cluster, other = ClusterKey(str(tmp_path / "w")), ClusterKey(str(tmp_path / "w"), "broker")
    for each in (cluster, cluster, other):
        views.acquire(each)
    assert views.view(cluster, _no_overrides) is views.view(cluster, _no_overrides)
    views.release(cluster)
    assert log == ["start"]
    views.release(cluster)
    views.release(other)
    assert log == ["start", "stop"], "the other view was never opened"


def test_a_connection_is_read_when_its_view_is_opened_and_overrides_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    (tmp_path / "w").write_text("bootstrap.servers=nowhere:1\ngroup.id=g\n")
    opened: list[str] = []

    def open_stores(worker: Any) -> Any:
        opened.append(worker.bootstrap_servers)
        return SimpleNamespace(config=None, status=None, offsets=None, start=lambda: None, stop=lambda: None)

    def look_up(conn_id: str | None) -> dict[str, str]:
        asked.append(conn_id)
        if len(asked) == 1:
            raise ConnectError("Airflow has no such connection yet")
        return {"bootstrap.servers": f"{conn_id}:9092"}

    asked: list[str | None] = []
    monkeypatch.setattr("sluiceway.provider.progress.cluster_view.open_stores", open_stores)
    views, cluster = SharedViews(), ClusterKey(str(tmp_path / "w"), "broker")
    views.acquire(cluster)
    with pytest.raises(ConnectError):
        views.view(cluster, look_up)
    views.view(cluster, look_up)
    views.release(cluster)
    assert (asked, opened) == (["broker", "broker"], ["broker:9092"])


def _no_overrides(conn_id: str | None) -> dict[str, str]:
    return {}


FAR = 1e12  # seconds since the epoch


@pytest.mark.parametrize(
    ("condition", "ended"),
    [
        (StateCondition("c"), []),
        (BatchEndedCondition("c", "warm", "1", 0.0, 1.0), [RequestedBatch("c", "warm", "1")]),
        (DriverEndedCondition("c", 3, FAR), ["c"]),
        (DriverEndedCondition("c", hosted=True), []),
        (DriverEndedCondition("c", 3), []),  # the driver of another run of the task
    ],
)
def test_killing_a_deferred_task_ends_what_runs_for_it_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, condition: Condition, ended: list[Any]
) -> None:
    seen: list[Any] = []

    class Topics:
        def __init__(self, worker: WorkerConfig) -> None: ...

        def cancel_batch(self, batch: RequestedBatch) -> None:
            seen.append(batch)

        def end_driver(self, name: str) -> bool:
            seen.append(name)
            return True

    monkeypatch.setattr(condition_trigger, "KafkaInternalTopics", Topics)
    file = tmp_path / "worker.properties"
    file.write_text("bootstrap.servers=nowhere:1\n")
    asyncio.run(_revived(ConditionTrigger.of(condition, str(file), None, 1.0)).on_kill())
    assert seen == ended


@pytest.mark.parametrize(("patience", "asked"), [(FAR, 3), (1.0, 1)])
def test_a_driver_that_was_just_submitted_is_awaited_before_it_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, patience: float, asked: int
) -> None:
    seen: list[str] = []

    class Topics:
        def __init__(self, worker: WorkerConfig) -> None: ...

        def end_driver(self, name: str) -> bool:
            seen.append(name)
            return len(seen) == 3

    monkeypatch.setattr(condition_trigger, "KafkaInternalTopics", Topics)
    file = tmp_path / "worker.properties"
    file.write_text("bootstrap.servers=nowhere:1\n")
    asyncio.run(ConditionTrigger.of(DriverEndedCondition("c", 3, patience), str(file), None, 0.001).on_kill())
    assert seen == ["c"] * asked

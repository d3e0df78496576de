"""The triggers, with a stand-in for the cluster that they share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sluiceway.errors import ConnectError
from sluiceway.provider import triggers
from sluiceway.provider.cluster_view import DriverSeen, SharedViews
from sluiceway.provider.conditions import LagCondition, StateCondition, to_dict
from sluiceway.provider.movement import Position
from sluiceway.provider.triggers import ConditionTrigger, LagTrigger


class Views(SharedViews):
    """Counts who opens and closes what; ``lags`` are seen one after the other, an error is raised."""

    def __init__(self) -> None:
        super().__init__()
        self.lags: list[int | Exception] = []
        self.held: list[str] = []
        self.most = 0
        self.running = False

    def take(self, worker_file: str, overrides: Any) -> str:
        self.held.append(worker_file)
        self.most = max(self.most, len(self.held))
        return worker_file

    def view(self, key: str, worker_file: str, overrides: Any) -> Any:
        return self

    def give_back(self, key: str) -> None:
        self.held.remove(key)

    def position(self, name: str) -> Position:
        lag = self.lags.pop(0) if len(self.lags) > 1 else self.lags[0]
        if isinstance(lag, Exception):
            raise lag
        return Position(count=1000 - lag, lag=lag)

    def driver(self, name: str) -> DriverSeen:
        return DriverSeen(self.running)


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> Iterator[Views]:
    made = Views()
    monkeypatch.setattr(triggers, "_VIEWS", made)
    yield made
    assert made.held == [], "whatever was taken is given back"


def _revived(trigger: Any) -> Any:
    path, fields = trigger.serialize()
    assert path == f"{type(trigger).__module__}.{type(trigger).__qualname__}"
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


def test_a_trigger_fires_once_the_condition_holds_whatever_kafka_does_meanwhile(views: Views) -> None:
    views.lags = [5, ConnectError("no broker"), 4, 0]
    trigger = _revived(ConditionTrigger.of(LagCondition("c", 0), "w", {"a": "b"}, 0.001))
    assert trigger.overrides == {"a": "b"}
    assert _events(trigger, 2) == [{"met": True, "failed": False, "seen": "lag 0, to be at most 0"}]
    assert views.most == 1


def test_a_trigger_that_is_cancelled_gives_the_view_back(views: Views) -> None:
    views.lags = [5]

    async def cancel() -> None:
        async def wait() -> None:
            async for _ in ConditionTrigger.of(LagCondition("c", 0), "w", {}, 0.001).run():
                pytest.fail("it fired")

        task = asyncio.create_task(wait())
        while not views.held:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())


def test_a_lag_is_told_once_for_each_time_that_something_was_committed(views: Views) -> None:
    views.lags = [1, 5, 5, 5, 7]
    assert _events(_revived(LagTrigger("c", 5, "w", 0.001)), 2) == [{"connector": "c", "lag": 5}, {"connector": "c", "lag": 7}]


def test_a_condition_is_all_that_is_stored_of_a_wait() -> None:
    condition = StateCondition("c", ("RUNNING",))
    fields = ConditionTrigger.of(condition, "/w.properties", {}, 5.0).serialize()[1]
    assert fields == {"condition": to_dict(condition), "worker_file": "/w.properties", "overrides": {}, "interval": 5.0}


def test_a_shared_view_is_closed_by_its_last_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    (tmp_path / "w").write_text("bootstrap.servers=nowhere:1\ngroup.id=g\n")
    log: list[str] = []

    class Stores:
        config = status = offsets = None

        def start(self) -> None:
            log.append("start")

        def stop(self) -> None:
            log.append("stop")

    monkeypatch.setattr("sluiceway.provider.cluster_view.open_stores", lambda worker: Stores())
    views = SharedViews()
    path = str(tmp_path / "w")
    first, second = views.take(path, {}), views.take(path, {})
    other = views.take(path, {"group.id": "h"})
    assert first == second != other
    assert views.view(first, path, {}) is views.view(second, path, {})
    views.give_back(first)
    assert log == ["start"]
    views.give_back(second)
    views.give_back(other)
    assert log == ["start", "stop"], "the other one was never opened"

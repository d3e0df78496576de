"""The driver of an application that several connectors share."""

from __future__ import annotations

import threading
from typing import Any, cast

from sluiceway.spark.driver_app import _stop_when_empty, _unless_moved
from sluiceway.storage.memory import MemoryConfigBackingStore
from sluiceway.storage.model import RestartRequest
from sluiceway.worker.connector_runner import RunnerOutcome
from sluiceway.worker.driver import Driver
from support.eventually import LIMIT, eventually

SHARED = {"connector.class": "X", "sluiceway.application": "small"}


class Runner:
    """A fake runner that is alive until ``leave`` is called or its connector is deleted."""

    def __init__(self, name: str, store: MemoryConfigBackingStore) -> None:
        self.name = name
        self.outcome: RunnerOutcome | None = None
        self._store = store
        self._left = False

    def start(self) -> None: ...

    def is_alive(self) -> bool:
        if self._left or self._store.snapshot().entry(self.name) is None:
            self.outcome = RunnerOutcome.DONE
        return self.outcome is None

    def leave(self, trace: str | None = None) -> None:
        self._left = True

    def join(self) -> None: ...

    def notify(self) -> None: ...

    def restart(self, request: RestartRequest) -> None: ...


def test_a_shared_driver_hosts_the_connectors_of_its_application_and_ends_with_the_last_one() -> None:
    store = MemoryConfigBackingStore()
    store.put_connector("a", SHARED)
    store.put_connector("other", {"connector.class": "X"})
    runners: dict[str, Runner] = {}

    def runner(name: str) -> Any:
        runners[name] = Runner(name, store)
        return runners[name]

    driver = Driver(store, runner, hosts=lambda entry: entry.application == "small")
    _stop_when_empty(driver, store, "small")
    thread = threading.Thread(target=driver.run, daemon=True)
    thread.start()
    eventually(lambda: sorted(runners) == ["a"], what="the first connector")
    store.put_connector("b", SHARED)
    eventually(lambda: sorted(runners) == ["a", "b"], what="a connector created later")
    store.put_connector("a", {"connector.class": "X"})
    eventually(lambda: runners["a"].outcome is RunnerOutcome.DONE, what="the end of the runner of a")
    assert runners["b"].is_alive()
    store.remove_connector("b")
    thread.join(LIMIT)
    assert not thread.is_alive()
    assert sorted(runners) == ["a", "b"]


def test_a_driver_leaves_a_connector_that_a_change_of_its_config_moves_before_it_runs_with_that_config() -> None:
    store = MemoryConfigBackingStore()
    store.put_connector("a", {"connector.class": "X"})
    runner = Runner("a", store)
    notified: list[str] = []
    runner.notify = lambda: notified.append("a")  # type: ignore[method-assign]
    driver = Driver(store, lambda _name: cast(Any, runner), only=["a"], hosts=_unless_moved(store))
    thread = threading.Thread(target=driver.run, daemon=True)
    thread.start()
    store.put_connector("a", {"connector.class": "X", "spark.x": "1"})
    eventually(lambda: notified == ["a"], what="the runner's own change")
    store.put_connector("a", SHARED)
    thread.join(LIMIT)
    assert not thread.is_alive()
    assert notified == ["a"]

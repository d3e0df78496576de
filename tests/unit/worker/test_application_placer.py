"""Tests of the driver that spreads connectors over applications."""

from __future__ import annotations

import time

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConflictError
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TaskId
from sluiceway.worker.application_placer import ApplicationPlacer

WORKER = WorkerConfig.of({"sluiceway.application.default": "a", "sluiceway.application.max.tasks": "2"})


class Cluster:
    def __init__(self, worker: WorkerConfig = WORKER) -> None:
        self.worker = worker
        self.config = MemoryConfigBackingStore(worker.applications)
        self.status = MemoryStatusBackingStore()
        self.later = 0.0

    def create(self, *names: str) -> None:
        for name in names:
            self.config.put_connector(name, {"connector.class": "X"})

    def run(self, *names: str) -> None:
        for name in names:
            self.status.put_connector(name, Status(State.RUNNING, "host:1", 1))

    def placer(self, application: str) -> ApplicationPlacer:
        return ApplicationPlacer(application, self.worker, self.config, self.status, clock=lambda: time.time() + self.later)

    def applications(self) -> dict[str, str | None]:
        return {name: entry.placed for name, entry in sorted(self.config.snapshot().connectors.items())}

    def place(self, application: str) -> dict[str, str | None]:
        self.placer(application).place(self.config.snapshot())
        return self.applications()


def test_connectors_are_placed_when_they_are_created_and_stay() -> None:
    cluster = Cluster()
    cluster.create("x", "y", "z")
    assert cluster.place("a") == {"x": "a", "y": "a", "z": "a-2"}
    cluster.config.remove_connector("x")
    cluster.create("new")
    assert cluster.place("a") == {"new": "a", "y": "a", "z": "a-2"}
    cluster.create("z")
    assert cluster.place("a") == {"new": "a", "y": "a", "z": "a-2"}


def test_a_connector_that_is_created_again_is_placed_anew() -> None:
    cluster = Cluster()
    cluster.create("x", "y", "z")
    cluster.place("a")
    cluster.config.remove_connector("z")
    cluster.config.remove_connector("x")
    cluster.create("z")
    assert cluster.applications()["z"] is None
    assert cluster.place("a")["z"] == "a"


@pytest.mark.parametrize(("a_runs", "placed"), [(True, None), (False, "a-2")])
def test_the_lowest_application_that_is_alive_places_connectors(a_runs: bool, placed: str | None) -> None:
    cluster = Cluster()
    cluster.create("x", "y", "z")
    cluster.place("a")
    cluster.run("z", *(["x"] if a_runs else []))
    cluster.create("new")
    assert cluster.place("a-2")["new"] == placed


def test_another_application_takes_the_connectors_of_one_that_is_gone() -> None:
    cluster = Cluster()
    cluster.create("x", "y", "z")
    cluster.place("a")
    cluster.run("x", "y", "z")
    placer = cluster.placer("a-2")
    placer.place(cluster.config.snapshot())
    assert cluster.applications() == {"x": "a", "y": "a", "z": "a-2"}
    cluster.later = 60
    cluster.status.put_connector("z", Status(State.PAUSED, "host:1", 1))
    cluster.status.put_task(TaskId("y", 0), Status(State.RUNNING, "host:1", 1))
    placer.place(cluster.config.snapshot())
    moved = {"x": "a-2", "y": "a-3", "z": "a-2"}
    assert cluster.applications() == moved
    status = cluster.status.connector("y")
    assert status is not None
    assert (status.state, status.trace) == (
        State.UNASSIGNED,
        "Application a has sent no heartbeats. Application a-3 runs it now.",
    )
    assert cluster.status.tasks("y")[0].state is State.UNASSIGNED
    cluster.later = 120
    placer.place(cluster.config.snapshot())
    assert cluster.applications() == moved, "an application that has not started yet is not gone"


def test_without_a_limit_nothing_is_placed() -> None:
    cluster = Cluster(WorkerConfig.of({"sluiceway.application.default": "a"}))
    cluster.create("x")
    assert cluster.place("a") == {"x": None}


def test_connectors_of_other_names_are_left_to_their_own_drivers() -> None:
    cluster = Cluster()
    cluster.create("x")
    cluster.config.put_connector("other", {"sluiceway.application": "b"})
    assert cluster.place("b") == {"other": "b", "x": None}


def test_a_write_that_fails_is_tried_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.create("x")
    placer = cluster.placer("a")

    def fail(_decide: object) -> None:
        raise ConflictError("others write")

    with monkeypatch.context() as patch:
        patch.setattr(cluster.config, "put_placed", fail)
        placer.place(cluster.config.snapshot())
    assert "others write" in caplog.text
    placer.place(cluster.config.snapshot())
    assert cluster.applications() == {"x": "a"}

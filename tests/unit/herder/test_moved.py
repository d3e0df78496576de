"""A connector that has moved to another cluster stays at rest until it is moved back or its mark is removed knowingly."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConflictError
from sluiceway.herder import Herder
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import TargetState, TaskId

PLAIN = {"name": "a", "connector.class": "FileStreamSource", "file": "/f", "topic": "t"}
MOVED = {**PLAIN, "sluiceway.moved.to": "http://there:8083"}
MOVING = {**PLAIN, "sluiceway.migrate.state": "RUNNING"}


@pytest.fixture
def stores() -> tuple[MemoryConfigBackingStore, MemoryStatusBackingStore]:
    return MemoryConfigBackingStore(), MemoryStatusBackingStore()


@pytest.fixture
def herder(stores: tuple[MemoryConfigBackingStore, MemoryStatusBackingStore]) -> Herder:
    herder = Herder(WorkerConfig.of({}), *stores, None)
    herder.create("a", MOVED, TargetState.STOPPED)
    stores[0].put_task_configs("a", [{"task.class": "T"}])
    return herder


REQUESTS: dict[str, Callable[[Herder], object]] = {
    "resume": lambda herder: herder.resume("a"),
    "pause": lambda herder: herder.pause("a"),
    "restart": lambda herder: herder.restart("a", include_tasks=True, only_failed=True),
    "restart of a task": lambda herder: herder.restart_task(TaskId("a", 0)),
    "put": lambda herder: herder.put_config("a", PLAIN),
    "put by a task": lambda herder: herder.put_config("a", PLAIN, by_task=True),
    "patch": lambda herder: herder.patch_config("a", {"topic": "u"}),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_requests_to_start_or_change_it_are_refused(herder: Herder, request_: Callable[[Herder], object]) -> None:
    with pytest.raises(
        ConflictError, match=r"has moved to http://there:8083\. .*'sluiceway patch a --remove sluiceway.moved.to'"
    ):
        request_(herder)
    assert herder.info("a").config == MOVED


KNOWING: dict[str, tuple[Callable[[Herder], object], dict[str, str]]] = {
    "move back": (lambda herder: herder.put_config("a", MOVING), MOVING),
    "put of an empty mark": (lambda herder: herder.put_config("a", {**MOVED, "sluiceway.moved.to": ""}), PLAIN),
    "patch that removes it": (lambda herder: herder.patch_config("a", {"sluiceway.moved.to": None}), PLAIN),
    "patch that empties it": (lambda herder: herder.patch_config("a", {"sluiceway.moved.to": ""}), PLAIN),
}


@pytest.mark.parametrize(("change", "config"), KNOWING.values(), ids=KNOWING)
def test_changes_that_name_the_mark_are_accepted(
    herder: Herder, change: Callable[[Herder], object], config: dict[str, str]
) -> None:
    change(herder)
    assert herder.info("a").config == config
    herder.resume("a", by_move=config == MOVING)


def test_what_starts_nothing_is_accepted(herder: Herder) -> None:
    assert herder.put_config("a", {**MOVED, "topic": "u"})[1].config["topic"] == "u"
    herder.stop("a")
    herder.delete("a")
    herder.create("a", PLAIN)


def test_the_marks_are_known_keys() -> None:
    herder = Herder(
        WorkerConfig.of({"errors.unknown.keys": "fail"}), MemoryConfigBackingStore(), MemoryStatusBackingStore(), None
    )
    herder.create("a", MOVING, TargetState.STOPPED)
    assert herder.put_config("a", MOVED)[1].config == MOVED


@pytest.mark.parametrize("mark", ["RUNNING", "PAUSED", "FAILED", "STOPPED"])
def test_only_its_move_starts_a_connector_that_rests_while_it_moves(
    stores: tuple[MemoryConfigBackingStore, MemoryStatusBackingStore], mark: str
) -> None:
    herder = Herder(WorkerConfig.of({}), *stores, None)
    herder.create("a", {**PLAIN, "sluiceway.migrate.state": mark}, TargetState.STOPPED)
    for request in (herder.resume, herder.pause):
        with pytest.raises(ConflictError, match=r"is being moved .* 'sluiceway patch a --remove sluiceway.migrate.state'"):
            request("a")
        assert stores[0].snapshot().connectors["a"].target_state is TargetState.STOPPED
    herder.pause("a", by_move=True)
    herder.resume("a")  # its move has started it
    assert stores[0].snapshot().connectors["a"].target_state is TargetState.STARTED
    herder.stop("a")
    herder.resume("a", by_move=True)
    herder.stop("a")
    herder.patch_config("a", {"sluiceway.migrate.state": None})
    herder.resume("a")


def test_a_connector_that_waits_for_its_move_may_be_paused(
    stores: tuple[MemoryConfigBackingStore, MemoryStatusBackingStore],
) -> None:
    herder = Herder(WorkerConfig.of({}), *stores, None)
    herder.create("a", MOVING)
    herder.pause("a")
    herder.resume("a")

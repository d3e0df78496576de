"""The herder with memory stores."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import AlreadyExistsError, BadRequestError, ConflictError, InvalidConfigError, NotFoundError
from sluiceway.herder import Herder
from sluiceway.storage.codec import encode_commit
from sluiceway.storage.config_writes import Decided
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore
from sluiceway.storage.model import State, Status, TargetState, TaskId

CONFIG = {"connector.class": "FileStreamSource", "file": "/f", "topic": "t"}
WORKER = WorkerConfig.of({"listeners": "http://me:1", "sluiceway.heartbeat.timeout.ms": "15000"})


class Cluster:
    """A herder, its stores and methods that write what a driver would."""

    def __init__(self) -> None:
        self.config = MemoryConfigBackingStore()
        self.status = MemoryStatusBackingStore()
        self.ahead = 0.0
        self.herder = Herder(WORKER, self.config, self.status, None, clock=self.clock)

    def clock(self) -> float:
        return time.time() + self.ahead

    def run(self, name: str, state: State = State.RUNNING, *tasks: State) -> None:
        """Do what a driver does: commit tasks, report states."""
        self.config.put_task_configs(name, [{"task.class": "T", "n": str(number)} for number in range(len(tasks))])
        self.status.put_connector(name, Status(state, "driver:1", 3, version="1"))
        for number, task in enumerate(tasks):
            self.status.put_task(TaskId(name, number), Status(task, "driver:1", 3, trace="t" if task is State.FAILED else None))

    def states(self, name: str) -> tuple[State, list[State]]:
        status = self.herder.status(name)
        return status.connector.state, [task.state for task in status.tasks.values()]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_new_connector_has_its_name_in_its_config_and_no_tasks_yet(cluster: Cluster) -> None:
    info = cluster.herder.create("a", CONFIG)
    assert info == cluster.herder.info("a")
    assert (info.name, dict(info.config), info.tasks, info.type) == ("a", CONFIG | {"name": "a"}, (), "source")


def test_a_new_connector_that_is_not_admitted_is_not_stored(cluster: Cluster) -> None:
    def refuse(name: str, config: Mapping[str, str]) -> None:
        raise ConflictError(f"{name} {config['topic']}")

    cluster.herder.create("old", CONFIG)
    herder = Herder(WORKER, cluster.config, cluster.status, admit=refuse)
    with pytest.raises(ConflictError, match="a t"):
        herder.create("a", CONFIG)
    with pytest.raises(ConflictError, match="b t"):
        herder.put_config("b", CONFIG)
    herder.put_config("old", CONFIG | {"topic": "u"})
    herder.patch_config("old", {"topic": "v"})
    assert herder.connectors() == ["old"]


def test_connectors_are_listed_by_name(cluster: Cluster) -> None:
    for name in ("b", "a", "c"):
        cluster.herder.create(name, CONFIG)
    cluster.herder.delete("c")
    assert cluster.herder.connectors() == ["a", "b"]


def test_a_refused_config_leaves_nothing_behind(cluster: Cluster) -> None:
    with pytest.raises(InvalidConfigError):
        cluster.herder.create("a", {"connector.class": "FileStreamSource"}, TargetState.PAUSED)
    with pytest.raises(InvalidConfigError):
        cluster.herder.put_config("a", {"connector.class": "FileStreamSource"})
    with pytest.raises(BadRequestError):
        cluster.herder.create("a", CONFIG | {"name": "b"})
    assert cluster.config.snapshot().connectors == {}
    assert cluster.status.connector("a") is None


def test_a_name_that_is_taken_is_refused_and_its_config_stays(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG)
    with pytest.raises(AlreadyExistsError, match=r"^Connector a already exists$"):
        cluster.herder.create("a", CONFIG | {"file": "/other"})
    assert cluster.herder.info("a").config["file"] == "/f"


def test_put_config_says_whether_the_connector_is_new_and_keeps_its_tasks(cluster: Cluster) -> None:
    assert cluster.herder.put_config("a", CONFIG)[0] is True
    cluster.run("a", State.RUNNING, State.RUNNING)
    created, info = cluster.herder.put_config("a", CONFIG | {"file": "/g"})
    assert created is False
    assert (info.config["file"], info.tasks) == ("/g", (TaskId("a", 0),))


def test_task_infos_include_the_configs(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG)
    cluster.run("a", State.RUNNING, State.RUNNING, State.RUNNING)
    assert [(str(task.id), task.config["n"]) for task in cluster.herder.task_infos("a")] == [("a-0", "0"), ("a-1", "1")]


def test_inconsistent_tasks_are_not_listed(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG)
    cluster.run("a", State.RUNNING, State.RUNNING)
    cluster.config._write(lambda _state: Decided([encode_commit("a", 2)]))  # and no record of the second task
    assert cluster.herder.info("a").tasks == ()
    assert cluster.herder.task_infos("a") == []


def test_a_connector_whose_class_is_not_installed_has_unknown_type(cluster: Cluster) -> None:
    cluster.config.put_connector("a", {"name": "a", "connector.class": "org.example.Elsewhere"})
    assert cluster.herder.info("a").type == "unknown"
    assert cluster.herder.status("a").type == "unknown"


def test_a_connector_without_a_driver_is_unassigned(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG)
    status = cluster.herder.status("a").connector
    assert (status.state, status.worker_id, status.version) == (State.UNASSIGNED, "me:1", None)


def test_a_dead_drivers_connector_does_not_stay_running(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG)
    cluster.run("a", State.RUNNING, State.RUNNING, State.FAILED)
    assert cluster.states("a") == (State.RUNNING, [State.RUNNING, State.FAILED])
    cluster.ahead = 16
    assert cluster.states("a") == (State.UNASSIGNED, [State.UNASSIGNED, State.FAILED])
    assert cluster.herder.task_status(TaskId("a", 0)).state is State.UNASSIGNED


@pytest.mark.parametrize(
    ("verb", "target", "state"), [("pause", TargetState.PAUSED, State.PAUSED), ("stop", TargetState.STOPPED, State.STOPPED)]
)
def test_without_a_driver_the_herder_writes_the_requested_status(
    cluster: Cluster, verb: str, target: TargetState, state: State
) -> None:
    cluster.herder.create("a", CONFIG)
    getattr(cluster.herder, verb)("a")
    entry = cluster.config.snapshot().entry("a")
    assert entry is not None
    assert entry.target_state is target
    written = cluster.status.connector("a")
    assert written is not None
    assert (written.state, written.worker_id, written.generation) == (state, "me:1", 0)
    assert written.version


@pytest.mark.parametrize(("target", "state"), [(TargetState.PAUSED, State.PAUSED), (TargetState.STOPPED, State.STOPPED)])
def test_a_dead_drivers_statuses_at_rest_are_written_without_the_target_state(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, target: TargetState, state: State
) -> None:
    cluster.herder.create("a", CONFIG)
    assert not cluster.herder.report_at_rest("a")
    assert not cluster.herder.report_at_rest("unknown")
    cluster.config.put_target_state("a", target)
    read = cluster.config.snapshot()
    cluster.herder.resume("a")
    monkeypatch.setattr(cluster.config, "snapshot", lambda: read)  # as it was before the resume
    assert cluster.herder.report_at_rest("a")
    monkeypatch.undo()
    written = cluster.status.connector("a")
    assert written is not None
    assert written.state is state
    entry = cluster.config.snapshot().entry("a")
    assert entry is not None
    assert entry.target_state is TargetState.STARTED, "the resume stays"


def test_with_a_running_driver_the_herder_writes_no_status(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG)
    cluster.run("a", State.RUNNING, State.RUNNING)
    cluster.herder.pause("a")
    assert cluster.states("a") == (State.RUNNING, [State.RUNNING])
    cluster.herder.stop("a")
    recorded = cluster.status.connector("a")
    assert recorded is not None
    assert recorded.state is State.RUNNING
    assert list(cluster.status.tasks("a")) == [0]


def test_a_dead_drivers_tasks_are_paused_but_failures_stay(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG)
    cluster.run("a", State.RUNNING, State.RUNNING, State.FAILED)
    cluster.ahead = 16
    cluster.herder.pause("a")
    tasks = cluster.status.tasks("a")
    assert [task.state for task in tasks.values()] == [State.PAUSED, State.FAILED]
    assert (tasks[0].generation, tasks[1].trace) == (3, "t")


def test_a_failed_connector_stays_failed_when_paused_and_not_when_stopped(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG)
    cluster.run("a", State.FAILED)
    cluster.ahead = 16
    cluster.herder.pause("a")
    assert cluster.states("a") == (State.FAILED, [])
    cluster.herder.stop("a")
    assert cluster.states("a") == (State.STOPPED, [])


def test_stop_removes_a_paused_connectors_tasks_without_a_driver(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG)
    cluster.run("a", State.PAUSED, State.PAUSED)
    cluster.herder.stop("a")
    assert cluster.states("a") == (State.STOPPED, [])
    assert cluster.status.tasks("a") == {}
    assert cluster.herder.info("a").tasks == ()


def test_resume_starts_what_was_stopped(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG, TargetState.STOPPED)
    cluster.herder.resume("a")
    entry = cluster.config.snapshot().entry("a")
    assert entry is not None
    assert entry.target_state is TargetState.STARTED
    cluster.ahead = 16
    assert cluster.states("a") == (State.UNASSIGNED, [])


@pytest.mark.parametrize(("target", "state"), [(TargetState.PAUSED, State.PAUSED), (TargetState.STOPPED, State.STOPPED)])
def test_a_connector_can_be_created_paused_or_stopped(cluster: Cluster, target: TargetState, state: State) -> None:
    cluster.herder.create("a", CONFIG, target)
    written = cluster.status.connector("a")
    assert written is not None
    assert written.state is state


def test_delete_clears_statuses_unless_a_driver_runs(cluster: Cluster) -> None:
    for name in ("dead", "alive"):
        cluster.herder.create(name, CONFIG)
        cluster.run(name, State.RUNNING, State.RUNNING)
    cluster.herder.delete("alive")
    cluster.ahead = 16
    cluster.herder.delete("dead")
    assert (cluster.status.connector("dead"), dict(cluster.status.tasks("dead"))) == (None, {})
    assert cluster.status.connector("alive") is not None
    for name in ("dead", "alive"):
        with pytest.raises(NotFoundError):
            cluster.herder.status(name)
        with pytest.raises(NotFoundError):
            cluster.herder.task_status(TaskId(name, 0))


@pytest.mark.parametrize("how", ["create", "put_config"])
def test_a_new_connector_does_not_inherit_the_failure_of_a_deleted_one(cluster: Cluster, how: str) -> None:
    cluster.herder.create("a", CONFIG)
    cluster.run("a", State.FAILED, State.FAILED)
    cluster.herder.delete("a")
    cluster.ahead = 16
    getattr(cluster.herder, how)("a", CONFIG)
    assert cluster.states("a") == (State.UNASSIGNED, [])


def test_a_new_config_leaves_the_statuses_alone(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG, TargetState.PAUSED)
    cluster.herder.put_config("a", CONFIG | {"file": "/g"})
    assert cluster.states("a") == (State.PAUSED, [])


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        ("info", "Connector a not found"),
        ("task_infos", "Connector a not found"),
        ("delete", "Connector a not found"),
        ("status", "No status found for connector a"),
        ("pause", "Unknown connector a"),
        ("resume", "Unknown connector a"),
        ("stop", "Unknown connector a"),
    ],
)
def test_an_unknown_connector_raises_not_found_with_connects_message(cluster: Cluster, verb: str, message: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        getattr(cluster.herder, verb)("a")
    assert str(caught.value) == message
    assert cluster.config.snapshot().connectors == {}


def test_a_task_without_a_status_is_not_found(cluster: Cluster) -> None:
    cluster.herder.create("a", CONFIG)
    with pytest.raises(NotFoundError, match=r"^No status found for task a-0$"):
        cluster.herder.task_status(TaskId("a", 0))

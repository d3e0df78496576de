"""Moves between clusters in memory: each state, interruptions at every request, and failures."""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from sluiceway.cli import migration, migration_cluster
from sluiceway.cli.migration import Move, Mover
from sluiceway.cli.migration_cluster import MigrationCluster
from sluiceway.cli.migration_steps import Step
from sluiceway.rest.client import RestError
from support.eventually import LIMIT
from unit.cli.pretend_cluster import PretendCluster

Clusters = tuple[PretendCluster, PretendCluster]


class KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (migration, migration_cluster):
        monkeypatch.setattr(module, "POLL_SECONDS", 0.001)


@pytest.fixture
def clusters() -> Clusters:
    return PretendCluster(), PretendCluster(sluiceway=True)


def mover(clusters: Clusters, changed: Callable[[Move], None] = lambda _: None, timeout: float = LIMIT) -> Mover:
    source, target = clusters
    return Mover(MigrationCluster(source), MigrationCluster(target), timeout=timeout, changed=changed)  # type: ignore[arg-type]


def moved(clusters: Clusters) -> Move:
    """Move connector a, which succeeds."""
    move = mover(clusters).move("a")
    assert (move.error, move.done) == (None, True)
    return move


def refused(clusters: Clusters, timeout: float = LIMIT) -> str:
    """Move connector a, which fails. Return the error."""
    error = mover(clusters, timeout=timeout).move("a").error
    assert error is not None
    return error


def interrupted(clusters: Clusters, after: str) -> None:
    """Move connector a until a request to the source, whose effect is the last."""
    both, source = mover(clusters), clusters[0]
    source.before_write = lambda verb, _: both.cancel() if verb == after else None
    with pytest.raises(KeyboardInterrupt):
        both.move("a")
    source.before_write = lambda _verb, _name: None


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED", "STOPPED", "FAILED"])
def test_a_connector_moves_with_config_offsets_and_state_and_back(clusters: Clusters, state: str) -> None:
    source, target = clusters
    source.add("a", state, secret="${file:/x:y}")
    config = dict(source.configs["a"])
    moved(clusters)
    wanted = "RUNNING" if state == "FAILED" else state
    assert (source.states["a"], target.states["a"]) == ("STOPPED", wanted)
    assert source.configs["a"] == target.configs["a"] == config
    assert target.stored["a"] == source.stored["a"]

    target.stored["a"] = (
        [{"partition": {"f": "a", "a": 1}, "offset": {"position": 9}}] if state != "STOPPED" else source.stored["a"]
    )
    moved((target, source))
    assert (source.states["a"], target.states["a"]) == (wanted, "STOPPED")
    noted = {} if state == "STOPPED" else {"sluiceway.moved.to": "http://connect:8083"}  # one that was stopped has not moved
    assert source.configs["a"] == config
    assert target.configs["a"] == {**config, **noted}
    assert target.stored["a"] == source.stored["a"]

    moved(clusters)
    assert (source.states["a"], target.states["a"]) == ("STOPPED", wanted)
    assert source.configs["a"] == target.configs["a"] == config


def test_the_source_stops_before_its_offsets_are_read_and_the_target_starts_last(clusters: Clusters) -> None:
    source, target = clusters
    source.add("a")
    steps: list[Step | None] = []
    move = mover(clusters, lambda move: steps.append(move.step)).move("a", delete_source=True)
    assert [verb for verb, _ in source.writes] == ["stop", "delete"]
    assert [verb for verb, _ in target.writes] == ["create", "alter_offsets", "resume", "put_config"]
    assert steps == list(Step)
    assert (move.state, move.before, move.after) == ("RUNNING", source.stored["a"], target.stored["a"])
    assert move.standstill is not None
    writes = len(target.writes)
    again = mover(clusters).move("a", delete_source=True)
    assert len(target.writes) == writes, "a move that is done changes nothing"
    assert again.standstill is None


def test_the_way_back_writes_no_config_between_the_stop_and_the_start(clusters: Clusters) -> None:
    source, target = clusters
    source.add("a")
    moved(clusters)
    writes: list[tuple[str, str]] = []
    for cluster in clusters:
        cluster.before_write = lambda verb, _, server=cluster.server: writes.append((server, verb))
    moved((target, source))
    ours, theirs = target.server, source.server
    assert writes == [(ours, "put_config"), (ours, "stop"), (theirs, "resume"), (ours, "put_config")]


def test_a_connector_that_stands_still_waits_for_no_other_requests_than_those_for_its_offsets(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = clusters
    source.add("a")
    asked: list[str] = []

    def noted(cluster: PretendCluster, request: str) -> Callable[[str], Any]:
        real = getattr(cluster, request)

        def ask(name: str) -> Any:
            if source.states["a"] == "STOPPED" and target.states["a"] == "STOPPED":
                asked.append(request)
            return real(name)

        return ask

    for cluster in clusters:
        for request in ("config", "offsets"):
            monkeypatch.setattr(cluster, request, noted(cluster, request))
    moved(clusters)
    assert asked.count("offsets") == 3, "the source's, the target's, and the target's once more"
    assert asked.count("config") == 2, "the look that saw the connector STOPPED, and its worker's answer"


def test_offsets_that_the_target_has_not_taken_are_written_again(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = clusters
    source.add("a")
    real, tries = target.alter_offsets, iter([True])
    monkeypatch.setattr(target, "alter_offsets", lambda *given: None if next(tries, False) else real(*given))
    moved(clusters)
    assert target.stored["a"] == source.stored["a"]


@pytest.mark.parametrize("sluiceways", [True, False])
def test_a_connector_moves_between_two_clusters_of_a_kind_and_back(sluiceways: bool) -> None:
    first, second = PretendCluster(sluiceway=sluiceways), PretendCluster(sluiceway=sluiceways)
    if not sluiceways:  # the tasks of Kafka Connect are restarted once, when the mark is removed
        second.is_sluiceway = first.is_sluiceway = True
    first.add("a")
    config = dict(first.configs["a"])
    moved((first, second))
    assert (first.states["a"], second.states["a"]) == ("STOPPED", "RUNNING")
    assert second.configs["a"] == config
    assert ("sluiceway.moved.to" in first.configs["a"]) is sluiceways
    moved((second, first))
    assert (first.states["a"], second.states["a"]) == ("RUNNING", "STOPPED")
    assert first.configs["a"] == config


@pytest.mark.parametrize("took_effect", [False, True])
@pytest.mark.parametrize("way", ["to Kafka Connect", "between two Sluiceways"])
def test_other_ways_that_are_killed_at_any_request_are_continued(way: str, took_effect: bool) -> None:
    for number in range(9):
        source, target = PretendCluster(sluiceway=True), PretendCluster(sluiceway=way == "between two Sluiceways")
        source.add("a")
        config, left = dict(source.configs["a"]), [number]

        def kill(_verb: str, _name: str, left: list[int] = left) -> None:
            if left[0] == 0:
                raise KilledError
            left[0] -= 1

        for cluster in (source, target):
            if took_effect:
                kill_after(cluster, kill)
            else:
                cluster.before_write = kill
        with contextlib.suppress(KilledError):
            mover((source, target)).move("a")
        for cluster in (source, target):
            cluster.before_write = lambda _verb, _name: None
        moved((source, target))
        assert (source.states["a"], target.states["a"]) == ("STOPPED", "RUNNING"), number
        assert target.configs["a"] == config
        assert source.configs["a"] == {**config, "sluiceway.moved.to": target.server.replace("user:pw@", "")}
        assert target.stored["a"] == source.stored["a"]


def test_the_source_is_not_stopped_before_a_driver_is_ready_for_the_connector(clusters: Clusters) -> None:
    source, target = clusters
    source.add("a")

    def drivers() -> Iterator[str | None]:
        for _ in range(3):
            assert source.states["a"] == "RUNNING"
            yield None

    target.drivers = drivers()
    moved(clusters)
    assert next(target.drivers, "none left") == "none left"


@pytest.mark.parametrize("state", ["PAUSED", "STOPPED"])
@pytest.mark.parametrize("more", [{}, {"airflow.mode": "micro-batch"}, {"airflow.dag": "mine"}])
def test_no_driver_is_awaited_for_a_connector_that_none_runs(clusters: Clusters, state: str, more: dict[str, str]) -> None:
    source, target = clusters
    source.add("a", "RUNNING" if more else state, **more)
    target.drivers = itertools.repeat(None)
    moved(clusters)


def test_a_driver_that_does_not_come_leaves_the_source_as_it_is(clusters: Clusters) -> None:
    source, target = clusters
    source.add("a")
    target.drivers = itertools.repeat(None)
    assert re.match(r"Timed out after 0.3 s: a driver for a at http://ours.* is RUNNING again at", refused(clusters, 0.3))
    assert ("stop", "a") not in source.writes


@pytest.mark.parametrize("way", [1, -1])
def test_a_state_that_a_rebalance_shows_for_a_moment_is_not_taken_for_a_start(clusters: Clusters, way: int) -> None:
    source, target = both = clusters if way > 0 else (clusters[1], clusters[0])
    source.add("a")
    interrupted(both, after="stop")
    shown: list[bool] = []
    real = target.status

    def status(name: str) -> dict[str, Any]:
        found = real(name)
        if len(shown) < 2:
            shown.append(True)
            found["connector"]["state"] = "UNASSIGNED"
        return found

    target.status = status  # type: ignore[method-assign]
    moved(both)
    assert shown
    assert [verb for verb, _ in target.writes][:3] == ["create", "alter_offsets", "resume"]


def test_connectors_move_side_by_side(clusters: Clusters) -> None:
    source, target = clusters
    names = [f"c{number}" for number in range(20)]
    for name in names:
        source.add(name)
    both = mover(clusters)
    with ThreadPoolExecutor(8) as pool:
        moves = list(pool.map(both.move, names))
    assert [move.error for move in moves] == [None] * 20
    assert set(target.states.values()) == {"RUNNING"}


def test_few_connectors_stand_still_at_once(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = clusters
    names, standing, seen = [f"c{number}" for number in range(12)], set[str](), set[int]()
    stop, resume, fails, pair = source.stop, target.resume, set(names[::4]), threading.Barrier(2)

    def stopped(name: str) -> None:
        standing.add(name)
        pair.wait(LIMIT)
        seen.add(len(standing))
        stop(name)

    def started(name: str, *, moving: bool) -> None:
        standing.discard(name)
        if name in fails:
            raise RestError(400, "refused.")
        resume(name, moving=moving)

    monkeypatch.setattr(source, "stop", stopped)
    monkeypatch.setattr(target, "resume", started)
    for name in names:
        source.add(name)
    with ThreadPoolExecutor(8) as pool:
        moves = list(pool.map(mover(clusters).move, names))
    assert {move.name for move in moves if move.error} == fails
    assert max(seen) == 2


def test_moves_that_are_cancelled_end_as_they_are_and_go_on_later(clusters: Clusters) -> None:
    source, target = clusters
    source.add("a")
    interrupted(clusters, after="stop")
    assert (source.states["a"], target.states["a"]) == ("STOPPED", "STOPPED")
    moved(clusters)
    assert target.states["a"] == "RUNNING"


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED", "STOPPED"])
@pytest.mark.parametrize("took_effect", [False, True])
def test_a_move_that_is_killed_at_any_request_is_continued(state: str, took_effect: bool) -> None:
    for number in range(9):
        clusters = source, target = PretendCluster(), PretendCluster(sluiceway=True)
        source.add("a", state)
        config, left = dict(source.configs["a"]), [number]

        def kill(_verb: str, _name: str, left: list[int] = left) -> None:
            if left[0] == 0:
                raise KilledError
            left[0] -= 1

        for cluster in clusters:
            if took_effect:
                kill_after(cluster, kill)
            else:
                cluster.before_write = kill
        with contextlib.suppress(KilledError):
            mover(clusters).move("a")
        for cluster in clusters:
            cluster.before_write = lambda _verb, _name: None
        moved(clusters)
        assert (source.states["a"], target.states["a"]) == ("STOPPED", state), number
        assert source.configs["a"] == target.configs["a"] == config
        assert target.stored["a"] == source.stored["a"]


def kill_after(cluster: PretendCluster, kill: Callable[[str, str], None]) -> None:
    """Raise when the next request of a process that is already dead arrives: the last one took effect."""
    pending: list[bool] = []

    def before(verb: str, name: str) -> None:
        if pending:
            raise KilledError
        try:
            kill(verb, name)
        except KilledError:
            pending.append(True)

    cluster.before_write = before


def test_errors_that_pass_are_waited_for(clusters: Clusters) -> None:
    source, target = clusters
    source.add("a")
    failures = [RestError(0, "gone"), RestError(409, "rebalance"), RestError(500, "timed out")] * 3

    def fail(_verb: str, _name: str) -> None:
        if failures:
            raise failures.pop()

    source.before_write = target.before_write = fail
    moved(clusters)
    assert target.states["a"] == "RUNNING"


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED"])
@pytest.mark.parametrize("verb", ["create", "alter_offsets", "put_config", "start"])
def test_a_failure_on_the_target_gives_the_source_its_state_again(clusters: Clusters, state: str, verb: str) -> None:
    source, target = clusters
    source.add("a", state)
    config = dict(source.configs["a"])
    failures = [RestError(400, "refused.")]

    def fail(each: str, _name: str) -> None:
        if failures and each == ({"RUNNING": "resume", "PAUSED": "pause"}[state] if verb == "start" else verb):
            raise failures.pop()

    target.before_write = fail
    error = refused(clusters)
    again = "Nothing was changed at" if verb == "create" else f"Connector a is {state} again at"
    assert error.startswith(f"refused. {again} http://connect:8083")
    assert "pw" not in error
    assert source.states["a"] == state
    assert source.configs["a"] == config
    if verb != "create":
        assert (target.states["a"], target.configs["a"]) == ("STOPPED", config)
    moved(clusters)
    assert (source.states["a"], target.states["a"]) == ("STOPPED", state)


def test_a_connector_that_had_failed_may_fail_again_on_both_sides(clusters: Clusters) -> None:
    source, target = clusters
    source.add("a", "FAILED")
    source.start_fails = target.start_fails = True
    config = dict(source.configs["a"])
    moved(clusters)
    assert (source.states["a"], target.states["a"]) == ("STOPPED", "FAILED")
    moved((target, source))
    assert (source.states["a"], target.states["a"]) == ("FAILED", "STOPPED")
    assert source.configs["a"] == config


def test_offsets_of_a_target_that_fails_after_its_start_go_back_to_the_source(clusters: Clusters) -> None:
    source, target = clusters
    source.add("a")
    target.start_fails = True
    target.before_write = lambda verb, _: (
        target.stored.__setitem__("a", [{"partition": {"f": "a", "a": 1}, "offset": {"position": 8}}])
        if verb == "resume"
        else None
    )
    assert re.search(r"FAILED at http://ours: Error: boom. Connector a is RUNNING again", refused(clusters))
    assert source.stored["a"][0]["offset"] == {"position": 8}
    assert (source.states["a"], target.states["a"]) == ("RUNNING", "STOPPED")


def test_a_failed_move_is_undone_although_a_rebalance_refuses_that_at_first(clusters: Clusters) -> None:
    source, target = clusters
    source.add("a")
    target.start_fails = True
    refusals = [RestError(409, "rebalance")] * 3

    def refuse(verb: str, _name: str) -> None:
        if verb == "resume" and refusals:
            raise refusals.pop()

    source.before_write = refuse
    assert "Connector a is RUNNING again" in refused(clusters)
    assert not refusals


def test_a_source_that_cannot_be_restored_is_said_and_the_move_continues_later(clusters: Clusters) -> None:
    source, target = clusters
    source.add("a")
    target.start_fails = True
    source.before_write = lambda verb, _: (_ for _ in ()).throw(RestError(400, "no.")) if verb == "resume" else None
    assert "could not get its former state back on the source either: no" in refused(clusters)
    target.start_fails = False
    moved(clusters)
    assert (source.states["a"], target.states["a"]) == ("STOPPED", "RUNNING")


def test_a_stop_that_never_ends_fails_after_the_timeout(clusters: Clusters) -> None:
    source, _ = clusters
    source.add("a")
    source.task_status = lambda name, task: {"state": "RUNNING"}  # type: ignore[method-assign]
    assert re.match(r"Timed out after 0.3 s: a STOPPED at http://connect:8083. .* is RUNNING again", refused(clusters, 0.3))


@pytest.mark.parametrize("known", [True, False], ids=["configured", "unknown"])
def test_a_task_that_is_about_to_start_is_waited_for_before_the_stop(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """A worker that was killed while it stopped a connector starts its tasks again."""
    source, _ = clusters
    source.add("a")
    real, looks, stopped_after = source.status, itertools.count(), []

    def status(name: str) -> dict[str, Any]:
        found = real(name)
        return found if next(looks) > 5 else {**found, "tasks": []}

    monkeypatch.setattr(source, "status", status)
    if not known:
        info = source.info
        monkeypatch.setattr(source, "info", lambda name: {**info(name), "tasks": []})
    source.before_write = lambda verb, _: stopped_after.append(next(looks)) if verb == "stop" else None
    ended: list[int] = []
    monkeypatch.setattr(source, "task_status", lambda _name, task: ended.append(task) or {"state": "UNASSIGNED"})
    moved(clusters)
    assert stopped_after[0] > 5
    assert ended == [0], "its end was looked at"


def test_a_connector_that_gets_no_task_is_stopped_all_the_same(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = clusters
    source.add("a")
    real = source.status
    monkeypatch.setattr(source, "status", lambda name: {**real(name), "tasks": []})
    monkeypatch.setattr(source, "info", lambda name: {"name": name, "tasks": []})
    monkeypatch.setattr(migration, "_FIRST_TASK_SECONDS", 0.01)
    moved(clusters)
    assert (source.states["a"], target.states["a"]) == ("STOPPED", "RUNNING")


def test_a_target_whose_start_failed_is_stopped_although_its_status_is_still_stopped(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = clusters
    source.add("a")
    real = target.status

    def late(name: str) -> dict[str, Any]:
        return {**real(name), "connector": {"state": "STOPPED"}, "tasks": []}

    def resume(name: str, **_: object) -> None:
        target._change("resume", name, "RUNNING")
        monkeypatch.setattr(target, "status", late)
        raise RestError(400, "refused.")

    monkeypatch.setattr(target, "resume", resume)
    assert "Connector a is RUNNING again" in refused(clusters)
    assert (source.states["a"], target.states["a"]) == ("RUNNING", "STOPPED")


def test_a_worker_that_does_not_know_a_status_yet_is_waited_for(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)  # noqa: S311 (no secret)
    for cluster in clusters:

        def status(name: str, real: Callable[[str], Any] = cluster.status) -> dict[str, Any]:
            if chance.random() < 0.5:
                raise RestError(404, f"No status found for connector {name}")
            found: dict[str, Any] = real(name)
            return found

        monkeypatch.setattr(cluster, "status", status)
    source, target = clusters
    source.add("a")
    moved(clusters)
    assert (source.states["a"], target.states["a"]) == ("STOPPED", "RUNNING")


class Worker:
    """Another worker of Kafka Connect than the one asked, which answers as often as ``answers`` says."""

    def __init__(self, answers: Iterator[bool]) -> None:
        self._answers = answers

    def root(self) -> dict[str, Any]:
        if not next(self._answers):
            raise RestError(0, "gone")
        return {}

    def config(self, _name: str) -> dict[str, str]:
        return self.root()


def other_worker(monkeypatch: pytest.MonkeyPatch, source: PretendCluster, *answers: bool) -> list[str]:
    """Let a connector's task run on another worker. Return the list of requests for offsets and of looks at the task."""
    source.worker_id, asked = "other:8083", []
    left = iter(answers)

    def answer() -> Iterator[bool]:
        for each in left:
            asked.append("worker")
            yield each

    monkeypatch.setattr(source, "at", lambda _server, _timeout: Worker(answer()))
    offsets, task_status = source.offsets, source.task_status
    monkeypatch.setattr(source, "offsets", lambda name: asked.append("offsets") or offsets(name))
    monkeypatch.setattr(source, "task_status", lambda name, task: asked.append("task") or task_status(name, task))
    return asked


def test_a_worker_that_is_not_the_leader_is_asked_before_the_offsets_are_read(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The leader removes a task's status before that worker has ended the task."""
    source, target = clusters
    source.add("a")
    asked = other_worker(monkeypatch, source, True, False, False, True)
    moved(clusters)
    read = asked[: asked.index("offsets")]
    assert [each for each, _ in itertools.groupby(read)] == ["worker", "task"] * 3 + ["worker"]
    assert target.states["a"] == "RUNNING"


@pytest.mark.parametrize("seen", [True, False])
def test_the_end_of_a_task_on_a_worker_that_cannot_be_reached_is_seen_or_waited_for(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch, seen: bool
) -> None:
    source, _ = clusters
    source.add("a")
    asked = other_worker(monkeypatch, source, False)
    statuses = iter(["UNASSIGNED"] if seen else [])
    gone = source.task_status

    def task_status(name: str, task: int) -> dict[str, Any]:
        found = next(statuses, None)
        return {"state": found} if found else gone(name, task)

    monkeypatch.setattr(source, "task_status", task_status)
    monkeypatch.setattr(migration_cluster, "_ENDING_SECONDS", LIMIT if seen else 0.05)
    moved(clusters)
    assert (asked.count("task") > 1) is not seen


def test_a_command_that_goes_on_with_a_stopped_connector_asks_its_workers(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target = clusters
    source.add("a")
    interrupted(clusters, "stop")
    assert source.states["a"] == "STOPPED"
    target.stored["a"] = list(source.stored["a"])
    asked = other_worker(monkeypatch, source, True, False, True)
    moved(clusters)
    assert asked[: asked.index("offsets")] == ["worker"] * 3

"""The wait for a cluster that takes over the topics of another one."""

from __future__ import annotations

import pytest

from sluiceway.cli import migration_cluster, migration_take_over
from sluiceway.cli.migration_cluster import MigrationCluster
from sluiceway.cli.migration_steps import MigrationError
from sluiceway.cli.migration_take_over import take_over
from sluiceway.rest.client import RestError
from support.eventually import LIMIT
from unit.cli.pretend_cluster import PretendCluster

Clusters = tuple[PretendCluster, PretendCluster]


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (migration_take_over, migration_cluster):
        monkeypatch.setattr(module, "POLL_SECONDS", 0.001)


@pytest.fixture
def clusters() -> Clusters:
    both = PretendCluster(), PretendCluster(sluiceway=True)
    for cluster in both:
        for name, state in (("a", "RUNNING"), ("b", "PAUSED"), ("c", "FAILED")):
            cluster.add(name, state)
    return both


def ends(source: PretendCluster, after: int) -> None:
    """Let the workers end after some more requests for the version."""
    real = source.root()
    answers = iter([real] * after)

    def root() -> object:
        if (answer := next(answers, None)) is None:
            raise RestError(0, "gone")
        return answer

    source.root = root  # type: ignore[assignment,method-assign]


@pytest.mark.parametrize("running", [True, False])
def test_connectors_are_taken_over_when_the_workers_are_gone(clusters: Clusters, running: bool) -> None:
    source, target = clusters
    ends(source, 5 if running else 0)
    lines: list[str] = []
    moves = take_over(MigrationCluster(source), MigrationCluster(target), ["a", "b", "c"], say=lines.append, timeout=LIMIT)  # type: ignore[arg-type]
    assert lines[-3:] == ["a: RUNNING at http://ours", "b: PAUSED at http://ours", "c: FAILED at http://ours"]
    assert [(move.done, move.error) for move in moves] == [(True, None)] * 3
    assert any("does not respond any more" in line for line in lines) is running
    assert not source.writes + target.writes


def test_a_connector_that_does_not_come_up_does_not_hide_the_others(clusters: Clusters) -> None:
    source, target = clusters
    ends(source, 2)
    target.states["a"] = "FAILED"
    lines: list[str] = []
    moves = take_over(MigrationCluster(source), MigrationCluster(target), ["a", "b"], say=lines.append, timeout=0.1)  # type: ignore[arg-type]
    assert {move.name: move.error for move in moves} == {"a": "It is FAILED, not RUNNING, after 0.1 s: Error: boom.", "b": None}
    assert lines[-1] == ("a: not taken over. It is FAILED, not RUNNING, after 0.1 s: Error: boom. See its driver's log")


def test_workers_that_do_not_end_are_an_error(clusters: Clusters) -> None:
    source, target = clusters
    with pytest.raises(MigrationError, match=r"the workers of http://connect:8083 still run. Stop them"):
        take_over(MigrationCluster(source), MigrationCluster(target), ["a"], say=lambda _: None, timeout=0.05)  # type: ignore[arg-type]

"""The view of connectors on two clusters, between which they move."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.config.worker import MIGRATE_WITH, WorkerConfig
from sluiceway.errors import NotFoundError
from sluiceway.herder import Herder
from sluiceway.provider.ui import moves
from sluiceway.provider.ui.dashboard import Dashboard
from sluiceway.rest.client import RestError
from sluiceway.storage.model import State, TargetState
from support.dashboard import SINK, WORKER, MemoryConnectors


def status(connector: str, *tasks: str) -> dict[str, Any]:
    parts = [{"id": number, "state": state, "worker_id": "connect:8083"} for number, state in enumerate(tasks)]
    return {"name": "any", "connector": {"state": connector, "worker_id": "connect:8083"}, "tasks": parts, "type": "source"}


@pytest.fixture
def there(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The statuses of the other cluster."""
    found: dict[str, dict[str, Any]] = {}
    monkeypatch.setattr(moves.OtherCluster, "statuses", lambda _: found)
    return found


@pytest.fixture
def connectors() -> MemoryConnectors:
    given = MemoryConnectors()
    worker = WorkerConfig.of({**WORKER, MIGRATE_WITH: "http://user:hunter2@connect:8083"})
    given.herder = Herder(worker, given.config, given.status)
    given.dashboard = Dashboard(worker, given.herder, given.config, given.probe, given.airflow)
    return given


def test_each_connector_is_shown_with_both_sides_and_who_runs_it(
    connectors: MemoryConnectors, there: dict[str, dict[str, Any]]
) -> None:
    running, stopped = State.RUNNING, State.STOPPED
    connectors.add("arrived", tasks=[running], sluiceway_migrate_state="RUNNING")
    connectors.add("ending", state=stopped, target=TargetState.STOPPED, sluiceway_moved_to="http://connect:8083")
    connectors.add("only-here", SINK, tasks=[running, State.FAILED])
    connectors.add("secret", tasks=[running])
    connectors.add("twice", tasks=[running])
    there |= {"arrived": status("STOPPED"), "ending": status("STOPPED", "RUNNING"), "twice": status("RUNNING", "RUNNING")}
    there |= {"only-there": status("PAUSED", "PAUSED"), "secret": status("RUNNING")}
    visible = ["arrived", "ending", "only-here", "twice"]
    found = connectors.dashboard.moves(visible, True)
    assert (found["cluster"], found["problem"]) == ("http://connect:8083", None)
    rows = {row.pop("name"): row for row in found["connectors"]}
    assert list(rows) == ["arrived", "ending", "only-here", "only-there", "twice"]
    assert {name: row["run"] for name, row in rows.items()} == {
        "arrived": "here",
        "ending": "there",
        "only-here": "here",
        "only-there": "nobody",
        "twice": "both",
    }
    assert rows["arrived"]["moving"]
    assert rows["ending"]["moved_to"] == "http://connect:8083"
    assert rows["ending"]["there"] == {"state": "STOPPED", "tasks": {"RUNNING": 1}, "workers": ["connect:8083"]}
    assert rows["only-here"]["here"] == {"state": "RUNNING", "tasks": {"RUNNING": 1, "FAILED": 1}, "workers": ["10.0.0.7:8083"]}
    assert rows["only-here"]["there"] is rows["only-there"]["here"] is None
    few = connectors.dashboard.moves(["twice"], False)["connectors"]
    assert [row["name"] for row in few] == ["twice"], "who may not create connectors sees no others of the other cluster"
    assert connectors.dashboard.overview(visible, ())["other_cluster"] == "http://connect:8083"


def test_a_cluster_that_does_not_answer_is_a_problem_and_this_side_is_shown(
    connectors: MemoryConnectors, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object) -> dict[str, Any]:
        raise RestError(0, "Cannot reach the REST API at http://connect:8083.")

    monkeypatch.setattr(moves.OtherCluster, "statuses", refuse)
    connectors.add("a", tasks=[State.RUNNING])
    found = connectors.dashboard.moves(["a"], True)
    assert found["problem"] == "Cannot reach the REST API at http://connect:8083."
    assert [(row["run"], row["there"]) for row in found["connectors"]] == [("here", None)]


def test_without_another_cluster_there_is_no_such_view() -> None:
    given = MemoryConnectors()
    with pytest.raises(NotFoundError, match=r"Set sluiceway\.migrate\.with"):
        given.dashboard.moves([], True)
    assert given.dashboard.overview([], ())["other_cluster"] is None

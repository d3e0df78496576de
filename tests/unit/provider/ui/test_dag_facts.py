"""The state of a connector is true to Airflow's runs, and a DAG's file is compared with the config that runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from sluiceway.provider.ui.dag_facts import DagFacts, DagReader, RunFacts, drift, shown_state
from sluiceway.storage.model import State
from support.dashboard import SINK, MemoryConnectors

NOW = 10_000.0
OK, FAILED = RunFacts("success", NOW - 600, "r1"), RunFacts("failed", NOW - 600, "r1")
EVERY = "*/10 * * * *"


def active(seconds: float) -> RunFacts:
    return RunFacts("running", NOW - seconds, "r2")


# Of a connector that is UNASSIGNED.
CASES: dict[str, tuple[DagFacts | None, str]] = {
    "between two runs": (DagFacts(EVERY, NOW + 60, last=OK), "IDLE"),
    "before its first run": (DagFacts(EVERY, NOW + 60), "IDLE"),
    "due right now": (DagFacts(EVERY, NOW - 5, last=OK), "IDLE"),
    "run by hand or by assets": (DagFacts(None, last=OK), "IDLE"),
    "once failed": (DagFacts(EVERY, NOW + 60, last=FAILED), "FAILED"),
    "failed by hand": (DagFacts(None, last=FAILED), "FAILED"),
    "with a new run": (DagFacts(EVERY, NOW + 60, last=OK, active=active(5)), "STARTING"),
    "with a new run after a failure": (DagFacts(EVERY, NOW + 60, last=FAILED, active=active(5)), "STARTING"),
    "with a run that does not start it": (DagFacts(EVERY, NOW + 60, last=OK, active=active(900)), "UNASSIGNED"),
    "overdue: the scheduler is down": (DagFacts(EVERY, NOW - 900, last=OK), "UNASSIGNED"),
    "paused": (DagFacts(EVERY, NOW + 60, paused=True, last=OK), "UNASSIGNED"),
    "without a DAG": (None, "UNASSIGNED"),
    "whose DAG is gone": (DagFacts(EVERY, NOW + 60, gone=True, last=OK), "UNASSIGNED"),
    "whose file cannot be imported": (DagFacts(EVERY, NOW + 60, import_error=True, last=OK), "UNASSIGNED"),
    "whose file cannot be imported, with a new run": (
        DagFacts(EVERY, NOW + 60, import_error=True, last=OK, active=active(5)),
        "UNASSIGNED",
    ),
    "always running, new": (DagFacts("@continuous", active=active(5)), "STARTING"),
    "always running, dead": (DagFacts("@continuous", active=active(86_400)), "UNASSIGNED"),
    "always running, between two runs": (DagFacts("@continuous", last=RunFacts("success", NOW - 2, "r")), "STARTING"),
    "always running, after its last run": (DagFacts("@continuous", last=OK), "UNASSIGNED"),
    "always running, without a run": (DagFacts("@continuous"), "UNASSIGNED"),
}


@pytest.mark.parametrize(("dag", "shown"), CASES.values(), ids=CASES)
def test_a_connector_without_a_driver_is_what_its_dag_says(dag: DagFacts | None, shown: str) -> None:
    assert shown_state("UNASSIGNED", {}, dag, NOW) == shown
    assert shown_state("UNASSIGNED", {"UNASSIGNED": 1}, dag, NOW) == shown
    assert shown_state("UNASSIGNED", {"FAILED": 1, "UNASSIGNED": 1}, dag, NOW) == "FAILED"


@pytest.mark.parametrize("dag", [each for each, _ in CASES.values()], ids=CASES)
@pytest.mark.parametrize("state", [state.value for state in State if state is not State.UNASSIGNED])
def test_what_a_driver_says_counts_unless_a_task_has_failed(state: str, dag: DagFacts | None) -> None:
    assert shown_state(state, {"RUNNING": 2}, dag, NOW) == state
    assert shown_state(state, {"RUNNING": 2, "FAILED": 1}, dag, NOW) == "FAILED"


STORED = {"name": "a", "connector.class": "X", "tasks.max": "1", "on": "true", "airflow.dag": "d", "airflow.config.task": "t"}
GIVEN: dict[str, Any] = {"name": "a", "connector.class": "X", "tasks.max": 1, "on": True}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (GIVEN, {}),
        (None, {}),
        ({**GIVEN, "left.out": None}, {}),
        ({**GIVEN, "tasks.max": 2}, {"tasks.max": ("1", "2")}),
        ({**GIVEN, "new": "x"}, {"new": (None, "x")}),
        ({key: value for key, value in GIVEN.items() if key != "on"}, {"on": ("true", None)}),
        ({**GIVEN, "on": "{{ params.on }}"}, {}),
    ],
)
def test_a_dags_file_differs_in_the_keys_that_its_next_try_would_change(
    given: dict[str, Any] | None, found: dict[str, tuple[str | None, str | None]]
) -> None:
    assert drift(given, STORED) == found


def test_airflow_is_asked_once_for_all_who_look_at_the_same_time() -> None:
    asked: list[list[str]] = []
    now = 0.0

    def read(dags: Collection[str]) -> dict[str, DagFacts]:
        asked.append(sorted(dags))
        return {dag: DagFacts(dag) for dag in dags if dag != "unknown"}

    reader = DagReader(read, clock=lambda: now)
    assert reader.facts(["a", "unknown"]) == {"a": DagFacts("a")}
    assert reader.facts(["a", "b"]) == {"a": DagFacts("a"), "b": DagFacts("b")}
    assert reader.facts(["unknown"]) == {}
    assert asked == [["a", "unknown"], ["b"]]
    now = 60.0
    reader.facts(["a"])
    assert asked[2:] == [["a"]]


def test_list_and_details_have_the_state_the_dag_and_the_drift_without_secrets() -> None:
    connectors = MemoryConnectors()
    connectors.add("lines", SINK, State.UNASSIGNED, airflow_dag="etl", airflow_config_task="load", db_password="old")
    far = 4e9
    connectors.airflow.facts["etl"] = DagFacts(EVERY, far, last=OK)
    connectors.airflow.configs["etl", "load"] = {"topics": "lines", "connector.class": SINK, "db.password": "new", "file": "/f"}
    [row] = connectors.dashboard.overview(["lines"], ())["connectors"]
    detail = connectors.dashboard.connector("lines", editable=True)
    for found in (row, detail):
        assert found["shown"] == "IDLE"
        assert found["schedule"] == {
            "schedule": EVERY,
            "next": far,
            "paused": False,
            "gone": False,
            "import_error": False,
            "last": {"state": "success", "at": NOW - 600, "run_id": "r1"},
            "active": None,
        }
    assert detail["drift"] == [
        {"key": "db.password", "before": "[hidden]", "after": "[hidden]"},
        {"key": "file", "before": None, "after": "/f"},
    ]

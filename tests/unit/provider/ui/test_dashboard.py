"""Tests of the data that the page shows."""

from __future__ import annotations

import orjson
import pytest

from sluiceway.api import TopicPartition
from sluiceway.errors import NotFoundError
from sluiceway.storage.model import State, TargetState
from support.dashboard import SINK, MemoryConnectors

TRACE = """Traceback (most recent call last):
  File "a.py", line 1, in put
    insert()
KeyError: 'a'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "b.py", line 2, in run
    put()
DataError: Field 'a' is missing.
See the schema.
"""


@pytest.fixture
def connectors() -> MemoryConnectors:
    made = MemoryConnectors()
    made.add("in", tasks=[State.RUNNING, State.FAILED], trace=TRACE)
    made.add("out", SINK, state=State.PAUSED, target=TargetState.PAUSED, db_password="hunter2", airflow_dag="mine")
    made.probe.ends = {TopicPartition("out", 0): 10}
    made.probe.committed = {"connect-out": {TopicPartition("out", 0): 4}}
    made.dashboard.sampler.sample()
    return made


def test_a_row_has_the_state_and_progress_of_a_connector(connectors: MemoryConnectors) -> None:
    found = connectors.dashboard.overview(["in", "out"], {"out"})
    first, second = found["connectors"]
    assert first == {
        "name": "in",
        "type": "source",
        "class": "FileStreamSource",
        "dag": "in",
        "config_task": None,
        "moved_to": None,
        "moving": False,
        "state": "RUNNING",
        "target": "STARTED",
        "tasks": {"RUNNING": 1, "FAILED": 1},
        "error": "DataError",
        "rate": None,
        "lag": None,
        "dead_letters": None,
        "may_edit": False,
        "shown": "FAILED",
        "schedule": None,
    }
    assert (second["state"], second["target"], second["lag"], second["dag"]) == ("PAUSED", "PAUSED", 6, "mine")
    assert second["may_edit"]
    [first, _] = connectors.dashboard.overview(["in", "out"], {"in", "out"})["connectors"]
    assert first["error"] == "DataError: Field 'a' is missing."
    orjson.dumps(found)


def test_the_tab_of_a_dag_shows_only_its_connectors(connectors: MemoryConnectors) -> None:
    assert [row["name"] for row in connectors.dashboard.overview(["in", "out"], (), "mine")["connectors"]] == ["out"]
    assert connectors.dashboard.overview(["in", "out"], (), "other")["connectors"] == []


def test_deleted_connectors_are_left_out(connectors: MemoryConnectors) -> None:
    assert [row["name"] for row in connectors.dashboard.overview(["in", "gone"], ())["connectors"]] == ["in"]
    with pytest.raises(NotFoundError, match="Connector gone not found"):
        connectors.dashboard.connector("gone", True)


def test_the_details_of_a_connector_hide_its_secrets(connectors: MemoryConnectors) -> None:
    found = connectors.dashboard.connector("out", True)
    assert found["partitions"] == [{"topic": "out", "partition": 0, "offset": 4, "end": 10, "lag": 6}]
    assert found["config"]["db.password"] == "[hidden]"
    assert b"hunter2" not in orjson.dumps(found)
    assert connectors.dashboard.connector("in", True)["tasks_in_full"][1]["trace"] == TRACE


def test_a_java_trace_is_summarized_by_its_first_line_and_a_long_one_shortened(connectors: MemoryConnectors) -> None:
    huge = "org.apache.X: no\n\tat org.apache.Y\n" * 10_000
    connectors.add("java", state=State.FAILED, trace=huge)
    found = connectors.dashboard.connector("java", True)
    assert found["error"] == "org.apache.X: no"
    assert len(found["trace"]) < 21_000


def test_who_may_not_edit_a_connector_sees_errors_without_messages(connectors: MemoryConnectors) -> None:
    found = connectors.dashboard.connector("in", False)
    assert "Field 'a'" not in orjson.dumps(found).decode()
    assert "DataError" in found["tasks_in_full"][1]["trace"]

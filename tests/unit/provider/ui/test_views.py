"""The JSON of the page, and its places in Airflow's UI."""

from __future__ import annotations

import orjson
import pytest

from sluiceway.api import TopicPartition
from sluiceway.errors import NotFoundError
from sluiceway.kafka.dead_letter_headers import DeadLetterRecord
from sluiceway.provider.plugin import external_views
from sluiceway.provider.ui import views
from sluiceway.provider.ui.dashboard import password_keys
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


def test_a_row_says_how_a_connector_fares(connectors: MemoryConnectors) -> None:
    found = connectors.dashboard.overview(["in", "out"], {"out"})
    first, second = found["connectors"]
    assert first == {
        "name": "in",
        "type": "source",
        "class": "FileStreamSource",
        "dag": "in",
        "state": "RUNNING",
        "target": "STARTED",
        "tasks": {"RUNNING": 1, "FAILED": 1},
        "error": "DataError: Field 'a' is missing.",
        "rate": None,
        "lag": None,
        "dead_letters": None,
        "may_edit": False,
    }
    assert (second["state"], second["target"], second["lag"], second["dag"]) == ("PAUSED", "PAUSED", 6, "mine")
    assert second["may_edit"]
    orjson.dumps(found)


def test_a_dags_tab_shows_only_what_the_dag_runs(connectors: MemoryConnectors) -> None:
    assert [row["name"] for row in connectors.dashboard.overview(["in", "out"], (), "mine")["connectors"]] == ["out"]
    assert connectors.dashboard.overview(["in", "out"], (), "other")["connectors"] == []


def test_connectors_deleted_since_are_left_out(connectors: MemoryConnectors) -> None:
    assert [row["name"] for row in connectors.dashboard.overview(["in", "gone"], ())["connectors"]] == ["in"]
    with pytest.raises(NotFoundError, match="Connector gone not found"):
        connectors.dashboard.connector("gone", True)


def test_one_connector_is_told_in_full_without_its_secrets(connectors: MemoryConnectors) -> None:
    found = connectors.dashboard.connector("out", True)
    assert found["partitions"] == [{"topic": "out", "partition": 0, "offset": 4, "end": 10, "lag": 6}]
    assert found["config"]["db.password"] == "[hidden]"
    assert b"hunter2" not in orjson.dumps(found)
    assert connectors.dashboard.connector("in", True)["tasks_in_full"][1]["trace"] == TRACE


def test_a_java_trace_is_summed_up_by_its_first_line_and_a_huge_one_shortened(connectors: MemoryConnectors) -> None:
    huge = "org.apache.X: no\n\tat org.apache.Y\n" * 10_000
    connectors.add("java", state=State.FAILED, trace=huge)
    found = connectors.dashboard.connector("java", True)
    assert found["error"] == "org.apache.X: no"
    assert len(found["trace"]) < 21_000


def test_dead_letters_are_told_without_their_records() -> None:
    headers = [("__connect.errors.topic", b"a"), ("__connect.errors.exception.message", b"bad"), ("own", b"private")]
    found = views.letters("dead", 7, [DeadLetterRecord("dead", 0, 3, 1000, b"private", b"private", headers)])
    [letter] = found["letters"]
    assert (found["count"], letter["place"], letter["topic"], letter["message"], letter["stage"]) == (7, "0:3", "a", "bad", None)
    assert b"private" not in orjson.dumps(found)


def test_keys_of_a_class_that_is_not_here_are_judged_by_name_alone() -> None:
    assert password_keys({"connector.class": "org.example.NotHere"}) == set()


@pytest.mark.parametrize(("base_url", "prefix"), [("", ""), ("http://host:8080", ""), ("https://host/airflow/", "/airflow")])
def test_the_page_is_below_airflows_own_address(base_url: str, prefix: str) -> None:
    page, tab = external_views(base_url)
    assert page["href"] == f"{prefix}/sluiceway/ui/index.html"
    assert tab["href"] == f"{prefix}/sluiceway/ui/index.html?dag={{DAG_ID}}"
    assert (page["destination"], tab["destination"]) == ("nav", "dag")

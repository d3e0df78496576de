"""Source connectors in a preview."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.preview import source
from sluiceway.preview.process import Teller, run
from sluiceway.preview.request import Limits, PreviewRequest
from support.eventually import LIMIT
from support.preview_connectors import PARTITION, SOURCE

WORKER = WorkerConfig.of({"bootstrap.servers": "localhost:1", "value.converter": "StringConverter"})
THREE = Limits(3, LIMIT)


@pytest.fixture(autouse=True)
def soon_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_IDLE_SECONDS", 0.1)


def previewed(limits: Limits = THREE, offsets: Any = None, **config: str) -> list[dict[str, Any]]:
    """Return the events of a preview."""
    events: list[dict[str, Any]] = []
    full = {"name": "odd", "connector.class": SOURCE, **{key.replace("_", "."): value for key, value in config.items()}}
    run(PreviewRequest(full, WORKER, offsets, limits), Teller(events.append))
    return events


def records(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == "record"]


def written(events: list[dict[str, Any]]) -> list[str]:
    return [image["value"]["text"] for event in records(events) for image in event["written"]]


def note(events: list[dict[str, Any]]) -> str:
    assert events[-1]["event"] == "end"
    return str(events[-1]["note"])


def test_it_shows_as_many_records_as_wanted_and_commits_nothing(tmp_path: Path) -> None:
    events = previewed(trace=str(tmp_path / "trace"))
    assert written(events) == ["n1", "n2", "n3"]
    assert note(events) == ""
    assert not (tmp_path / "trace").exists()


def test_more_records_than_one_poll_returns() -> None:
    assert len(records(previewed(Limits(12, LIMIT)))) == 12


def test_it_continues_from_stored_offsets() -> None:
    assert written(previewed(offsets=[(PARTITION, {"n": 7})])) == ["n8", "n9", "n10"]


def test_it_polls_the_tasks_in_turn() -> None:
    assert written(previewed(Limits(7, LIMIT), tasks_max="2")) == ["n1", "n2", "n3", "n4", "n5", "n1", "n2"]


def test_a_source_without_records_says_so() -> None:
    events = previewed(behavior="nothing")
    assert (records(events), note(events)) == ([], "The source had no records for 0.1 s.")


def test_a_slow_source_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_IDLE_SECONDS", 60.0)
    assert note(previewed(Limits(3, 0.3), behavior="nothing")) == "The source had no records within 0.3 s."


def test_a_connector_without_tasks_says_so() -> None:
    assert note(previewed(behavior="no tasks")) == "The connector has no tasks now: it found nothing to read."


def test_a_connector_with_effects_is_not_started() -> None:
    assert note(previewed(behavior="effects")) == (
        "The connector was not started, because it turns the lights off. The config is valid."
    )


def test_a_connector_with_effects_may_offer_a_preview() -> None:
    events = previewed(behavior="effects with preview")
    assert written(events) == ["n100", "n101", "n102"]
    assert "it turns the lights off" in note(events)


def test_a_retriable_error_of_poll_is_a_warning() -> None:
    events = previewed(behavior="retry")
    assert [event["text"] for event in events if event["event"] == "warning"] == ["poll() failed and would be retried: away"]
    assert written(events) == ["n2", "n3", "n4"]


def test_a_failed_start_is_told() -> None:
    events = previewed(behavior="bad start", secret="hunter2")
    assert events[-1]["error"]["message"].endswith("cannot start with hunter2")  # the answer hides what a provider resolved


def test_a_failed_stop_changes_nothing() -> None:
    assert len(written(previewed(behavior="bad stop"))) == 3


def test_java_sources_are_not_started() -> None:
    assert "Java plugin" in note(previewed(connector_class="support.preview_connectors.OddJavaConnector"))


def test_spark_sources_are_not_started() -> None:
    events = previewed(connector_class="SparkSource", path="/nowhere", format="parquet", topic="t")
    assert "Spark driver" in note(events)


def test_a_converter_that_fails_is_told_with_the_outcome() -> None:
    converter = "org.apache.kafka.connect.converters.LongConverter"
    (event,) = records(previewed(Limits(1, LIMIT), value_converter=converter, errors_tolerance="all"))
    assert (event["written"], event["error"]["stage"], event["error"]["tolerated"]) == ([], "VALUE_CONVERTER", True)


def test_the_chain_is_shown_step_by_step() -> None:
    hoist = "org.apache.kafka.connect.transforms.HoistField$Value"
    (event,) = records(previewed(Limits(1, LIMIT), transforms="h", transforms_h_type=hoist, transforms_h_field="line"))
    assert event["before"]["value"]["data"] == "n1"
    assert [step["outcome"] for step in event["steps"]] == ["changed"]
    assert event["written"][0]["value"]["text"] == "Struct{line=n1}"

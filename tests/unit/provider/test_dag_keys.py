"""The airflow.* keys of a connector config."""

from __future__ import annotations

import pytest
from sluiceway.errors import ConfigError
from sluiceway.provider.dag_keys import DagKeys, dag_of, inlined, is_generated, is_sink_config


def test_without_keys_a_connector_runs_for_ever() -> None:
    assert DagKeys.parse({}) == DagKeys(mode="long-running", schedule="@continuous")


def test_a_micro_batch_runs_by_its_schedule_or_when_triggered() -> None:
    assert DagKeys.parse({"airflow.mode": "micro-batch", "airflow.schedule": "*/5 * * * *"}).schedule == "*/5 * * * *"
    assert DagKeys.parse({"airflow.mode": "micro-batch"}).schedule is None


def test_owner_tags_and_retries_are_taken_over() -> None:
    keys = DagKeys.parse({"airflow.owner": "data", "airflow.tags": "a, b,,", "airflow.retries": "3"})
    assert (keys.owner, keys.tags, keys.retries) == ("data", ("a", "b"), 3)


@pytest.mark.parametrize(
    ("key", "value"),
    [("airflow.mode", "sometimes"), ("airflow.schedule", "@daily"), ("airflow.retries", "-1"), ("airflow.retries", "x")],
)
def test_keys_that_cannot_be_a_dag_are_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        DagKeys.parse({key: value})


def test_only_what_the_dag_needs_leaves_the_config_topic() -> None:
    config = {"connector.class": "X", "topics": "t", "airflow.tags": "a", "connection.password": "hush", "spark.x": "2"}
    assert inlined(config) == {"connector.class": "X", "topics": "t", "airflow.tags": "a"}


@pytest.mark.parametrize(("config", "sink"), [({"topics": "t"}, True), ({"topics.regex": "t.*"}, True), ({"topic": "t"}, False)])
def test_a_config_with_topics_is_a_sinks(config: dict[str, str], sink: bool) -> None:
    assert is_sink_config(config) is sink


def test_a_source_may_have_topics_too() -> None:
    assert not is_sink_config({"connector.class": "MirrorSource", "topics": "t"})
    assert is_sink_config({"connector.class": "FileStreamSink", "topics": "t"})
    assert is_sink_config({"connector.class": "not.installed.Here", "topics": "t"})


def test_a_config_may_name_a_hand_written_dag() -> None:
    assert (dag_of("a b", {}), is_generated({})) == ("a_x20b", True)
    assert (dag_of("a b", {"airflow.dag": "mine"}), is_generated({"airflow.dag": "mine"})) == ("mine", False)

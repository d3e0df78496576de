"""Tests of the airflow.* keys of a connector's config."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from sluiceway.errors import ConfigError
from sluiceway.provider.dag_bundle.dag_keys import DagKeys, dag_of, is_generated, is_sink_config


def test_without_keys_a_connector_runs_continuously() -> None:
    assert DagKeys.parse({}) == DagKeys(mode="long-running", schedule="@continuous")


def test_a_micro_batch_runs_by_its_schedule_or_when_triggered() -> None:
    assert DagKeys.parse({"airflow.mode": "micro-batch", "airflow.schedule": "*/5 * * * *"}).schedule == "*/5 * * * *"
    assert DagKeys.parse({"airflow.mode": "micro-batch"}).schedule is None


def test_owner_tags_and_retries_are_parsed() -> None:
    keys = DagKeys.parse({"airflow.owner": "data", "airflow.tags": "a, b,,", "airflow.retries": "3"})
    assert (keys.owner, keys.tags, keys.retries) == ("data", ("a", "b"), 3)


@pytest.mark.parametrize(
    ("key", "value"),
    [("airflow.mode", "sometimes"), ("airflow.schedule", "@daily"), ("airflow.retries", "-1"), ("airflow.retries", "x")],
)
def test_invalid_keys_are_rejected(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        DagKeys.parse({key: value})


def test_a_micro_batch_may_follow_assets() -> None:
    batch = {"airflow.mode": "micro-batch"}
    every = DagKeys.parse({**batch, "airflow.schedule": "asset:s3://b/k, kafka://h/t"})
    assert (every.schedule, every.assets, every.any_asset) == (None, ("s3://b/k", "kafka://h/t"), False)
    either = DagKeys.parse({**batch, "airflow.schedule": "asset:s3://b/k|kafka://h/t"})
    assert (either.assets, either.any_asset) == (("s3://b/k", "kafka://h/t"), True)


def test_a_sink_may_run_by_lag_and_a_source_may_not() -> None:
    batch = {"airflow.mode": "micro-batch", "airflow.schedule": "lag:500"}
    keys = DagKeys.parse({**batch, "topics": "t"})
    assert (keys.schedule, keys.lag) == (None, 500)
    with pytest.raises(ConfigError, match="only a sink has a lag"):
        DagKeys.parse(batch)


def test_a_start_date_is_parsed_in_utc() -> None:
    timed = {"airflow.mode": "micro-batch", "airflow.schedule": "@daily"}
    keys = DagKeys.parse({**timed, "airflow.catchup": "true", "airflow.start.date": "2024-05-01"})
    assert (keys.catchup, keys.start_date) == (True, datetime(2024, 5, 1, tzinfo=timezone.utc))


def test_callbacks_are_parsed_by_key() -> None:
    assert DagKeys.parse({"airflow.on.failure.callback": "a.b, c.d"}).callbacks == {"airflow.on.failure.callback": ("a.b", "c.d")}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("airflow.schedule", "asset:"),
        ("airflow.schedule", "asset:orders"),
        ("airflow.schedule", "lag:0"),
        ("airflow.schedule", "lag:many"),
        ("airflow.catchup", "perhaps"),
        ("airflow.start.date", "yesterday"),
    ],
)
def test_invalid_keys_of_a_micro_batch_are_rejected(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        DagKeys.parse({"airflow.mode": "micro-batch", "topics": "t", key: value})


@pytest.mark.parametrize(("config", "sink"), [({"topics": "t"}, True), ({"topics.regex": "t.*"}, True), ({"topic": "t"}, False)])
def test_a_config_with_topics_is_a_sink(config: dict[str, str], sink: bool) -> None:
    assert is_sink_config(config) is sink


def test_a_source_class_with_topics_is_a_source() -> None:
    assert not is_sink_config({"connector.class": "MirrorSource", "topics": "t"})
    assert is_sink_config({"connector.class": "FileStreamSink", "topics": "t"})
    assert is_sink_config({"connector.class": "not.installed.Here", "topics": "t"})


def test_a_config_may_name_a_hand_written_dag() -> None:
    assert (dag_of("a b", {}), is_generated({})) == ("a_x20b", True)
    assert (dag_of("a b", {"airflow.dag": "mine"}), is_generated({"airflow.dag": "mine"})) == ("mine", False)

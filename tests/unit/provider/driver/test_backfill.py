"""Tests of a backfill's temporary connector."""

from __future__ import annotations

from datetime import datetime, timezone
from types import SimpleNamespace

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.provider.driver.backfill import Backfill
from sluiceway.provider.driver.run_variables import run_variables

START, END = datetime(2024, 5, 1, tzinfo=timezone.utc), datetime(2024, 5, 2, tzinfo=timezone.utc)


def _variables(start: datetime, end: datetime) -> dict[str, str]:
    return run_variables({"dag_run": SimpleNamespace(data_interval_start=start, data_interval_end=end)})


WINDOW = _variables(START, END)


def test_a_sinks_backfill_has_its_own_name_group_and_time_window() -> None:
    live = {
        "name": "c",
        "topics": "t",
        "consumer.override.group.id": "mine",
        "transforms": "a",
        "predicates": "p",
        "sluiceway.application": "x",
        "airflow.config.task": "load",
    }
    backfill = Backfill.plan("c", live, WINDOW)
    assert (backfill.name, backfill.of, backfill.start) == ("c.backfill.1714521600000", "c", 1714521600000)
    config = backfill.config
    assert "consumer.override.group.id" not in config
    assert "airflow.config.task" not in config, "the run makes and deletes it"
    assert config["sluiceway.application"] == "x", "the warm application runs it"
    assert (config["name"], config["airflow.dag"], config["airflow.mode"]) == (backfill.name, "c.backfill", "micro-batch")
    assert (config["transforms"], config["predicates"]) == ("sluicewayWindow,a", "sluicewayWindow,p")
    assert config["predicates.sluicewayWindow.to.ms"] == "1714608000000"


def test_a_sinks_backfill_has_its_own_group_even_if_the_worker_sets_one() -> None:
    backfill = Backfill.plan("c", {"topics": "t"}, WINDOW)
    shared = WorkerConfig.of({"consumer.group.id": "shared"})
    own = backfill.for_worker(shared)
    assert own.config == {**backfill.config, "consumer.override.group.id": f"connect-{backfill.name}"}
    assert backfill.for_worker(WorkerConfig.of({})) == backfill
    source = Backfill.plan("c", {"query": "where day = '${airflow:run:ds}'"}, WINDOW)
    assert source.for_worker(shared) == source


def test_a_sources_backfill_requires_a_reference_to_the_run() -> None:
    backfill = Backfill.plan("c", {"query": "where day = '${airflow:run:ds}'"}, WINDOW)
    assert "transforms" not in backfill.config
    with pytest.raises(ConfigError, match="does not refer to the DAG run"):
        Backfill.plan("c", {"query": "${airflow:variable:ds}"}, WINDOW)


def test_an_empty_data_interval_is_rejected() -> None:
    moment = _variables(START, START)
    with pytest.raises(ConfigError, match="is empty"):
        Backfill.plan("c", {"topics": "t"}, moment)

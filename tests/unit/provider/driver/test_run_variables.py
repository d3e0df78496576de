"""Tests of the variables of a DAG run."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from types import SimpleNamespace

import airflow.sdk
import pytest

from sluiceway.config.environment import HANDED_OVER
from sluiceway.config.variables import resolver, worker_overrides
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.provider.config_provider import environment
from sluiceway.provider.driver.run_variables import NAMES, is_backfill, run_variables

PROPERTIES = {"config.providers": "airflow", "config.providers.airflow.class": "AirflowConfigProvider"}
HAS_PARTITIONS = hasattr(airflow.sdk, "CronPartitionTimetable")
HOUR = 3_600_000
START, END = datetime(2024, 5, 1, tzinfo=timezone.utc), datetime(2024, 5, 2, tzinfo=timezone.utc)


def _run(**fields: object) -> SimpleNamespace:
    usual = {"run_id": "r", "dag_id": "d", "run_type": "scheduled", "logical_date": START, "run_after": END}
    return SimpleNamespace(**(usual | fields))


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def test_a_scheduled_run_has_its_data_interval() -> None:
    found = run_variables({"dag_run": _run(data_interval_start=START, data_interval_end=END)})
    assert sorted(found) == sorted(NAMES)
    assert found["data_interval_start"] == "2024-05-01T00:00:00+00:00"
    assert found["data_interval_end_ms"] == "1714608000000"
    assert (found["ds"], found["run_type"], found["dag_id"]) == ("2024-05-01", "scheduled", "d")


def test_a_run_without_an_interval_has_run_after_as_both_ends() -> None:
    found = run_variables({"dag_run": _run(logical_date=None)})
    assert found["data_interval_start"] == found["data_interval_end"] == "2024-05-02T00:00:00+00:00"


@pytest.mark.skipif(not HAS_PARTITIONS, reason="before Airflow 3.2, runs have no partitions")
@pytest.mark.parametrize(
    ("zone", "date", "end"),
    [
        ("UTC", "2026-11-30T05:00Z", "2026-11-30T06:00Z"),
        ("Europe/Berlin", "2026-10-25T00:00Z", "2026-10-25T01:00Z"),  # two o'clock, twice
        ("Europe/Berlin", "2026-10-25T01:00Z", "2026-10-25T02:00Z"),
        ("Europe/Berlin", "2026-03-29T00:00Z", "2026-03-29T01:00Z"),
    ],
)
def test_the_interval_of_a_partition_lasts_to_the_next_time_of_its_timetable(zone: str, date: str, end: str) -> None:
    from airflow.sdk import CronPartitionTimetable

    dag = SimpleNamespace(timetable=CronPartitionTimetable("0 * * * *", timezone=zone))
    run = _run(logical_date=None, partition_key="any", partition_date=_time(date))
    found = run_variables({"dag_run": run, "dag": dag})
    assert (found["data_interval_start"], found["data_interval_end"]) == (_time(date).isoformat(), _time(end).isoformat())


def test_the_interval_of_a_partition_is_that_of_the_events_of_live_assets() -> None:
    def event(hour: int, **extra: object) -> SimpleNamespace:
        return SimpleNamespace(extra={"start": hour * HOUR, "end": (hour + 1) * HOUR, "partition_key": "k", **extra})

    events = {"a": [event(2), event(3)], "b": [event(2), SimpleNamespace(extra={"records": 5})]}
    context = {"dag_run": _run(partition_key="day"), "triggering_asset_events": events}
    assert (run_variables(context)["data_interval_start_ms"], run_variables(context)["data_interval_end_ms"]) == (
        str(2 * HOUR),
        str(4 * HOUR),
    )
    context["dag_run"] = _run(partition_key=None)
    assert run_variables(context)["data_interval_start_ms"] == run_variables(context)["data_interval_end_ms"]


def test_a_partition_without_times_is_no_interval() -> None:
    found = run_variables({"dag_run": _run(logical_date=None, partition_key="eu"), "dag": SimpleNamespace(timetable=None)})
    assert found["data_interval_start"] == found["data_interval_end"]


def test_the_runs_values_are_passed_to_the_driver_unmasked(monkeypatch: pytest.MonkeyPatch) -> None:
    masked: list[str] = []
    monkeypatch.setattr("airflow.sdk.log.mask_secret", lambda value, *_: masked.append(value))
    run = run_variables({"dag_run": _run()})
    variables = environment(PROPERTIES, {"query": "since ${airflow:run:data_interval_start} of ${airflow:run:run_id}"}, run)
    monkeypatch.setenv(HANDED_OVER, variables[HANDED_OVER])
    resolved = resolver(WorkerConfig.of(PROPERTIES)).resolve({"query": "since ${airflow:run:data_interval_start}"})
    assert resolved == {"query": f"since {run['data_interval_start']}"}
    assert masked == []


@pytest.mark.parametrize(("name", "why"), [("ds", "available only while a DAG runs"), ("today", "has no variable 'today'")])
def test_a_reference_to_the_run_fails_outside_of_a_run(name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        resolver(WorkerConfig.of(PROPERTIES)).resolve({"x": f"${{airflow:run:{name}}}"})


def test_worker_properties_of_a_connection_are_passed_to_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = environment({}, {}, overrides={"bootstrap.servers": "k:1"})
    assert json.loads(variables[HANDED_OVER])
    monkeypatch.setenv(HANDED_OVER, variables[HANDED_OVER])
    assert worker_overrides() == {"bootstrap.servers": "k:1"}


def test_a_run_of_the_type_backfill_is_a_backfill() -> None:
    assert is_backfill({"dag_run": _run(run_type="backfill")})
    assert not is_backfill({"dag_run": _run()})
    assert not is_backfill({})

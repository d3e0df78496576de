"""Derives the variables ``${airflow:run:...}`` of a connector's config from a DAG run. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

RUN = "run"
"""The path of these references, after the name of Airflow's config provider."""

TIMES = ("data_interval_start", "data_interval_end", "logical_date")
NAMES = (*TIMES, *(f"{each}_ms" for each in TIMES), "ds", "run_id", "run_type", "dag_id")


def run_variables(context: Mapping[str, Any]) -> dict[str, str]:
    """Return a run's variables from a task's context.

    Times are ISO 8601 in UTC, those with ``_ms`` milliseconds since the epoch; ``ds`` is the date of the interval's start. The
    data interval of a run for a partition is that of the partition. A run without one (triggered manually or by an asset) has its
    logical date, or ``run_after``, as both ends.
    """
    run = context.get("dag_run")
    moment = getattr(run, "logical_date", None) or getattr(run, "run_after", None) or datetime.now(timezone.utc)
    partition = _partition(context, run) or (None, None)
    start = partition[0] or context.get("data_interval_start") or getattr(run, "data_interval_start", None) or moment
    end = partition[1] or context.get("data_interval_end") or getattr(run, "data_interval_end", None) or moment
    times = dict(zip(TIMES, (_utc(start), _utc(end), _utc(moment)), strict=True))
    return {
        **{name: time.isoformat() for name, time in times.items()},
        **{f"{name}_ms": str(milliseconds(time)) for name, time in times.items()},
        "ds": times["data_interval_start"].date().isoformat(),
        "run_id": str(getattr(run, "run_id", "")),
        "run_type": _text(getattr(run, "run_type", "")),
        "dag_id": str(getattr(run, "dag_id", "")),
    }


def _partition(context: Mapping[str, Any], run: Any) -> tuple[datetime, datetime] | None:
    """Return the start and the end of a run's partition (Airflow 3.2 and newer); None if it has none, or one without times.

    The times are in the events of live assets (``sluiceway.provider.live_assets``) that have triggered the run. Otherwise it
    lasts from its date to the next time of the DAG's ``CronPartitionTimetable``.
    """
    if not getattr(run, "partition_key", None):
        return None
    events = [event for found in (context.get("triggering_asset_events") or {}).values() for event in found]
    times = [(each.extra["start"], each.extra["end"]) for each in events if {"start", "end", "partition_key"} <= {*each.extra}]
    if times:
        start, end = min(start for start, _ in times), max(end for _, end in times)
        return datetime.fromtimestamp(start / 1000, timezone.utc), datetime.fromtimestamp(end / 1000, timezone.utc)
    date, timetable = getattr(run, "partition_date", None), getattr(context.get("dag"), "timetable", None)
    if date is None or type(timetable).__name__ != "CronPartitionTimetable":
        return None
    return date, _next_time(timetable, date)


def _next_time(timetable: Any, date: datetime) -> datetime:
    """Return the first time of a cron expression after a date, as Airflow finds it: its zone may change to summer time."""
    import pendulum
    from airflow.timetables.base import DataInterval, TimeRestriction
    from airflow.timetables.trigger import CronTriggerTimetable

    found = CronTriggerTimetable(timetable.expression, timezone=timetable.timezone).next_dagrun_info(
        last_automated_data_interval=DataInterval.exact(pendulum.instance(date)),
        restriction=TimeRestriction(earliest=None, latest=None, catchup=True),
    )
    assert found is not None  # noqa: S101 (there is no latest time)
    return found.run_after


def milliseconds(time: datetime) -> int:
    """Return a time as milliseconds since the epoch."""
    return round(time.timestamp() * 1000)


def is_backfill(context: Mapping[str, Any]) -> bool:
    """Return whether the task's DAG run belongs to a backfill."""
    return _text(getattr(context.get("dag_run"), "run_type", "")) == "backfill"


def _utc(time: datetime) -> datetime:
    return datetime.fromtimestamp(time.timestamp(), timezone.utc)


def _text(value: Any) -> str:
    """Return an enum member's value, or a plain string, as text: Airflow passes either."""
    return str(getattr(value, "value", value))

"""Reports a connector's progress by Airflow's own metrics, to StatsD, OpenTelemetry, or Datadog. Runs in the Airflow task.

Airflow's ``[metrics]`` settings say where to. Names follow Airflow: with tags where the receiver knows them, otherwise (plain
StatsD) with the connector's name within the metric's.
"""

from __future__ import annotations

import re

from sluiceway.provider.compat import Stats, conf
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.run_summary import RunSummary

_PREFIX = "sluiceway.connector"
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_.-]")  # in a metric's name


def report_progress(connector: str, before: ConnectorProgress | None, now: ConnectorProgress) -> None:
    """Report what a connector has moved between two measurements, and its lag and dead letter queue records."""
    if before is not None and before.count is not None and now.count is not None and now.count > before.count:
        name, tags = _name(connector, "records")
        Stats.incr(name, now.count - before.count, tags=tags)
    for what, value in (("lag", now.lag), ("dead_letters", now.dead_letters)):
        if value is not None:
            name, tags = _name(connector, what)
            Stats.gauge(name, value, tags=tags)


def report_run(connector: str, moved: RunSummary) -> None:
    """Report the duration of a run that has ended."""
    name, tags = _name(connector, "run.duration")
    Stats.timing(name, moved.seconds * 1000, tags=tags)


def report_late(connector: str, records: int) -> None:
    """Report records that came after their interval was closed."""
    name, tags = _name(connector, "late_records")
    Stats.incr(name, records, tags=tags)


def report_no_progress(connector: str) -> None:
    """Report that a connector counts as one without progress."""
    name, tags = _name(connector, "no_progress")
    Stats.incr(name, tags=tags)


def _name(connector: str, what: str) -> tuple[str, dict[str, str] | None]:
    """Return a metric's name and its tags; None where the receiver does not know tags."""
    plain = conf.getboolean("metrics", "statsd_on", fallback=False)
    if plain and not conf.getboolean("metrics", "statsd_influxdb_enabled", fallback=False):
        return f"{_PREFIX}.{_FORBIDDEN.sub('_', connector)}.{what}", None
    return f"{_PREFIX}.{what}", {"connector": connector}

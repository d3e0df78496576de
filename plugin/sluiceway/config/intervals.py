"""The keys that say which records a run of a scheduled connector moves. No I/O.

A run with ``airflow.interval=exact`` moves the records of its interval, whose times are from its start to before its end, and
each record belongs to one interval. ``storage.intervals`` has the rule for Kafka's records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.schedules import CATCHUP
from sluiceway.config.validators import Check, NonEmptyString, OneOf, OrNull, Range
from sluiceway.errors import ConfigError

INTERVAL = "airflow.interval"
AVAILABLE, EXACT = "available", "exact"
FIELD = "airflow.interval.field"
TIME = "airflow.interval.time"
RECORD = "record"
LATENESS = "airflow.interval.lateness"
LATE = "airflow.interval.late"
NEXT, DLQ, RERUN = "next", "dlq", "rerun"
RERUN_WITHIN = "airflow.interval.rerun.within"
AGAIN = "airflow.interval.again"
COLUMN = "airflow.interval.column"
MAX_ACTIVE_RUNS = "airflow.max.active.runs"
SKIP, APPEND = "skip", "append"
START = "airflow.interval.start.ms"
END = "airflow.interval.end.ms"
POSITIONS = "airflow.interval.positions"
ATTEMPT = "airflow.interval.attempt"
CONNECTOR = "airflow.interval.connector"
RERUNS = "airflow.interval.reruns"
_DEFAULT_LATENESS, _DEFAULT_WITHIN = "10s", "7d"
_DURATION = re.compile(r"(\d+)\s*(ms|s|m|h|d)")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """The times from ``start`` to before ``end``, in milliseconds since the epoch."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"[{_text(self.start)}, {_text(self.end)})"


@dataclass(frozen=True, slots=True)
class IntervalSettings:
    """The parsed keys.

    Attributes:
        choice: ``available`` or ``exact``; None if the config leaves it open.
        catches_up: whether Airflow makes runs for intervals in the past.
        lateness: milliseconds that records may come later than their time.
        late: what happens to records that come even later: ``next``, ``dlq``, or ``rerun``.
        rerun_within: milliseconds before an interval from which the intervals of late records are moved again.
        again: what a run does whose interval was moved before, if the target keeps what was written: ``skip`` or ``append``.
        column: the column by which a table's rows of an interval are replaced; None if they are not.
        max_active_runs: how many runs of the generated DAG there may be at a time.
    """

    choice: str | None
    catches_up: bool
    lateness: int
    late: str
    rerun_within: int
    again: str
    column: str | None
    max_active_runs: int

    @classmethod
    def of(cls, config: Mapping[str, str]) -> IntervalSettings:
        """Return the keys of a config. Raises ConfigError."""
        values = KEYS.parse(config)
        choice = values[INTERVAL]
        return cls(
            None if choice is None else str(choice),
            (config.get(CATCHUP) or "").strip().lower() == "true",
            milliseconds(LATENESS, str(values[LATENESS])),
            str(values[LATE]),
            milliseconds(RERUN_WITHIN, str(values[RERUN_WITHIN])),
            str(values[AGAIN]),
            None if values[COLUMN] is None else str(values[COLUMN]),
            int(str(values[MAX_ACTIVE_RUNS])),
        )

    @property
    def is_exact(self) -> bool:
        """Whether scheduled runs are exact; a backfill's are in any case."""
        return self.choice == EXACT or (self.choice is None and self.catches_up)


@dataclass(frozen=True, slots=True)
class IntervalRun:
    """The keys that a run sets in the config of its interval's connector.

    Attributes:
        connector: the name of the connector whose interval it is.
        interval: the interval.
        attempt: counts how often the interval was moved from its start, from 1 on.
    """

    connector: str
    interval: Interval
    attempt: int

    @classmethod
    def of(cls, config: Mapping[str, str]) -> IntervalRun | None:
        """Return the run that a config is for; None for any other config."""
        interval = interval_of(config)
        return None if interval is None else cls(config[CONNECTOR], interval, int(config[ATTEMPT]))

    def keys(self) -> dict[str, str]:
        """Return the keys."""
        interval = self.interval
        return {
            START: str(interval.start),
            END: str(interval.end),
            ATTEMPT: str(self.attempt),
            CONNECTOR: self.connector,
        }


def interval_of(config: Mapping[str, str]) -> Interval | None:
    """Return the interval whose connector has this config; None for any other connector."""
    return Interval(int(config[START]), int(config[END])) if START in config and END in config else None


def text_of_reruns(intervals: Iterable[Interval]) -> str:
    """Return the intervals whose runs are cleared for late records, as a run has them in its config."""
    return json.dumps([(each.start, each.end) for each in intervals], separators=(",", ":"))


def reruns_of(config: Mapping[str, str]) -> list[Interval]:
    """Return the intervals of ``text_of_reruns`` that a config has."""
    return [Interval(*times) for times in json.loads(config.get(RERUNS, "[]"))]


def interval_text(interval: Interval) -> str:
    """Return the start of an interval as rows have it in ``airflow.interval.column``."""
    return _text(interval.start)


def milliseconds(key: str, text: str) -> int:
    """Return a time such as 500ms, 30s, 10m, 2h or 1d in milliseconds. Raises ConfigError."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ConfigError(key, text, "must be a number with a unit (ms, s, m, h, d), such as 30s or 10m")
    return int(match[1]) * _UNITS[match[2]]


def is_duration(name: str, value: ConfigValue) -> None:
    milliseconds(name, str(value))


def _text(moment: int) -> str:
    return datetime.fromtimestamp(moment / 1000, timezone.utc).isoformat().replace("+00:00", "Z")


KEYS = ConfigDef(
    [
        ConfigKey(
            name=INTERVAL,
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            validator=OrNull(OneOf((AVAILABLE, EXACT))),
            doc="Records that a scheduled run moves. available: those that are there. exact: those of its data interval, each "
            "record in one interval. The default is exact with airflow.catchup=true, else available; a backfill is exact.",
        ),
        ConfigKey(
            name=FIELD,
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            validator=OrNull(NonEmptyString()),
            doc="Field of record values with the time by which records belong to intervals: a Timestamp, milliseconds since the "
            "epoch, or text in ISO 8601; dots lead into nested fields. Default is the record's timestamp, which for sinks also "
            "stands in for a time that is missing or later. A source in Python needs airflow.interval.time=record, too. The "
            "field is read before transforms.",
        ),
        ConfigKey(
            name=TIME,
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            validator=OrNull(OneOf((RECORD,))),
            doc="Time by which records of a source belong to intervals, for connectors without one of their own, also in Java. "
            "record: the timestamp that the task gives each record, or the time in airflow.interval.field. In each source "
            "partition the times must not decrease.",
        ),
        ConfigKey(
            name=LATENESS,
            type=Type.STRING,
            default=_DEFAULT_LATENESS,
            importance=Importance.LOW,
            validator=Check(is_duration, "a number with a unit (ms, s, m, h, d)"),
            doc="Time that records may come later than their timestamps say. An exact run waits that long past the end of its "
            "interval.",
        ),
        ConfigKey(
            name=LATE,
            type=Type.STRING,
            default=NEXT,
            importance=Importance.LOW,
            validator=OneOf((NEXT, DLQ, RERUN)),
            doc="Treatment of records that come after their interval was closed. next: the next run moves and counts them. "
            "dlq: the next run sends them to the dead letter queue. rerun: the next run counts them, and the run of their "
            "interval is cleared, so that it replaces what it has written.",
        ),
        ConfigKey(
            name=RERUN_WITHIN,
            type=Type.STRING,
            default=_DEFAULT_WITHIN,
            importance=Importance.LOW,
            validator=Check(is_duration, "a number with a unit (ms, s, m, h, d)"),
            doc="With airflow.interval.late=rerun, the time before an interval in which the intervals start whose runs are "
            "cleared. Records that are even later are moved by the next run.",
        ),
        ConfigKey(
            name=AGAIN,
            type=Type.STRING,
            default=SKIP,
            importance=Importance.LOW,
            validator=OneOf((SKIP, APPEND)),
            doc="What a run does whose interval was moved before, where the target keeps what was written, as a topic does. "
            "skip: nothing. append: it moves the records again. Targets that can replace or merge records need no choice.",
        ),
        ConfigKey(
            name=COLUMN,
            type=Type.STRING,
            default=None,
            importance=Importance.LOW,
            validator=OrNull(NonEmptyString()),
            doc="Column of tables to which an IcebergSink, DeltaSink, or JdbcSink adds rows, for the start of the interval that "
            "a row belongs to, as a text such as 2026-01-31T10:00:00Z. A run that moves it again replaces its rows.",
        ),
        ConfigKey(
            name=MAX_ACTIVE_RUNS,
            type=Type.INT,
            default=1,
            importance=Importance.LOW,
            validator=Range(1),
            doc="How many runs of the generated DAG may move intervals side by side. More than one needs exact intervals.",
        ),
        *(
            ConfigKey(name=name, type=kind, default=None, importance=Importance.LOW, doc=f"{doc} Set by the run of an interval.")
            for name, kind, doc in (
                (START, Type.LONG, "The start of the interval, in milliseconds since the epoch."),
                (END, Type.LONG, "The end of the interval, in milliseconds since the epoch."),
                (POSITIONS, Type.STRING, "The offsets that a sink reads, by topic and partition."),
                (RERUNS, Type.STRING, "The intervals whose runs are cleared for late records: where they start and end."),
                (ATTEMPT, Type.INT, "How often the interval was moved from its start."),
                (CONNECTOR, Type.STRING, "The connector whose interval it is."),
            )
        ),
    ]
)
"""Keys of scheduled connectors."""

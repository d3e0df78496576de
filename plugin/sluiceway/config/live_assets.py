"""The keys that say what Airflow is told of the assets of a connector that runs all the time. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone

from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.intervals import LATENESS, IntervalSettings, is_duration, milliseconds
from sluiceway.config.schedules import LONG_RUNNING, MODE, START_DATE, moment
from sluiceway.config.validators import Check, OrNull
from sluiceway.errors import ConfigError

PARTITION = "airflow.partition"
"""Key of the length of an asset's partitions."""
ASSETS_INTERVAL = "airflow.assets.interval"

_CRONS = {"hour": "0 * * * *", "day": "0 0 * * *"}
_KEY_FORMAT = "%Y-%m-%dT%H:%M:%S"  # of Airflow's CronPartitionTimetable


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of an asset by time: each lasts from one time of a cron expression to the next, in UTC.

    Times are in milliseconds since the epoch.
    """

    cron: str

    @classmethod
    def of(cls, text: str) -> Partitions:
        """Return the partitions of ``airflow.partition``. Raises ConfigError."""
        from croniter import CroniterBadCronError, CroniterBadDateError, croniter

        cron = _CRONS.get(text.strip(), text.strip())
        try:
            croniter(cron).get_next()
        except (CroniterBadCronError, CroniterBadDateError) as error:
            raise ConfigError(PARTITION, text, f"must be hour, day, or a cron expression that comes true: {error}") from error
        return cls(cron)

    def at_or_before(self, time: int) -> int:
        """Return the last boundary at or before a time."""
        return self._boundary(time + 1, "get_prev")

    def after(self, time: int) -> int:
        """Return the first boundary after a time."""
        return self._boundary(time, "get_next")

    def _boundary(self, time: int, step: str) -> int:
        from croniter import croniter

        found: datetime = getattr(croniter(self.cron, datetime.fromtimestamp(time / 1000, timezone.utc)), step)(datetime)
        return round(found.timestamp() * 1000)


def partition_key(start: int) -> str:
    """Return Airflow's key of the partition that starts at a time, in the form of its ``CronPartitionTimetable``."""
    return datetime.fromtimestamp(start / 1000, timezone.utc).strftime(_KEY_FORMAT)


@dataclass(frozen=True, slots=True)
class LiveAssetSettings:
    """The parsed keys. Times are in milliseconds.

    Attributes:
        interval: the time between two events of an asset at least.
        partitions: the partitions of which an event says that they are complete; None for none.
        lateness: the time that records may come later than their timestamps say.
        begin: the time since the epoch from which on partitions have events; None for those that are complete from now on.
    """

    interval: int
    partitions: Partitions | None
    lateness: int
    begin: int | None

    @classmethod
    def of(cls, config: Mapping[str, str]) -> LiveAssetSettings:
        """Return the keys of a config. Raises ConfigError."""
        values = KEYS.parse(config)
        text, begin = values[PARTITION], moment(START_DATE, config.get(START_DATE))
        return cls(
            milliseconds(ASSETS_INTERVAL, str(values[ASSETS_INTERVAL])),
            None if text is None else Partitions.of(str(text)),
            IntervalSettings.of(config).lateness,
            None if begin is None else round(begin.timestamp() * 1000),
        )


def check_live_assets(config: Mapping[str, str]) -> None:
    """Raise ConfigError for keys that the connector cannot have."""
    if config.get(PARTITION) and config.get(MODE, LONG_RUNNING) != LONG_RUNNING:
        why = f"only connectors with {MODE}={LONG_RUNNING} have partitions: a run of a micro-batch has its data interval"
        raise ConfigError(PARTITION, config[PARTITION], why)


def _is_partition(_name: str, value: ConfigValue) -> None:
    Partitions.of(str(value))


KEYS = ConfigDef(
    [
        ConfigKey(
            name=ASSETS_INTERVAL,
            type=Type.STRING,
            default="1m",
            importance=Importance.LOW,
            validator=Check(is_duration, "a number with a unit (ms, s, m, h, d)"),
            doc="Time between two asset events of a long-running connector at least. Each says how many records were committed.",
        ),
        ConfigKey(
            name=PARTITION,
            type=Type.STRING,
            default=None,
            importance=Importance.MEDIUM,
            validator=OrNull(Check(_is_partition, "hour, day, or a cron expression")),
            doc="Partitions of the assets of a long-running connector: hour, day, or a cron expression, in UTC. Once all records "
            f"of a partition have been moved, assuming that they come within {LATENESS}, an asset event has its start as key.",
        ),
    ]
)
"""Keys of connectors that run all the time."""

"""Plans the connector that moves the records of one interval, for an exact run or a backfill's. No I/O.

Kafka stores lease, statuses, source offsets and consumer group under the connector's name. A temporary connector with its own
name leaves the live connector's state unchanged, and several intervals run side by side. A database's log is read once, in its
order: the live connector moves its intervals, one after the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from sluiceway.api import IntervalRepeat, SinkConnector, TopicPartition
from sluiceway.config.common_keys import TRANSFORMS
from sluiceway.config.connector import CONFIG_TASK, CONNECTOR_CLASS, CONNECTOR_VERSION, NAME, TASKS_MAX
from sluiceway.config.consumer_group import GROUP, default_group, sink_group
from sluiceway.config.intervals import (
    APPEND,
    AVAILABLE,
    COLUMN,
    EXACT,
    INTERVAL,
    POSITIONS,
    RERUN,
    RERUNS,
    Interval,
    IntervalRun,
    IntervalSettings,
    interval_text,
    text_of_reruns,
)
from sluiceway.config.schedules import DAG, MICRO_BATCH, MODE
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class
from sluiceway.errors import ConfigError
from sluiceway.herder.intervals import interval_refusal, reads_in_order
from sluiceway.kafka.windows import Window, encode_windows
from sluiceway.provider.dag_bundle.dag_keys import is_sink_config
from sluiceway.provider.driver.run_variables import RUN
from sluiceway.storage.intervals import IntervalEntry, IntervalState, Ledger

_LONGEST_NAME = 180
_COLUMN_TRANSFORM = "sluicewayIntervalColumn"


@dataclass(frozen=True, slots=True)
class WantedInterval:
    """The interval that a DAG run wants to be moved.

    Attributes:
        connector: the live connector's name.
        config: its config.
        run_id: the DAG run's id.
        start: the start of the run's data interval, in milliseconds since the epoch.
        end: its end. The same as ``start`` if the run has no interval: it moves what came since the last one.
        settings: the keys of the config that concern intervals.
        in_order: whether the intervals are pieces of one log, which runs read one after the other with the live connector.
    """

    connector: str
    config: Mapping[str, str] = field(repr=False)
    run_id: str
    start: int
    end: int
    settings: IntervalSettings
    in_order: bool = False

    @classmethod
    def of(cls, connector: str, config: Mapping[str, str], run: Mapping[str, str]) -> WantedInterval:
        """Return the interval of a run, given its variables (``run_variables``). Raises ConfigError."""
        times = int(run["data_interval_start_ms"]), int(run["data_interval_end_ms"])
        return cls(connector, config, run["run_id"], *times, IntervalSettings.of(config), reads_in_order(config))

    @property
    def sink(self) -> bool:
        """Whether the connector is a sink."""
        return is_sink_config(self.config)

    def given(self, known: Ledger) -> Interval | IntervalEntry:
        """Return the interval to move, or the ledger's entry of one that has all of it already.

        An earlier try's interval is continued. What others have moved of a data interval is left out, so that no record is in two
        intervals.
        """
        own = next((entry for entry in known.entries.values() if self.run_id in entry.runs), None)
        if own is not None:
            return own.interval
        last = known.last
        if self.in_order and (moved := known.moved_behind(self.end)):
            return moved  # the log was read further
        if self.start >= self.end:
            since = 0 if last is None else last.interval.end
            return last if last is not None and since >= self.end else Interval(since, self.end)
        if (same := known.entries.get(self.start)) is not None and same.interval.end == self.end:
            return same.interval
        start, end = self.start, self.end
        for entry in sorted(known.entries.values(), key=lambda entry: entry.interval):
            if entry.interval.start <= start < entry.interval.end:
                start = entry.interval.end
                if start >= end:
                    return entry
            elif start < entry.interval.start < end:
                end = entry.interval.start
        return Interval(start, end)

    @property
    def rerun_within(self) -> int | None:
        """The time before an interval in which those start that its late records are left to; None if they are left to none."""
        return self.settings.rerun_within if self.sink and self.settings.late == RERUN else None

    @property
    def column(self) -> str | None:
        """The column by which rows of an interval are replaced; None if they are not."""
        return self.settings.column if self._repeat() is IntervalRepeat.REPLACES else None

    def repeats(self, entry: IntervalEntry) -> bool:
        """Return whether an interval that was moved before can be moved again: its rows have the column to replace them by."""
        if self.in_order:
            return False
        if self.settings.again == APPEND:
            return True
        repeat = self._repeat()
        return repeat is not IntervalRepeat.ADDS and (repeat is IntervalRepeat.MERGES or entry.column == self.column)

    def _repeat(self) -> IntervalRepeat:
        if not self.sink:
            return IntervalRepeat.ADDS
        connector = connector_class(self.config[CONNECTOR_CLASS], self.config.get(CONNECTOR_VERSION))
        return connector.interval_repeat(self.config) if issubclass(connector, SinkConnector) else IntervalRepeat.ADDS


@dataclass(frozen=True, slots=True)
class IntervalConnector:
    """The connector that moves an interval: a temporary one, or the live one if that reads a log in its order."""

    name: str
    run: IntervalRun
    sink: bool
    config: Mapping[str, str] = field(repr=False)
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The offsets at which a sink starts."""

    @property
    def of(self) -> str:
        """The live connector's name."""
        return self.run.connector

    @property
    def is_temporary(self) -> bool:
        """Whether the run creates it, and deletes it at its end."""
        return self.name != self.of

    @classmethod
    def plan(
        cls,
        wanted: WantedInterval,
        entry: IntervalEntry,
        windows: Mapping[TopicPartition, Window],
        left: Sequence[Interval] = (),
    ) -> IntervalConnector:
        """Return the connector that moves an interval.

        Args:
            wanted: what the DAG run wants.
            entry: the ledger's entry with which the run begins.
            windows: what a sink reads.
            left: the intervals that it leaves late records to.
        """
        run = IntervalRun(wanted.connector, entry.interval, entry.attempt)
        if wanted.in_order:
            return cls(wanted.connector, run, sink=False, config=wanted.config)
        name = connector_name(wanted.connector, entry)
        # It has a consumer group of its own, and each run creates it.
        own = {key: value for key, value in wanted.config.items() if key not in (GROUP, CONFIG_TASK)}
        own |= {NAME: name, DAG: f"{wanted.connector}.interval", MODE: MICRO_BATCH, **run.keys()}
        if wanted.sink:
            own[POSITIONS] = encode_windows(windows)
        own.pop(COLUMN, None)  # what the interval's first try has decided holds
        if entry.column is not None:
            own[COLUMN] = entry.column
            own |= _with_column(own, entry.column, interval_text(entry.interval))
            if entry.attempt > 1:  # what it writes is one transaction
                own[TASKS_MAX] = "1"
        if left:
            own[RERUNS] = text_of_reruns(left)
        return cls(name, run, wanted.sink, own, {partition: window.start for partition, window in windows.items()})

    @property
    def before(self) -> str | None:
        """The name of the temporary connector of the attempt before; None if there was none."""
        entry = IntervalEntry(self.run.interval, IntervalState.DONE, self.run.attempt - 1)
        return connector_name(self.of, entry) if self.is_temporary and entry.attempt else None

    def for_worker(self, worker: WorkerConfig) -> IntervalConnector:
        """Return the connector with its own consumer group, even if the worker sets ``consumer.group.id``.

        In the worker's group it would change the offsets of every other sink, and delete them when it ends.
        """
        if not self.sink or has_own_group(worker, self.name, self.config):
            return self
        return replace(self, config={**self.config, GROUP: default_group(self.name)})


@dataclass(frozen=True, slots=True)
class NotClosed:
    """An interval that cannot be moved yet.

    Attributes:
        interval: the interval.
        until: when it can be moved, in milliseconds since the epoch.
        by: the run that has begun to move another interval of the same log; None if records of this one may still come.
    """

    interval: Interval
    until: int
    by: str | None = None


@dataclass(frozen=True, slots=True)
class MovedBefore:
    """An interval that was moved before, and is not moved again.

    ``by_last_try``: the last try of the same run has moved it, and died before it could say so.
    """

    entry: IntervalEntry
    by_last_try: bool = False


Outcome = IntervalConnector | NotClosed | MovedBefore
"""The answer to a run that wants to move an interval."""


def _with_column(config: Mapping[str, str], column: str, value: str) -> dict[str, str]:
    """Return the keys of a transform, after those of a config, that gives each record's value a field with a text."""
    chain = [each for each in (config.get(TRANSFORMS, "").strip(), _COLUMN_TRANSFORM) if each]
    prefix = f"{TRANSFORMS}.{_COLUMN_TRANSFORM}."
    return {
        TRANSFORMS: ",".join(chain),
        f"{prefix}type": "org.apache.kafka.connect.transforms.InsertField$Value",
        f"{prefix}static.field": column,
        f"{prefix}static.value": value,
    }


def connector_name(connector: str, entry: IntervalEntry) -> str:
    """Return the name of the temporary connector of a ledger's entry, whose file names and group must not become too long."""
    if len(connector) > _LONGEST_NAME:
        connector = f"{connector[:_LONGEST_NAME]}-{zlib.crc32(connector.encode()):08x}"
    return f"{connector}.interval.{entry.interval.start}" + (f".{entry.attempt}" if entry.attempt > 1 else "")


def has_own_group(worker: WorkerConfig, name: str, config: Mapping[str, str]) -> bool:
    """Return whether a temporary connector's sink is the only connector in its consumer group."""
    return sink_group(worker, name, config) == default_group(name)


def is_exact(config: Mapping[str, str], choice: str | None, *, backfill: bool, catches_up: bool) -> bool:
    """Return whether a run moves the records of its interval rather than those that are available. Raises ConfigError.

    Args:
        config: the connector's config.
        choice: what the operator says, which wins over the config.
        backfill: whether the run is a backfill's, which has no other meaning than its interval.
        catches_up: whether the DAG makes runs for intervals in the past.
    """
    chosen = choice or IntervalSettings.of(config).choice
    if not backfill and (chosen == AVAILABLE or (chosen is None and not catches_up)):
        return False
    asked = backfill or chosen == EXACT
    connector = connector_class(config[CONNECTOR_CLASS], config.get(CONNECTOR_VERSION))
    why = interval_refusal(connector, config, by_references=asked)
    if why and asked:
        raise ConfigError(
            f"{INTERVAL}={EXACT} is not possible: {why}. Or limit what it reads with ${{airflow:{RUN}:data_interval_start}} and "
            f"${{airflow:{RUN}:data_interval_end}} in its config."
        )
    return not why

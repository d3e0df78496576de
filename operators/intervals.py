"""The part of the connector operators that moves the records of a run's interval."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pendulum

from sluiceway.config.intervals import AVAILABLE, EXACT, INTERVAL, IntervalSettings
from sluiceway.config.schedules import MODE
from sluiceway.errors import BadRequestError, ConfigError, ConnectError
from sluiceway.herder.intervals import reads_in_order
from sluiceway.operators.claims import ClaimedConnector
from sluiceway.operators.driver_operator import DAG_PAUSED, PausedFlag, paused_flag
from sluiceway.provider.compat import AirflowException, AirflowRescheduleException
from sluiceway.provider.dag_bundle.dag_keys import MICRO_BATCH
from sluiceway.provider.driver.internal_topics import InternalTopics
from sluiceway.provider.driver.interval_connector import (
    IntervalConnector,
    MovedBefore,
    NotClosed,
    Outcome,
    WantedInterval,
    is_exact,
)
from sluiceway.provider.driver.run_variables import is_backfill, run_variables
from sluiceway.provider.mistakes import task_error
from sluiceway.provider.progress.airflow_stats import report_late
from sluiceway.provider.progress.run_summary import RunSummary
from sluiceway.provider.settings import Settings
from sluiceway.storage.intervals import IntervalEntry

if TYPE_CHECKING:
    from airflow.sdk import Context

_WAIT_IN_SLOT_SECONDS = 30.0  # a task that gives up its slot starts another process later
_POLL_SECONDS = 1.0


class IntervalTask(ClaimedConnector):
    """Moves intervals. A base of the connector operators.

    Args:
        interval: ``available`` or ``exact``; default is ``airflow.interval`` in the config.
    """

    def __init__(self, *, interval: str | None = None, **kwargs: Any) -> None:
        if interval not in (None, AVAILABLE, EXACT):
            raise ValueError(f"interval must be {AVAILABLE!r} or {EXACT!r}, not {interval!r}.")
        super().__init__(**kwargs)
        self.interval = interval

    def _begin_interval(
        self, context: Context, settings: Settings, topics: InternalTopics, config: Mapping[str, str], mode: str
    ) -> IntervalConnector | MovedBefore | None:
        """Return the connector that moves the run's interval; None for a run that moves what is available.

        Waits until no more records of the interval may come, and reschedules the task if that takes long.
        """
        backfill = is_backfill(context)
        catches_up = bool(getattr(context.get("dag"), "catchup", False))
        try:
            if not backfill and mode != MICRO_BATCH:
                if (self.interval or IntervalSettings.of(config).choice) == EXACT:
                    raise ConfigError(INTERVAL, EXACT, "a connector that runs all the time has no intervals")
                return None
            if backfill and mode != MICRO_BATCH and reads_in_order(config):
                raise ConfigError(MODE, mode, "it reads once: a connector that runs all the time has moved its intervals")
            if not is_exact(config, self.interval, backfill=backfill, catches_up=catches_up):
                if reads_in_order(config):
                    topics.intervals().leave(self.connector)
                return None
            wanted = WantedInterval.of(self.connector, config, run_variables(context))
            found = self._closed(context, settings, topics, wanted)
        except (BadRequestError, ConfigError) as error:
            raise task_error(f"Connector {self.connector}", error) from error
        if isinstance(found, MovedBefore):
            once = "the connector reads from its offset on" if wanted.in_order else "the target would keep both"
            why = "by the last try" if found.by_last_try else f"so nothing is moved again: {once}"
            run = found.entry.runs[-1] if found.entry.runs else None
            self.log.info("[%s|worker] Run %s has moved interval %s, %s", self.connector, run, found.entry.interval, why)
            return found
        assert isinstance(found, IntervalConnector)  # noqa: S101 (_closed waits for it)
        how = f"as connector {found.name}, with its own offsets" if found.is_temporary else "from the connector's offsets on"
        self.log.info("[%s|worker] Moves interval %s %s", self.connector, found.run.interval, how)
        return found

    def _closed(self, context: Context, settings: Settings, topics: InternalTopics, wanted: WantedInterval) -> Outcome:
        """Return the outcome of a run's wish once the interval has closed; reschedule the task if it does not within seconds."""
        is_paused, deadline = paused_flag(context), time.time() + _WAIT_IN_SLOT_SECONDS
        while isinstance(found := topics.intervals().begin(wanted), NotClosed):
            until = found.until / 1000
            why = f"Run {found.by} has begun another interval" if found.by else f"Records of interval {found.interval} may come"
            self.log.info(
                "[%s|worker] %s: waiting until %s", self.connector, why, pendulum.from_timestamp(until).to_iso8601_string()
            )
            if until > deadline or found.by:  # then its lease tells whether it lives
                self._reschedule_at(until, settings)
            self._sleep_until(until, context, settings, is_paused)
        return found

    def _reschedule_at(self, moment: float, settings: Settings) -> None:
        raise AirflowRescheduleException(pendulum.from_timestamp(max(moment, time.time() + settings.settle_time)))

    def _sleep_until(self, moment: float, context: Context, settings: Settings, is_paused: PausedFlag) -> None:
        while (left := moment - time.time()) > 0:
            self._raise_if_killed()
            if is_paused():
                self._reschedule(context, settings, DAG_PAUSED)
            time.sleep(min(left, _POLL_SECONDS))

    def _end_interval(self, topics: InternalTopics, name: str, moved: RunSummary) -> RunSummary:
        """Note that the connector has moved its interval, delete a temporary one, and return what it has moved."""
        with self._noting_failure(topics, name, is_interval=True):
            try:
                entry = topics.intervals().end(name, moved.records)
            except ConnectError as error:
                raise AirflowException(str(error)) from error
        found = replace(moved, records=entry.records, interval=of_interval(entry))
        if entry.late:
            self.log.warning(
                "[%s|worker] %d records that interval %s has found were late", self.connector, entry.late, entry.interval
            )
            report_late(self.connector, entry.late)
        return found

    def _moves_interval(self, context: Context, topics: InternalTopics, name: str, config: Mapping[str, str]) -> bool:
        """Return whether the run moves an interval with this connector, after a wait in the triggerer."""
        if name != self.connector:
            return True
        return reads_in_order(config) and topics.intervals().moves(name, context["dag_run"].run_id)

    @contextmanager
    def _noting_failure(self, topics: InternalTopics, name: str, *, is_interval: bool) -> Iterator[None]:
        """Note in the ledger if the task fails while it moves an interval."""
        try:
            yield
        except AirflowRescheduleException:
            raise
        except AirflowException as error:
            if is_interval:
                try:
                    topics.intervals().fail(name, str(error).partition("\n")[0])
                except ConnectError as second:
                    self.log.warning("[%s|worker] Cannot note in the ledger that the interval has failed: %s", name, second)
            raise


def moved_before(found: MovedBefore) -> RunSummary:
    """Return what a run has moved that has found its interval moved: nothing, unless its last try did."""
    return RunSummary(found.entry.records if found.by_last_try else 0, 0.0, interval=of_interval(found.entry))


def of_interval(entry: IntervalEntry) -> dict[str, Any]:
    """Return an interval in the form of XCom and asset events."""
    return {
        "start": pendulum.from_timestamp(entry.interval.start / 1000).to_iso8601_string(),
        "end": pendulum.from_timestamp(entry.interval.end / 1000).to_iso8601_string(),
        "attempt": entry.attempt,
        "late": entry.late,
        "at_least": entry.at_least,
    }

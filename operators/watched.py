"""Watches the progress of the connector that an operator runs: Airflow's metrics, and callbacks when it stands still."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sluiceway.operators.warm_batch import WarmBatches
from sluiceway.provider.compat import AirflowException
from sluiceway.provider.driver.internal_topics import InternalTopics
from sluiceway.provider.progress.airflow_stats import report_no_progress, report_progress, report_run
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.no_progress import NoProgressWatch
from sluiceway.provider.progress.progress_log import ProgressLog
from sluiceway.provider.progress.run_summary import RunSummary
from sluiceway.provider.settings import Settings

if TYPE_CHECKING:
    from airflow.sdk import Context

Callback = Callable[[Any], Any]
"""As Airflow's callbacks and notifiers: called with the task's context."""

KEEP, FAIL, CALLBACK = "keep", "fail", "callback"
"""The values of ``on_failed_tasks``."""


class WatchedConnector(WarmBatches):
    """Measures the connector while the task runs its driver. A base of the connector operators.

    Args:
        no_progress_after: time, as timedelta or in seconds, after which a connector without progress is reported: a sink with
            lag that commits nothing, a source whose topics do not grow. None: never.
        on_no_progress_callback: functions or notifiers that are called then, with the task's context and, in it, ``reason``.
        on_failed_tasks: what to do when tasks of the connector, or the connector itself, are FAILED while the driver runs on:
            ``keep`` warns in the log, ``fail`` ends the driver and fails the Airflow task, which Airflow retries as any other,
            ``callback`` calls ``on_failed_tasks_callback``.
        on_failed_tasks_callback: functions or notifiers that are called when other ones have failed than before, with the task's
            context and, in it, ``reason``.
    """

    _failed: tuple[str, ...] = ()
    """What was FAILED when it was last read."""

    def __init__(
        self,
        *,
        no_progress_after: timedelta | float | None = None,
        on_no_progress_callback: Callback | Sequence[Callback] = (),
        on_failed_tasks: str = KEEP,
        on_failed_tasks_callback: Callback | Sequence[Callback] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        callbacks = _callbacks(on_no_progress_callback)
        if callbacks and no_progress_after is None:
            raise ValueError("on_no_progress_callback needs no_progress_after: the time without progress.")
        seconds = no_progress_after.total_seconds() if isinstance(no_progress_after, timedelta) else no_progress_after
        if seconds is not None and seconds <= 0:
            raise ValueError(f"no_progress_after must be a positive time, not {no_progress_after!r}.")
        self.no_progress_after = seconds
        self.on_no_progress_callback = callbacks
        self.on_failed_tasks = on_failed_tasks
        self.on_failed_tasks_callback = _callbacks(on_failed_tasks_callback)
        if on_failed_tasks not in (KEEP, FAIL, CALLBACK):
            raise ValueError(f"on_failed_tasks must be {KEEP!r}, {FAIL!r} or {CALLBACK!r}, not {on_failed_tasks!r}.")
        if bool(self.on_failed_tasks_callback) != (on_failed_tasks == CALLBACK):
            raise ValueError(f"on_failed_tasks_callback and on_failed_tasks={CALLBACK!r} need each other.")

    def _progress_log(self, context: Context, settings: Settings, topics: InternalTopics, name: str) -> ProgressLog:
        """Return what logs and reports a connector's progress while its driver runs."""
        watch = None if self.no_progress_after is None else NoProgressWatch(self.no_progress_after)

        def observe(before: ConnectorProgress | None, now: ConnectorProgress) -> None:
            report_progress(name, before, now)
            reason = None if watch is None else watch.check(now)
            if reason is not None:
                self._without_progress(context, name, reason)

        interval = settings.progress_interval
        if self.no_progress_after is not None:
            interval = min(interval, self.no_progress_after / 2)
        self._failed = ()
        return ProgressLog(
            name, topics, interval, observe=observe, observe_failed=lambda failed: self._with_failed(context, name, failed)
        )

    def _summary(self, progress: ProgressLog, name: str, records: int | None) -> RunSummary:
        """Return what the run has moved, and report its duration. Call after the exit of ``progress``."""
        moved = progress.summary(records)
        report_run(name, moved)
        return moved

    def _without_progress(self, context: Mapping[str, Any] | Context, name: str, reason: str) -> None:
        """Log and report that the connector stands still."""
        self.log.warning("[%s|worker] %s", name, reason)
        report_no_progress(name)
        self._call("on_no_progress_callback", context, name, reason)

    def _with_failed(self, context: Mapping[str, Any] | Context, name: str, failed: tuple[str, ...]) -> None:
        """Act on what is FAILED, once as long as it is the same; a driver that does not end is told again."""
        before, self._failed = self._failed, failed
        if failed and self.on_failed_tasks == FAIL:
            self._end_driver(kill=bool(before))
        elif failed and failed != before:
            self._call("on_failed_tasks_callback", context, name, f"FAILED: {'; '.join(failed)}")

    def _raise_if_failed(self, name: str) -> None:
        """Fail the task after the end of a driver that was ended because of FAILED tasks."""
        if self._failed and self.on_failed_tasks == FAIL:
            failed = "; ".join(self._failed)
            raise AirflowException(f"Connector {name}: FAILED: {failed}. Its driver was ended by on_failed_tasks={FAIL!r}.")

    @property
    def _watches(self) -> list[str]:
        """Return the given arguments for which the task must measure the connector."""
        given = {"no_progress_after": self.no_progress_after is not None, "on_failed_tasks": self.on_failed_tasks != KEEP}
        return [name for name, is_given in given.items() if is_given]

    def _warn_unwatched(self) -> None:
        """Say that nothing measures the connector while the task waits in the triggerer."""
        if idle := self._watches:
            why = "no effect while the task waits in the triggerer. Use ConnectorStateSensor with fail_on, or a lag sensor"
            self.log.warning("[%s|worker] %s: %s", self.connector, ", ".join(idle), why)

    def _call(self, callbacks: str, context: Mapping[str, Any] | Context, name: str, reason: str) -> None:
        """Call each callback of an argument. One that fails must not keep the others from running."""
        for callback in getattr(self, callbacks):
            try:
                callback({**context, "reason": f"Connector {name}: {reason}"})
            except Exception:
                self.log.exception("[%s|worker] %s failed", name, callbacks)


def _callbacks(given: Callback | Sequence[Callback]) -> tuple[Callback, ...]:
    return (given,) if callable(given) else tuple(given)

"""Watches the progress of the connector that an operator runs: Airflow's metrics, and callbacks when it stands still."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sluiceway.operators.warm_batch import WarmBatches
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


class WatchedConnector(WarmBatches):
    """Measures the connector while the task runs its driver. A base of the connector operators.

    Args:
        no_progress_after: time, as timedelta or in seconds, after which a connector without progress is reported: a sink with
            lag that commits nothing, a source whose topics do not grow. None: never.
        on_no_progress_callback: functions or notifiers that are called then, with the task's context and, in it, ``reason``.
    """

    def __init__(
        self,
        *,
        no_progress_after: timedelta | float | None = None,
        on_no_progress_callback: Callback | Sequence[Callback] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        callbacks = (on_no_progress_callback,) if callable(on_no_progress_callback) else tuple(on_no_progress_callback)
        if callbacks and no_progress_after is None:
            raise ValueError("on_no_progress_callback needs no_progress_after: the time without progress.")
        seconds = no_progress_after.total_seconds() if isinstance(no_progress_after, timedelta) else no_progress_after
        if seconds is not None and seconds <= 0:
            raise ValueError(f"no_progress_after must be a positive time, not {no_progress_after!r}.")
        self.no_progress_after = seconds
        self.on_no_progress_callback = callbacks

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
        return ProgressLog(name, topics, interval, observe=observe)

    def _summary(self, progress: ProgressLog, name: str, records: int | None) -> RunSummary:
        """Return what the run has moved, and report its duration. Call after the exit of ``progress``."""
        moved = progress.summary(records)
        report_run(name, moved)
        return moved

    def _without_progress(self, context: Mapping[str, Any] | Context, name: str, reason: str) -> None:
        """Log and report that the connector stands still. A callback that fails must not keep the others from running."""
        self.log.warning("[%s|worker] %s", name, reason)
        report_no_progress(name)
        for callback in self.on_no_progress_callback:
            try:
                callback({**context, "reason": f"Connector {name}: {reason}"})
            except Exception:
                self.log.exception("[%s|worker] on_no_progress_callback failed", name)

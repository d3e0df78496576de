"""Operators that run one connector: a Spark application that lasts as long as the connector runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from sluiceway import exit_codes
from sluiceway.config.connector import CONFIG_TASK, CONNECTOR_CLASS, NAME
from sluiceway.folders import scratch_folder
from sluiceway.operators.driver_operator import (
    DAG_PAUSED,
    DriverEnd,
    DriverOperator,
    PausedFlag,
    paused_flag,
    with_report,
)
from sluiceway.operators.given_config import check_given, check_kind, given_mode, given_name, named_config
from sluiceway.operators.intervals import IntervalTask, moved_before
from sluiceway.operators.masked_config import MaskedConfig
from sluiceway.provider.compat import AirflowException
from sluiceway.provider.dag_bundle.dag_keys import DAG, LONG_RUNNING, MICRO_BATCH, DagKeys
from sluiceway.provider.driver.detached import DetachedDriver
from sluiceway.provider.driver.internal_topics import InternalTopics
from sluiceway.provider.driver.interval_connector import MovedBefore
from sluiceway.provider.driver.lease_owner import owner_of
from sluiceway.provider.driver.outcome import DriverRestarts, NextAction, after_end, before_start
from sluiceway.provider.driver.run_variables import is_backfill
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.driver.waits import await_resume, interruption
from sluiceway.provider.driver.warm_batch import RequestedBatch
from sluiceway.provider.executors import IN_CLIENT_MODE, defers_by_default
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook
from sluiceway.provider.lineage.assets import connector_alias
from sluiceway.provider.lineage.datasets import Lineage
from sluiceway.provider.lineage.observed import observed_lineage
from sluiceway.provider.lineage.openlineage import LineageMixin
from sluiceway.provider.links import CONNECTOR_LINKS, publish
from sluiceway.provider.masks import mask_config
from sluiceway.provider.mistakes import mistakes_are_final
from sluiceway.provider.progress.cluster_view import DriverSeen
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.run_summary import RunSummary
from sluiceway.provider.settings import Settings
from sluiceway.provider.triggers.conditions import CreatedCondition, DriverEndedCondition
from sluiceway.storage.model import ConnectorEntry

if TYPE_CHECKING:
    from airflow.sdk import Context

_SUBMIT_TIMEOUT_SECONDS = 300.0  # a driver submitted to a cluster may have to wait for resources


class ConnectorOperator(MaskedConfig, LineageMixin, IntervalTask):
    """Runs a connector until it is paused, stopped or deleted; in micro-batch mode until it has moved the available records.

    When the DAG or the connector is paused, the driver drains. The task waits some seconds for a resume (``[sluiceway]
    pause_linger``), then releases its slot and waits within the same DAG run. If a driver dies, the task starts it again, with
    growing delays from 1 s to 60 s; the log and the connector's status say why and how often. In micro-batch mode, the task
    fails instead, and Airflow retries it.

    In client mode the driver is the task's child process and ends with it. A new driver takes over the connector's lease, so
    that an old one that still runs cannot write. In cluster mode a driver outlives its task: a retry, or the next run, finds it
    by its heartbeats and waits for it in the triggerer, instead of submitting a second one. With ``sluiceway.application`` in the
    config, a micro-batch has no driver of its own: the task requests it from the shared application and waits for its end.

    Returns, as XCom, what the run has moved: ``records``, ``seconds``, and ``offsets`` (``partition``, ``from``, ``to``) of the
    partitions that changed. A micro-batch that moved records emits an asset event for the connector and for each topic, folder,
    file or table that it wrote to, with the same values in its extra. With ``airflow.interval=exact``, which is the default of
    DAGs that catch up, and in a backfill's run, a micro-batch moves the records of the run's data interval, with offsets of its
    own.

    Args:
        connector: the connector's name (templated); default is ``name`` in the config.
        config: its config as a dict, or the path of a JSON, YAML or .properties file on the worker. The task creates or updates
            the connector in the config topic when it starts. Without it, the task waits until the connector exists, in the
            triggerer. (templated)
        mode: ``long-running`` or ``micro-batch``; default is ``airflow.mode`` in the config.
        deferrable: in cluster mode, whether to wait for the driver's end in the triggerer rather than in a slot; default is
            Airflow's ``[operators] default_deferrable``, and True under an executor whose workers may be on other machines than
            the scheduler, unless ``no_progress_after`` or ``on_failed_tasks`` needs the task. A deferred task that somebody
            clears or marks, or whose execution_timeout is over, ends its driver.
        conf: Spark settings; they override the ``spark.*`` keys of the connector's config.
    """

    template_fields: Sequence[str] = (*DriverOperator.template_fields, "connector", "config")
    template_fields_renderers: ClassVar[dict[str, str]] = {"config": "json"}
    operator_extra_links = (*CONNECTOR_LINKS, *DriverOperator.operator_extra_links)
    sink: ClassVar[bool | None] = None
    """True if only sinks may be run, False if only sources."""

    def __init__(
        self,
        *,
        connector: str | None = None,
        config: Mapping[str, Any] | str | None = None,
        mode: str | None = None,
        deferrable: bool | None = None,
        **kwargs: Any,
    ) -> None:
        check_given(connector, config)
        if mode not in (None, LONG_RUNNING, MICRO_BATCH):
            raise ValueError(f"mode must be {LONG_RUNNING!r} or {MICRO_BATCH!r}, not {mode!r}.")
        name = given_name(connector, config)
        super().__init__(**kwargs)
        if isinstance(name, str) and "{{" not in name:
            self.add_outlets([connector_alias(name)])
        self.connector = name
        self.config = config
        self.mode = mode
        if given_mode(mode, config) == LONG_RUNNING:
            self._warn_of_more_runs()
        self._deferrable_given = deferrable is True
        self.deferrable = defers_by_default(self.executor) and not self._watches if deferrable is None else deferrable

    @property
    def subject(self) -> str:
        return self.connector

    @mistakes_are_final
    def execute(self, context: Context) -> Any:
        """Run one driver after another until the task is done; return what the last one moved."""
        while (moved := self._run_driver(context)) is None:
            self._forget_driver(context)
        return moved

    def _run_driver(self, context: Context) -> dict[str, Any] | None:
        """Run one driver; return the task's XCom, or None to run another driver."""
        settings = self._settings()
        overrides = self._worker_overrides()
        worker = self._worker(context, settings, overrides)
        topics = self._internal_topics(worker)
        is_paused = paused_flag(context)
        entry = self._await_started(context, settings, topics, is_paused)
        config = dict(entry.config or {})
        mask_config(config)
        mode = self.mode or DagKeys.parse(config).mode
        if entry.application and mode == LONG_RUNNING and not is_backfill(context):
            publish(self, context["ti"])
            self._warn_unwatched()
            ended = DriverEndedCondition(self.connector, hosted=True, deadline=self._deadline(context))
            self._defer(settings, ended, {"hosted": True})
        interval = self._begin_interval(context, settings, topics, config, mode)
        if isinstance(interval, MovedBefore):
            return self._result(context, worker, topics, config, moved_before(interval), bounded=True)
        name, used_config = (interval.name, dict(interval.config)) if interval else (self.connector, config)
        bounded = mode == MICRO_BATCH or interval is not None
        application = entry.application if interval is None else (topics.entry(name) or entry).application
        with self._noting_failure(topics, name, is_interval=interval is not None):
            if batch := self._warm_batch(settings, name, application, used_config, MICRO_BATCH if bounded else mode):
                self._run_batch(context, settings, topics, batch)
                return self._after_batch(context, settings, topics, batch, None)
            with scratch_folder("report") as folder:
                worker_file = settings.worker_file(self.worker_properties)
                ran = Submission(name, worker_file, MICRO_BATCH if bounded else mode, used_config, owner=owner_of(context))
                submission = with_report(ran, folder)
                hook = self._prepare(context, settings, submission, overrides)
                self._defer_in_cluster_mode(context, settings, topics, hook, name)

                def set_target_state() -> None:
                    if topics.ensure_paused(name, is_paused):
                        self.log.info("[%s|worker] Target state PAUSED, because the DAG is paused", name)

                with self._progress_log(context, settings, topics, name) as progress:
                    end = self._run(context, settings, hook, is_paused, set_target_state)
            self._raise_if_killed()
            self._raise_if_failed(name)
            moved = self._summary(progress, name, end.records)
            self.log.info("[%s|worker] Moved %s", name, moved)

            since = entry.target_state_at if interval is None else None
            if self._after_end(context, settings, topics, name, end, bounded=bounded, linger=True, since=since):
                return None
            if interval is not None and end.ended is False:
                raise AirflowException(f"Connector {name}: its driver was told to end before it had moved the interval.")
        if interval is not None:
            moved = self._end_interval(topics, name, moved)
        return self._result(context, worker, topics, config, moved, bounded=bounded)

    @mistakes_are_final
    def after_wait(
        self, context: Context, event: Mapping[str, Any], began: Mapping[str, Any] | None = None, hosted: bool = False
    ) -> Any:
        """Continue the task after the wait in the triggerer. Runs on an Airflow worker.

        Airflow stores this method's name and its arguments while the task is deferred, so both must stay compatible with 0.1.0.
        ``event`` is the payload of ``ConditionTrigger``, ``began`` a ``DetachedDriver`` as dict. ``hosted`` is whether a shared
        application ran the connector; 0.1.0 did not store it.
        """
        settings = self._settings()
        worker = self._worker(context, settings)
        topics = self._internal_topics(worker)
        detached = DetachedDriver.from_dict(began) if began else None
        name = detached.name if detached else self.connector
        self.log.info("[%s|worker] %s", name, event["seen"])
        if event.get("failed") and detached is not None:
            topics.end_driver(name)
        self._raise_if_late(event)
        entry = topics.entry(name)
        config = dict(entry.config or {}) if entry else {}
        if hosted and entry is not None and entry.application is None:  # its config was changed: it needs a driver of its own
            return self.execute(context)
        hosted = bool(entry and entry.application) and (self.mode or DagKeys.parse(config).mode) == LONG_RUNNING
        is_interval = not hosted and self._moves_interval(context, topics, name, config)
        bounded = is_interval or (bool(entry) and not hosted and (self.mode or DagKeys.parse(config).mode) == MICRO_BATCH)
        end = DriverEnd(0, None, False) if hosted or entry is None else self._end_in_cluster(topics.driver(name), detached)
        self._restarts.number = detached.restarts if detached else 0
        # No driver of this task has died if an application runs the connector: the wait ended because of a pause.
        since = 0 if hosted else (detached.since if detached else None)
        with self._noting_failure(topics, name, is_interval=is_interval):
            if self._after_end(context, settings, topics, name, end, bounded=bounded, since=since):
                self._forget_driver(context)
                return self.execute(context)
        before = detached.progress if detached else None
        moved = RunSummary.between(before, topics.progress(name), time.time() - detached.time if detached else 0.0)
        if is_interval:
            moved = self._end_interval(topics, name, moved)
            entry = topics.entry(self.connector)
            config = dict((entry.config if entry else None) or {})
        return self._result(context, worker, topics, config, moved, bounded=bounded)

    def after_creation(self, context: Context, event: Mapping[str, Any]) -> Any:
        """Run the connector that the task waited for. ``event`` is the payload of ``ConditionTrigger``."""
        self.log.info("[%s|worker] %s", self.connector, event["seen"])
        self._raise_if_late(event)
        return self.execute(context)

    def lineage(self) -> Lineage | None:
        """Return the connector's inputs and outputs, from the config that ran, else the DAG's, else the config topic's."""
        worker = self._settings().worker(self.worker_properties, self._worker_overrides())
        config = self._submission.config if self._submission else named_config(self.connector, self.config)
        if config is None:
            entry = self._internal_topics(worker).entry(self.connector)
            config = (entry.config if entry else None) or {}
        if CONNECTOR_CLASS not in config:
            return None
        return observed_lineage(self.connector, config, worker, self._internal_topics(worker), self._moved)

    # Before the driver.

    def _await_started(
        self, context: Context, settings: Settings, topics: InternalTopics, is_paused: PausedFlag
    ) -> ConnectorEntry:
        """Return the connector if it must run now; otherwise reschedule the task."""
        dag = context["ti"].dag_id
        config = named_config(self.connector, self.config)
        if config is not None:
            self.connector = config[NAME]
        if is_paused():  # Airflow queued the task before the pause
            self._reschedule(context, settings, DAG_PAUSED)
        self._respect_lease(context, settings, topics, self.connector)
        if config is not None:
            check_kind(self.connector, config, self.sink, type(self).__name__)
            self._store_config(topics, {**config, DAG: dag, CONFIG_TASK: self.task_id})
        entry = topics.entry(self.connector)
        if entry is None:
            why = "The connector does not exist yet; create it with REST or 'sluiceway apply'. Waiting for it in the triggerer"
            self.log.info("[%s|worker] %s", self.connector, why)
            self._defer(settings, CreatedCondition(self.connector), {}, "after_creation")
        if before_start(dag_paused=False, entry=entry) is NextAction.RESCHEDULE:
            # The DAG is not paused: either the pause sync is about to pause it, or it was just resumed and the pause sync has
            # not written the target state yet.
            self._reschedule(context, settings, f"The connector's target state is {entry.target_state.value}")
        check_kind(self.connector, dict(entry.config or {}), self.sink, type(self).__name__)
        if not self._claim(topics, dict(entry.config or {}), dag):
            return entry
        return topics.entry(self.connector) or entry  # the claim may have changed its application

    # A driver that is not this task's child.

    def _defer_in_cluster_mode(
        self, context: Context, settings: Settings, topics: InternalTopics, hook: ConnectorSubmitHook, name: str
    ) -> None:
        """In cluster mode, defer the task until the running driver ends, or, if ``deferrable``, one submitted now.

        Return in client mode, and if the task must wait in its slot.
        """
        if hook.is_client_mode:
            if self.deferrable:
                say = self.log.warning if self._deferrable_given else self.log.info
                say("[%s|worker] %s", name, IN_CLIENT_MODE)
            return
        driver = topics.driver(name)
        store = self._driver_store(context)
        known = store is not None and store.get(self.external_id_key)
        if driver.lives and not known:
            self.log.info("[%s|worker] A driver runs already, generation %d; waiting for its end", name, driver.generation)
        elif self.deferrable:
            hook.detach_from_driver()
            self.log.info("[%s|worker] Submitted as %s", name, hook.submit(self.application))
        else:
            return
        self._warn_unwatched()
        generation = driver.generation - 1 if driver.lives else driver.generation
        moved = topics.progress(name) or ConnectorProgress()
        entry = topics.entry(name)
        since = entry.target_state_at if entry else None
        detached = DetachedDriver(name, generation, time.time(), moved, self._restarts.number, since)
        patience = time.time() + _SUBMIT_TIMEOUT_SECONDS
        condition = DriverEndedCondition(name, generation, patience, deadline=self._deadline(context))
        self._defer(settings, condition, {"began": detached.to_dict()})

    def _end_in_cluster(self, driver: DriverSeen, detached: DetachedDriver | None) -> DriverEnd:
        """Return the end of a driver that the task waited for; failed if the driver never started."""
        if detached and driver.generation <= detached.generation:
            why = AirflowException(f"No driver started within {_SUBMIT_TIMEOUT_SECONDS:.0f} s; see the cluster's log.")
            return DriverEnd(1, why, False)
        seconds = time.time() - detached.time if detached else 0.0
        return DriverEnd(0 if driver.clean else 1, None, False, seconds=seconds)

    # After the driver.

    def _after_batch(
        self, context: Context, settings: Settings, topics: InternalTopics, batch: RequestedBatch, failure: str | None
    ) -> dict[str, Any] | None:
        """Return the task's XCom after the wait for a micro-batch; None to request another. ``failure`` as in ``_batch_end``."""
        name = batch.connector
        live = topics.entry(self.connector)
        config = dict((live.config if live else None) or {})
        is_interval = self._moves_interval(context, topics, name, config)
        with self._noting_failure(topics, name, is_interval=is_interval):
            moved = self._batch_end(topics, batch, failure)
        if isinstance(moved, DriverEnd):
            entry = topics.entry(name)
            if moved.exit_code == exit_codes.DONE and before_start(dag_paused=False, entry=entry) is NextAction.START:
                return None  # it was resumed meanwhile
            self._after_end(context, settings, topics, name, moved, bounded=True)
            moved = RunSummary(None, 0.0)
        if is_interval:
            moved = self._end_interval(topics, name, moved)
        return self._result(context, self._worker(context, settings), topics, config, moved, bounded=True)

    def _await_restart(self, context: Context, topics: InternalTopics, name: str, end: DriverEnd) -> None:
        """Wait before the restart of a driver that ended by itself, or until the connector is changed or must restart."""
        delay, notice = self._plan_restart(end)
        topics.mark_unassigned(name, notice)
        topics.await_change(name, delay, interruption(paused_flag(context), lambda: self._killed))
        self._raise_if_killed()

    def _after_end(
        self,
        context: Context,
        settings: Settings,
        topics: InternalTopics,
        name: str,
        end: DriverEnd,
        *,
        bounded: bool,
        linger: bool = False,
        since: int | None = None,
    ) -> bool:
        """Return True to start another driver now, False when done; otherwise raise what reschedules or fails the task.

        With ``linger``, wait for a resume after a pause. ``since`` is when the target state was set before the driver started.
        """
        entry = topics.entry(name)
        action = after_end(exit_code=end.exit_code, bounded=bounded, dag_paused=end.dag_paused, entry=entry)
        if action is NextAction.SHARE:
            return True
        if action is NextAction.RESTART:
            if end.exit_code == exit_codes.DONE and entry is not None and since not in (None, entry.target_state_at):
                self.log.info("[%s|worker] Resumed while the driver drained; starting it again", name)
                self._restarts = DriverRestarts()
                return True
            self._await_restart(context, topics, name, end)
            entry = topics.entry(name)
            if entry is not None:
                return True
        if end.exit_code not in (exit_codes.DONE, exit_codes.FENCED):
            topics.mark_unassigned(name)
        if action is NextAction.RESCHEDULE:
            if linger and await_resume(name, topics, settings, paused_flag(context), lambda: self._killed):
                self._restarts = DriverRestarts()
                return True
            self._raise_if_killed()
            entry = topics.entry(name)
            if entry is not None:
                self._reschedule(context, settings, "The driver has drained; waiting for the resume")
        self._raise_failure(context, settings, topics, name, action, end)
        done = "moved all available records" if bounded and entry else "the connector was deleted"
        self.log.info("[%s|worker] Done: %s", name, done)
        return False


class SourceConnectorOperator(ConnectorOperator):
    """Runs a source connector; see ``ConnectorOperator``."""

    sink = False
    ui_color = "#d5eddb"


class SinkConnectorOperator(ConnectorOperator):
    """Runs a sink connector; see ``ConnectorOperator``."""

    sink = True
    ui_color = "#f3e3cf"

"""Operators that run one connector: a Spark application that lasts while the connector runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.exceptions import AirflowException
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from sluiceway import exit_codes
from sluiceway.config.connector import APPLICATION, CONNECTOR_CLASS, NAME
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError, ConfigError
from sluiceway.operators.driver_operator import DriverOperator, End, Probe, paused_probe, report_folder, with_report
from sluiceway.operators.given_config import check_kind, named_config
from sluiceway.provider.dag_bundle.dag_ids import dag_id
from sluiceway.provider.dag_bundle.dag_keys import DAG, LONG_RUNNING, MICRO_BATCH, DagKeys, dag_of, is_sink_config
from sluiceway.provider.driver.backfill import Backfill
from sluiceway.provider.driver.internal_topics import KafkaLink, Link
from sluiceway.provider.driver.outcome import Verdict, after_end, before_start
from sluiceway.provider.driver.run_variables import is_backfill, run_variables
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.hooks.kafka_connect import kafka_overrides
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook
from sluiceway.provider.lineage.assets import connector_alias, emit, written_uris
from sluiceway.provider.lineage.datasets import Lineage, lineage
from sluiceway.provider.lineage.openlineage import LineageMixin
from sluiceway.provider.links import ConnectorRestLink, publish
from sluiceway.provider.progress.cluster_view import DriverSeen
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.progress.progress_log import ProgressLog
from sluiceway.provider.progress.run_summary import MAX_CHANGES, RunSummary
from sluiceway.provider.settings import Settings
from sluiceway.provider.triggers.conditions import RestCondition
from sluiceway.storage.model import ConnectorEntry

if TYPE_CHECKING:
    from airflow.sdk import Context

_LATER = timedelta(seconds=10)
_LINGER_POLL_SECONDS = 0.5
_APPEARS_SECONDS = 300.0  # a driver that was submitted to a cluster may have to wait for machines


class ConnectorOperator(LineageMixin, DriverOperator):
    """Runs a connector until it is paused, stopped or deleted; in micro-batch mode until it has moved what is there.

    When the DAG or the connector is paused the driver drains; the task waits some seconds for a resume (``[sluiceway]
    pause_linger``), then gives its slot back and waits within the same DAG run. A driver that dies is started again by Airflow's
    retries; whatever else fails is retried too, ever later, because in a DAG that runs continuously a failed run is followed by
    the next one at once.

    In client mode the driver is the task's child and ends with it; a new one takes the connector's lease, so that an old one
    that still lingers cannot write any more. In cluster mode a driver outlives its task: a retry, or the next run, finds it by
    its heartbeats and waits for it, in the triggerer, instead of starting a second one.

    Returns, as XCom, what was moved: ``records``, ``seconds``, and ``offsets`` (``partition``, ``from``, ``to``) of the
    partitions that changed. A micro-batch that moved something makes an asset event for the connector and for what it wrote to,
    with the same in its extra. In a backfill's run it moves the run's data interval, with offsets of its own.

    Args:
        connector: the connector's name (templated); default is ``name`` in the config.
        config: its config as a dict, or the path of a JSON, YAML or .properties file on the worker; created or changed in the
            config topic when the task starts. Without it the connector is one that exists there or is yet to be created (the
            task waits for it). (templated)
        mode: ``long-running`` or ``micro-batch``; default is ``airflow.mode`` of the config.
        deferrable: in cluster mode, whether to wait for the driver's end in the triggerer rather than in a slot; default is
            Airflow's ``[operators] default_deferrable``. A task that ends while it is deferred leaves its driver running.
        conf: Spark settings; they win over the ``spark.*`` keys of the connector's config.
    """

    template_fields: Sequence[str] = (*DriverOperator.template_fields, "connector", "config")
    template_fields_renderers: ClassVar[dict[str, str]] = {"config": "json"}
    operator_extra_links = (ConnectorRestLink(), *DriverOperator.operator_extra_links)
    sink: ClassVar[bool | None] = None
    """Whether only sinks (True) or only sources (False) may be run."""

    def __init__(
        self,
        *,
        connector: str | None = None,
        config: Mapping[str, str] | str | None = None,
        mode: str | None = None,
        deferrable: bool | None = None,
        outlets: Sequence[Any] = (),
        **kwargs: Any,
    ) -> None:
        name = connector or (config.get(NAME) if isinstance(config, Mapping) else None)
        if not name and not isinstance(config, str):
            raise ValueError("A connector operator needs the connector's name: as 'connector', or as 'name' in its config.")
        if mode not in (None, LONG_RUNNING, MICRO_BATCH):
            raise ValueError(f"mode is {LONG_RUNNING!r} or {MICRO_BATCH!r}, not {mode!r}.")
        alias = [connector_alias(name)] if name and "{{" not in name else []
        super().__init__(outlets=[*outlets, *alias], **kwargs)
        self.connector = name or ""
        self.config = config
        self.mode = mode
        self.deferrable = conf.getboolean("operators", "default_deferrable", fallback=False) if deferrable is None else deferrable

    @property
    def subject(self) -> str:
        return self.connector

    def execute(self, context: Context) -> Any:
        """Run the driver, another after each short pause, and decide from its end how the task goes on.

        Runs in the Airflow task's process.
        """
        moved = None
        while moved is None:
            moved = self._drive(context)
        return moved

    def _drive(self, context: Context) -> dict[str, Any] | None:
        """Run one driver; return what the task has moved, or None if it is to run another."""
        settings = self._settings()
        overrides = self._begin(settings)
        worker = settings.worker(self.worker_properties, overrides)
        link = self._link(worker)
        is_paused = paused_probe(context)
        entry = self._await_go(link, is_paused, context["ti"].dag_id, context)
        config = dict(entry.config or {})
        mode = self.mode or DagKeys.parse(config).mode
        if config.get(APPLICATION) and mode == LONG_RUNNING:
            publish(self, context["ti"])
            self._wait_deferred(settings, RestCondition(self.connector, hosted=True), {})
        backfill = self._backfill(link, config, context)
        name, ran = (backfill.name, dict(backfill.config)) if backfill else (self.connector, config)
        bounded = mode == MICRO_BATCH or backfill is not None
        with report_folder() as folder:
            submission = Submission(name, settings.worker_file(self.worker_properties), MICRO_BATCH if bounded else mode, ran)
            hook = self._prepare(context, settings, with_report(submission, folder), overrides)
            self._go_elsewhere(context, settings, link, hook, name)

            def see_to_target_state() -> None:
                if link.ensure_paused(name, is_paused):
                    self.log.info("[%s|worker] Target state PAUSED, since the DAG is paused", name)

            with ProgressLog(name, link, settings.progress_interval) as watch:
                end = self._run(context, settings, hook, is_paused, see_to_target_state)
        if self._killed:
            raise AirflowException(f"Connector {name}: the task was told to end.")
        moved = watch.summary(end.records)
        self.log.info("[%s|worker] Moved %s", name, moved)

        def resumed() -> bool:
            return self._is_resumed(settings, link, is_paused, name)

        since = entry.target_state_at if backfill is None else None
        if self._go_on(context, link, name, end, bounded=bounded, resumed=resumed, since=since):
            return None
        if backfill is not None:
            link.end_backfill(name)
        return self._done(context, worker, link, config, moved, bounded=bounded)

    def after_wait(self, context: Context, event: Mapping[str, Any], began: Mapping[str, Any] | None = None) -> Any:
        """Go on once the driver that runs elsewhere is gone, or the connector is to rest. Runs on an Airflow worker.

        ``began`` is what ``_go_elsewhere`` noted; a connector that others host has none.
        """
        settings = self._settings()
        worker = settings.worker(self.worker_properties, self._begin(settings))
        link = self._link(worker)
        name = str(began["name"]) if began else self.connector
        self.log.info("[%s|worker] %s", name, event["seen"])
        entry = link.entry(name)
        config = dict(entry.config or {}) if entry else {}
        hosted = bool(config.get(APPLICATION))
        backfill = name != self.connector
        bounded = backfill or (bool(entry) and not hosted and (self.mode or DagKeys.parse(config).mode) == MICRO_BATCH)
        end = End(0, None, False) if hosted or entry is None else self._end_elsewhere(link.driver(name), began)
        self._go_on(context, link, name, end, bounded=bounded)
        before = ConnectorProgress([(p, o) for p, o in began["offsets"]], began["count"]) if began else None
        moved = RunSummary.between(before, link.progress(name), time.time() - began["time"] if began else 0.0)
        if backfill:
            link.end_backfill(name)
        return self._done(context, worker, link, config, moved, bounded=bounded)

    def lineage(self) -> Lineage | None:
        """Return both ends by the config that ran, else the one in the DAG, else the one in the config topic."""
        worker = self._settings().worker(self.worker_properties, kafka_overrides(self.kafka_conn_id))
        config = self._submission.config if self._submission else named_config(self.connector, self.config)
        if config is None:
            entry = self._link(worker).entry(self.connector)
            config = (entry.config if entry else None) or {}
        if CONNECTOR_CLASS not in config:
            return None
        return lineage(config, bootstrap=worker.bootstrap_servers, sink=is_sink_config(config))

    # Before the driver.

    def _await_go(self, link: Link, is_paused: Probe, dag: str, context: Context) -> ConnectorEntry:
        """Return the connector if it is to run now; else give the slot back."""
        config = named_config(self.connector, self.config)
        if config is not None:
            self.connector = config[NAME]
        if is_paused():  # queued before the pause
            self._reschedule(context, "The DAG is paused")
        if config is not None:
            self._store_config(link, {**config, DAG: dag})
        entry = link.entry(self.connector)
        if entry is None:
            self._reschedule(context, "The connector does not exist yet; create it by REST or with 'sluiceway apply'", _LATER)
        if before_start(dag_paused=False, entry=entry) is Verdict.WAIT:
            # Either the mirror is about to pause the DAG, or it was just resumed there and the topic does not say so yet.
            self._reschedule(context, f"The connector is to be {entry.target_state.value}")
        check_kind(self.connector, dict(entry.config or {}), self.sink, type(self).__name__)
        self._check_owner(link, dict(entry.config or {}), dag)
        return entry

    def _check_owner(self, link: Link, config: Mapping[str, str], dag: str) -> None:
        """Two DAGs of one connector would fence each other for ever, so a hand-written one takes it from the generated one."""
        owner = dag_of(self.connector, config)
        if owner == dag:
            return
        if dag == dag_id(self.connector):
            raise AirflowFailException(f"Connector {self.connector} is run by DAG {owner} now, as its key {DAG} says.")
        self.log.info("[%s|worker] DAG %s takes the connector over from DAG %s", self.connector, dag, owner)
        self._store_config(link, {**config, DAG: dag})

    def _store_config(self, link: Link, config: Mapping[str, str]) -> None:
        try:
            link.ensure_config(self.connector, config)
        except BadRequestError as error:
            raise AirflowException(f"Connector {self.connector}: {error}") from error

    def _backfill(self, link: Link, config: Mapping[str, str], context: Context) -> Backfill | None:
        """Make the connector that a backfill's run needs; None for any other run."""
        if not is_backfill(context):
            return None
        try:
            backfill = Backfill.plan(self.connector, config, run_variables(context))
            link.begin_backfill(backfill)
        except (BadRequestError, ConfigError) as error:
            raise AirflowFailException(f"Connector {self.connector}: {error}") from error
        self.log.info("[%s|worker] Backfill as connector %s, with offsets of its own", self.connector, backfill.name)
        return backfill

    # A driver that is not this task's child.

    def _go_elsewhere(self, context: Context, settings: Settings, link: Link, hook: ConnectorSubmitHook, name: str) -> None:
        """In cluster mode, wait in the triggerer: for a driver that runs already, or for a new one if that was asked for."""
        if hook.is_client_mode:
            return
        driver = link.driver(name)
        store = context.get("task_state_store")
        known = store is not None and self.durable and store.get(self.external_id_key)
        if driver.lives and not known:
            self.log.info("[%s|worker] A driver runs it already, as generation %d; waiting for that", name, driver.generation)
        elif self.deferrable:
            hook.leave_the_driver()
            self.log.info("[%s|worker] Submitted as %s", name, self.submit_job(context))
        else:
            return
        position = link.progress(name) or ConnectorProgress()
        generation = driver.generation - 1 if driver.lives else driver.generation
        began = {
            "name": name,
            "generation": generation,
            "time": time.time(),
            "count": position.count,
            "offsets": [list(each) for each in position.offsets[:MAX_CHANGES]],
        }
        self._wait_deferred(settings, RestCondition(name, generation, time.time() + _APPEARS_SECONDS), {"began": began})

    def _end_elsewhere(self, driver: DriverSeen, began: Mapping[str, Any] | None) -> End:
        """Return how the driver that was waited for ended; one that never came to say that it runs has failed."""
        if began and driver.generation <= began["generation"]:
            why = AirflowException(
                f"Nothing was heard of its driver for {_APPEARS_SECONDS:.0f} s; the cluster's log may say why."
            )
            return End(1, why, False)
        return End(0 if driver.clean else 1, None, False)

    def _wait_deferred(self, settings: Settings, condition: RestCondition, kwargs: dict[str, Any]) -> None:
        from sluiceway.provider.triggers import ConditionTrigger

        worker_file = str(settings.worker_file(self.worker_properties))
        trigger = ConditionTrigger.of(condition, worker_file, self.kafka_conn_id, settings.sensor_interval)
        self.defer(trigger=trigger, method_name="after_wait", kwargs=kwargs)

    # After the driver.

    def _is_resumed(self, settings: Settings, link: Link, is_paused: Probe, name: str) -> bool:
        """Wait in the slot for a resume, and say whether it came: on the way over the scheduler it takes seconds longer."""
        deadline = time.monotonic() + settings.pause_linger
        if settings.pause_linger:
            self.log.info("[%s|worker] The driver has drained; waiting %g s for a resume", name, settings.pause_linger)
        while time.monotonic() < deadline and not self._killed:
            try:
                if not is_paused() and before_start(dag_paused=False, entry=link.entry(name)) is Verdict.START:
                    return True
            except Exception as error:  # noqa: BLE001 (Airflow or Kafka is away, in whatever way: the scheduler's way is left)
                self.log.warning("[%s|worker] Cannot see whether it is resumed: %s", name, error)
                return False
            time.sleep(min(settings.pause_poll_interval, _LINGER_POLL_SECONDS))
        if self._killed:
            raise AirflowException(f"Connector {name}: the task was told to end.")
        return False

    def _go_on(
        self,
        context: Context,
        link: Link,
        name: str,
        end: End,
        *,
        bounded: bool,
        resumed: Callable[[], bool] = lambda: False,
        since: int | None = None,
    ) -> bool:
        """Return for success, True if another driver is to run at once; or raise what tells Airflow how the task goes on.

        ``resumed`` waits for a resume; ``since`` is when the target state was last set before the driver began.
        """
        if end.exit_code not in (exit_codes.DONE, exit_codes.FENCED):
            link.mark_dead(name)
        entry = link.entry(name)
        verdict = after_end(exit_code=end.exit_code, bounded=bounded, dag_paused=end.dag_paused, entry=entry)
        if verdict is Verdict.WAIT:
            if resumed():
                return True
            self._reschedule(context, "The driver has drained; waiting for the resume")
        if verdict is Verdict.AGAIN:
            if entry is not None and since not in (None, entry.target_state_at):
                self.log.info("[%s|worker] Resumed while the driver drained; starting it again", name)
                return True
            self._reschedule(context, "The driver has ended, but the connector is to run: starting it again")
        if verdict is Verdict.FENCED:
            raise AirflowException(
                f"Connector {name}: another driver has taken over, so this one has ended. If that is not wanted, look for a "
                f"second DAG or worker that runs {name}."
            ) from end.failure
        if verdict is Verdict.DIED:
            raise AirflowException(
                f"Connector {name}: the driver died with exit code {end.exit_code}; its last lines are in this log. "
                "Airflow starts it again after a pause."
            ) from end.failure
        why = "all that was there has been moved" if bounded else "the connector was deleted"
        self.log.info("[%s|worker] Done: %s", name, why)
        return False

    def _done(
        self, context: Context, worker: WorkerConfig, link: Link, config: Mapping[str, str], moved: RunSummary, *, bounded: bool
    ) -> dict[str, Any]:
        """Return what was moved, as XCom, and tell of it by asset events."""
        alias = connector_alias(self.connector)
        if bounded and moved and alias in (self.outlets or ()):
            sink = is_sink_config(config)
            topics = [] if sink else link.topics(self.connector)
            uris = written_uris(self.connector, config, sink=sink, bootstrap_servers=worker.bootstrap_servers, topics=topics)
            emit(context["outlet_events"], alias, uris, moved.as_dict())
        return moved.as_dict()

    # What tests replace.

    def _link(self, worker: WorkerConfig) -> Link:
        return KafkaLink(worker)


class SourceConnectorOperator(ConnectorOperator):
    """Runs a source connector; see ``ConnectorOperator``."""

    sink = False
    ui_color = "#d5eddb"


class SinkConnectorOperator(ConnectorOperator):
    """Runs a sink connector; see ``ConnectorOperator``."""

    sink = True
    ui_color = "#f3e3cf"

"""Operators that run one connector: a Spark application that lasts while the connector runs.

The task runs on an Airflow worker; in client mode the driver is its child, in cluster mode Spark's own affair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn

import pendulum
from airflow.exceptions import AirflowException
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowRescheduleException
from sluiceway.config.connector import CONNECTOR_CLASS, NAME
from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import BadRequestError, ConfigError, NotFoundError
from sluiceway.provider.config_provider import environment
from sluiceway.provider.dag_keys import DAG, MICRO_BATCH, DagKeys, dag_of
from sluiceway.provider.driver_processes import DriverProcesses
from sluiceway.provider.hook import ConnectorSubmitHook
from sluiceway.provider.link import KafkaLink, Link
from sluiceway.provider.naming import dag_id
from sluiceway.provider.settings import Settings, read_settings
from sluiceway.provider.submission import Submission
from sluiceway.provider.verdict import EXIT_FENCED, Verdict, after_end, before_start
from sluiceway.provider.watch import DriverWatch
from sluiceway.storage.model import ConnectorEntry

if TYPE_CHECKING:
    from airflow.sdk import Context

Probe = Callable[[], bool]

_SOON = timedelta()
_LATER = timedelta(seconds=10)

# The supervisor of an Airflow task kills it 5 s after it was asked to end.
_KILL_DRAIN_SECONDS = 4.0


class End(NamedTuple):
    """How a driver ended: spark-submit's exit code (in cluster mode 0 or 1), its error, and whether the DAG was paused."""

    exit_code: int
    failure: Exception | None
    dag_paused: bool


class ConnectorOperator(SparkSubmitOperator):
    """Runs a connector until it is paused, stopped or deleted; in micro-batch mode until it has moved what is there.

    When the DAG or the connector is paused the driver drains, and the task gives its slot back and waits for the resume
    within the same DAG run. A driver that dies is started again by Airflow's retries; whatever else fails is retried too, ever
    later, because in a DAG that runs continuously a failed run is followed by the next one at once.

    Args:
        connector: the connector's name (templated); default is ``name`` in the config.
        config: its config; created or changed in the config topic when the task starts. Without it the connector is one that
            exists there or is yet to be created (the task waits for it). (templated)
        worker_properties: path of the worker's properties file; default is Airflow's ``[sluiceway] worker_properties``.
        conn_id: the Spark connection; default is Airflow's ``[sluiceway] spark_conn_id``. Where there is no such connection,
            Spark runs in local mode with as many slots as the connector needs.
        conf: Spark settings; they win over the ``spark.*`` keys of the connector's config.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "connector", "config", "worker_properties")
    template_fields_renderers: ClassVar[dict[str, str]] = {"config": "json"}
    ui_color = "#d9e8f5"
    sink: ClassVar[bool | None] = None
    """Whether only sinks (True) or only sources (False) may be run."""

    _conn_id: str
    py_files: str | None
    env_vars: dict[str, Any] | None

    def __init__(
        self,
        *,
        connector: str | None = None,
        config: Mapping[str, str] | None = None,
        worker_properties: str | None = None,
        conn_id: str | None = None,
        # Named here so that a DAG's default_args reach them.
        retries: int = 10,
        retry_delay: timedelta = timedelta(seconds=5),
        retry_exponential_backoff: float = 2.0,
        max_retry_delay: timedelta = timedelta(minutes=1),
        **kwargs: Any,
    ) -> None:
        name = connector or (config or {}).get(NAME)
        if not name:
            raise ValueError("A connector operator needs the connector's name: as 'connector', or as 'name' in its config.")
        super().__init__(
            conn_id=conn_id or "",
            retries=retries,
            retry_delay=retry_delay,
            retry_exponential_backoff=retry_exponential_backoff,
            max_retry_delay=max_retry_delay,
            **kwargs,
        )
        self.connector = name
        self.config = config
        self.worker_properties = worker_properties
        self._submission: Submission | None = None
        self._processes: DriverProcesses | None = None
        self._settle_time = timedelta()
        self._killed = False

    def execute(self, context: Context) -> None:
        """Run the driver and decide from its end how the task goes on. Runs in the Airflow task's process."""
        settings = self._settings()
        self._settle_time = timedelta(seconds=settings.settle_time)
        worker = settings.worker(self.worker_properties)
        link = self._link(worker)
        ti = context["ti"]

        def is_paused() -> bool:
            return bool(ti.get_dag(ti.dag_id).is_paused)

        entry = self._await_go(link, is_paused, ti.dag_id, context)
        keys = DagKeys.parse(entry.config or {})
        hook = self._prepare(settings, entry, keys)
        end = self._run(context, settings, link, hook, is_paused)
        if self._killed:
            raise AirflowException(f"Connector {self.connector}: the task was told to end.")
        self._go_on(context, link, end, bounded=keys.mode == MICRO_BATCH)

    def on_kill(self) -> None:
        """Let the driver drain for some seconds before it is killed. Called in the main thread, by a signal."""
        self._killed = True
        if self._processes is not None:
            self._processes.look()
            if self._processes.drain() and self._processes.wait(_KILL_DRAIN_SECONDS):
                self.log.info("[%s|worker] The driver has drained", self.connector)
        if self._hook is not None:
            super().on_kill()

    # Before the driver.

    def _await_go(self, link: Link, is_paused: Probe, dag: str, context: Context) -> ConnectorEntry:
        """Return the connector if it is to run now; else give the slot back."""
        if is_paused():  # queued before the pause
            self._reschedule(context, _SOON, "The DAG is paused")
        if self.config is not None:
            self._store_config(link, {**self.config, NAME: self.connector, DAG: dag})
        entry = link.entry(self.connector)
        if entry is None:
            self._reschedule(context, _LATER, "The connector does not exist yet; create it by REST or with 'sluiceway apply'")
        if before_start(dag_paused=False, entry=entry) is Verdict.WAIT:
            # Either the mirror is about to pause the DAG, or it was just resumed there and the topic does not say so yet.
            self._reschedule(context, _SOON, f"The connector is to be {entry.target_state.value}")
        config = dict(entry.config or {})
        self._check_kind(config)
        self._check_owner(link, config, dag)
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

    def _check_kind(self, config: Mapping[str, str]) -> None:
        if self.sink is None:
            return
        try:
            kind = is_sink(connector_class(config.get(CONNECTOR_CLASS, "")))
        except (ConfigError, NotFoundError) as error:
            raise AirflowException(f"Connector {self.connector}: {error}") from error
        if kind != self.sink:
            other = SinkConnectorOperator if kind else SourceConnectorOperator
            raise AirflowException(
                f"Connector {self.connector} ({config.get(CONNECTOR_CLASS)}) is a {'sink' if kind else 'source'}: "
                f"use {other.__name__} for it, not {type(self).__name__}."
            )

    def _prepare(self, settings: Settings, entry: ConnectorEntry, keys: DagKeys) -> ConnectorSubmitHook:
        """Fill in what spark-submit is told; the hook adds what depends on where the driver runs."""
        submission = Submission(self.connector, settings.worker_file(self.worker_properties), keys.mode, dict(entry.config or {}))
        self._submission = submission
        self._conn_id = self._conn_id or settings.spark_conn_id
        self.application = submission.application
        self.py_files = submission.py_files(self.py_files)
        # What the configs refer to in Airflow: the driver and its executors cannot ask for it.
        secrets = environment(read_properties(submission.worker), submission.config)
        self.env_vars = {**(self.env_vars or {}), **secrets} or None
        self.name = submission.name
        self._hook = hook = self._get_hook()
        return hook

    def _get_hook(self) -> ConnectorSubmitHook:
        if self._submission is None:
            raise AirflowException(f"Connector {self.connector}: there is no driver before the task has begun.")
        return ConnectorSubmitHook(
            self._submission,
            conf=self.conf,
            conn_id=self._conn_id,
            files=self.files,
            py_files=self.py_files,
            archives=self._archives,
            driver_class_path=self.driver_class_path,
            jars=self.jars,
            packages=self.packages,
            exclude_packages=self.exclude_packages,
            repositories=self._repositories,
            total_executor_cores=self._total_executor_cores,
            executor_cores=self._executor_cores,
            executor_memory=self._executor_memory,
            driver_memory=self._driver_memory,
            keytab=self.keytab,
            principal=self.principal,
            proxy_user=self.proxy_user,
            name=self.name,
            num_executors=self._num_executors,
            status_poll_interval=self._status_poll_interval,
            env_vars=self.env_vars,
            verbose=self._verbose,
            spark_binary=self._spark_binary,
            properties_file=self.properties_file,
            yarn_queue=self._yarn_queue,
            deploy_mode=self._deploy_mode,
            use_krb5ccache=self._use_krb5ccache,
            post_submit_commands=self.post_submit_commands,
            track_driver_via_k8s_api=self._track_driver_via_k8s_api,
            yarn_track_via_rm_api=self._yarn_track_via_rm_api,
            yarn_rm_auth=self._yarn_rm_auth,
        )

    # While it runs, and after.

    def _run(self, context: Context, settings: Settings, link: Link, hook: ConnectorSubmitHook, is_paused: Probe) -> End:
        """Run the driver to its end."""

        def see_to_target_state() -> None:
            if link.ensure_paused(self.connector, is_paused):
                self.log.info("[%s|worker] Target state PAUSED, since the DAG is paused", self.connector)

        failure: Exception | None = None
        with DriverWatch(
            self.connector,
            is_paused=is_paused,
            on_pause=see_to_target_state,
            processes=lambda: self._driver_processes(hook),
            submit_ended=lambda: hook.exit_code is not None,
            interval=settings.pause_poll_interval,
            patience=settings.drain_timeout,
        ) as watch:
            try:
                super().execute(context)
            except Exception as error:  # noqa: BLE001 (hook and trackers raise several kinds; all mean that the driver failed)
                failure = error
        code = hook.exit_code if hook.is_client_mode else None
        return End(code if code is not None else int(failure is not None), failure, watch.paused)

    def _driver_processes(self, hook: ConnectorSubmitHook) -> DriverProcesses | None:
        if self._processes is None and hook.is_client_mode and hook.submit_pid is not None:
            self._processes = DriverProcesses(hook.submit_pid, self.application)
        return self._processes

    def _go_on(self, context: Context, link: Link, end: End, *, bounded: bool) -> None:
        """Return for success, or raise what tells Airflow how the task goes on."""
        name = self.connector
        if end.exit_code not in (0, EXIT_FENCED):
            link.mark_dead(name)
        verdict = after_end(exit_code=end.exit_code, bounded=bounded, dag_paused=end.dag_paused, entry=link.entry(name))
        if verdict is Verdict.WAIT:
            self._reschedule(context, _SOON, "The driver has drained; waiting for the resume")
        if verdict is Verdict.AGAIN:
            self._reschedule(context, _SOON, "The driver has ended, but the connector is to run: starting it again")
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

    def _reschedule(self, context: Context, delay: timedelta, why: str) -> NoReturn:
        """Give the slot back but keep the DAG run; Airflow queues the task again after the delay, or on the resume.

        Never sooner than the scheduler has heard of it: it would take the old end for the new try's, and fail that.
        """
        self.log.info("[%s|worker] %s; the task gives its slot back", self.connector, why)
        store = context.get("task_state_store")
        if store is not None and self.durable:  # else a drained driver would be taken for the finished job of a retry
            store.delete(self.external_id_key)
        raise AirflowRescheduleException(pendulum.now("UTC") + max(delay, self._settle_time))

    # What tests replace.

    def _settings(self) -> Settings:
        return read_settings()

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

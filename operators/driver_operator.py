"""What operators that run a driver share: spark-submit, a watch over it, and its end.

The task runs on an Airflow worker; in client mode the driver is its child, in cluster mode Spark's own affair.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pendulum
from airflow.exceptions import AirflowException
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowRescheduleException

from sluiceway.config.properties import read_properties
from sluiceway.provider.config_provider import environment
from sluiceway.provider.driver.driver_watch import DriverWatch
from sluiceway.provider.driver.processes import DriverProcesses
from sluiceway.provider.driver.run_variables import run_variables
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.hooks.kafka_connect import kafka_overrides
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook
from sluiceway.provider.links import SparkUiLink, publish
from sluiceway.provider.settings import Settings, read_settings

if TYPE_CHECKING:
    from airflow.sdk import BaseOperatorLink, Context

Probe = Callable[[], bool]

# The supervisor of an Airflow task kills it 5 s after it was asked to end.
_KILL_DRAIN_SECONDS = 4.0


class End(NamedTuple):
    """How a driver ended: spark-submit's exit code (in cluster mode 0 or 1), its error, and whether the DAG was paused.

    ``records`` is how many it moved, where it could say so.
    """

    exit_code: int
    failure: Exception | None
    dag_paused: bool
    records: int | None = None


class DriverOperator(SparkSubmitOperator):
    """Runs a driver; what it hosts is its subclasses' affair.

    Args:
        worker_properties: path of the worker's properties file; default is Airflow's ``[sluiceway] worker_properties``.
        kafka_conn_id: an Airflow connection of type ``kafka_connect`` or ``kafka``: where Kafka is and how to log in there. Wins
            over the worker's file. (templated)
        conn_id: the Spark connection; default is Airflow's ``[sluiceway] spark_conn_id``. Where there is no such connection,
            Spark runs in local mode with as many slots as are needed.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "worker_properties", "kafka_conn_id")
    operator_extra_links: Collection[BaseOperatorLink] = (SparkUiLink(),)
    ui_color = "#d9e8f5"

    _conn_id: str
    py_files: str | None
    env_vars: dict[str, Any] | None

    def __init__(
        self,
        *,
        worker_properties: str | None = None,
        kafka_conn_id: str | None = None,
        conn_id: str | None = None,
        # Named here so that a DAG's default_args reach them.
        retries: int = 10,
        retry_delay: timedelta = timedelta(seconds=5),
        retry_exponential_backoff: float = 2.0,
        max_retry_delay: timedelta = timedelta(minutes=1),
        **kwargs: Any,
    ) -> None:
        super().__init__(
            conn_id=conn_id or "",
            retries=retries,
            retry_delay=retry_delay,
            retry_exponential_backoff=retry_exponential_backoff,
            max_retry_delay=max_retry_delay,
            **kwargs,
        )
        self.worker_properties = worker_properties
        self.kafka_conn_id = kafka_conn_id
        self._submission: Submission | None = None
        self._processes: DriverProcesses | None = None
        self._settle_time = timedelta()
        self._killed = False

    @property
    def subject(self) -> str:
        """What the log says it is about."""
        raise NotImplementedError

    def on_kill(self) -> None:
        """Let the driver drain for some seconds before it is killed. Called in the main thread, by a signal."""
        self._killed = True
        if self._processes is not None:
            self._processes.look()
            if self._processes.drain() and self._processes.wait(_KILL_DRAIN_SECONDS):
                self.log.info("[%s|worker] The driver has drained", self.subject)
        if self._hook is not None:
            super().on_kill()

    def _begin(self, settings: Settings) -> dict[str, str]:
        """Take note of settings; return the worker properties that win over its file."""
        self._settle_time = timedelta(seconds=settings.settle_time)
        return kafka_overrides(self.kafka_conn_id)

    def _prepare(
        self, context: Context, settings: Settings, submission: Submission, overrides: Mapping[str, str]
    ) -> ConnectorSubmitHook:
        """Fill in what spark-submit is told; the hook adds what depends on where the driver runs."""
        self._submission = submission
        self._conn_id = self._conn_id or settings.spark_conn_id
        self.application = submission.application
        # What the configs refer to in Airflow: the driver and its executors cannot ask for it.
        secrets = environment(read_properties(submission.worker), submission.config, run_variables(context), overrides)
        self.env_vars = {**(self.env_vars or {}), **secrets} or None
        self.name = submission.name
        self._hook = hook = self._get_hook()
        if hook._is_yarn_cluster_mode and not self._yarn_track_via_rm_api:
            # Without its resource manager's REST API Spark's operator refuses to be durable; heartbeats find the driver as well.
            self.durable = False
        hook.on_ui = lambda: publish(self, context["ti"])
        publish(self, context["ti"])
        return hook

    def _get_hook(self) -> ConnectorSubmitHook:
        if self._submission is None:
            raise AirflowException(f"{self.subject}: there is no driver before the task has begun.")
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

    def _run(
        self, context: Context, settings: Settings, hook: ConnectorSubmitHook, is_paused: Probe, on_pause: Callable[[], None]
    ) -> End:
        """Run the driver to its end."""
        self._processes = None
        failure: Exception | None = None
        with DriverWatch(
            self.subject,
            is_paused=is_paused,
            on_pause=on_pause,
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
        exit_code = code if code is not None else int(failure is not None)
        return End(exit_code, failure, watch.paused, _reported(self._submission))

    def _driver_processes(self, hook: ConnectorSubmitHook) -> DriverProcesses | None:
        if self._processes is None and hook.is_client_mode and hook.submit_pid is not None:
            self._processes = DriverProcesses(hook.submit_pid, self.application)
        return self._processes

    def _reschedule(self, context: Context, why: str, delay: timedelta = timedelta()) -> NoReturn:
        """Give the slot back but keep the DAG run; Airflow queues the task again after the delay, or on the resume.

        Never sooner than the scheduler has heard of it: it would take the old end for the new try's, and fail that.
        """
        self.log.info("[%s|worker] %s; the task gives its slot back", self.subject, why)
        store = context.get("task_state_store")
        if store is not None and self.durable:  # else a drained driver would be taken for the finished job of a retry
            store.delete(self.external_id_key)
        raise AirflowRescheduleException(pendulum.now("UTC") + max(delay, self._settle_time))

    # What tests replace.

    def _settings(self) -> Settings:
        return read_settings()


def paused_probe(context: Context) -> Probe:
    """Return what tells whether the task's DAG is paused; it asks Airflow each time."""
    ti = context["ti"]
    return lambda: bool(ti.get_dag(ti.dag_id).is_paused)


def with_report(submission: Submission, folder: str) -> Submission:
    """Return a submission whose driver, if it is on this machine, says in ``folder`` what it has moved."""
    return replace(submission, report=Path(folder) / "report.json")


def report_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="sluiceway-")


def _reported(submission: Submission | None) -> int | None:
    """Return how many records the driver says it has moved; None if it did not come to say."""
    if submission is None or submission.report is None:
        return None
    try:
        return int(json.loads(submission.report.read_text(encoding="utf-8"))["records"])
    except (OSError, ValueError, KeyError, TypeError):
        return None

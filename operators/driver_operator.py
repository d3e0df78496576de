"""The base of operators that run a driver: submits it with spark-submit, watches it, and reports its end.

The task runs on an Airflow worker. In client mode the driver is the task's child process; in cluster mode Spark runs it.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pendulum
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowRescheduleException

from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.config_provider import environment
from sluiceway.provider.driver.driver_watch import DriverWatch
from sluiceway.provider.driver.internal_topics import InternalTopics, KafkaInternalTopics
from sluiceway.provider.driver.processes import DriverProcesses
from sluiceway.provider.driver.restarts import Restarts
from sluiceway.provider.driver.run_variables import run_variables
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.hooks.kafka_connect import kafka_overrides
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook
from sluiceway.provider.links import SparkUiLink, publish
from sluiceway.provider.settings import Settings, read_settings

if TYPE_CHECKING:
    from airflow.sdk import BaseOperatorLink, Context

PausedFlag = Callable[[], bool]
"""Returns whether the task's DAG is paused."""

# `airflow dags test` queues a task of a paused DAG again and again, so the line says how to end that.
DAG_PAUSED = "The DAG is paused and the connector starts when it is unpaused (airflow dags unpause)"

# Airflow's supervisor kills a task 5 s after it has asked it to end.
_DRAIN_ON_KILL_SECONDS = 4.0


class DriverEnd(NamedTuple):
    """The end of a driver."""

    exit_code: int
    """spark-submit's exit code; in cluster mode 0 or 1."""
    failure: Exception | None
    """The error of spark-submit, or of the tracking in cluster mode."""
    dag_paused: bool
    records: int | None = None
    """The number of records that the driver moved; None if it did not report it."""
    seconds: float = 0.0
    """The time that the driver ran."""


class DriverOperator(SparkSubmitOperator):
    """Runs a driver. Subclasses define which connectors it hosts.

    The task starts a driver that dies again, first after 1 s, then after twice the delay of the time before, up to 60 s. Ten
    minutes without a death reset the delay. Airflow's retries (``retries``, 10 by default) are for the end of the task itself.

    Args:
        worker_properties: path of the worker's properties file; default is Airflow's ``[sluiceway] worker_properties``.
            (templated)
        kafka_conn_id: an Airflow connection of type ``kafka_connect`` or ``kafka`` with the addresses and credentials of Kafka.
            Overrides the worker's file. (templated)
        conn_id: the Spark connection; default is Airflow's ``[sluiceway] spark_conn_id``. If it does not exist, Spark runs in
            local mode with as many slots as the connector needs.
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
        # Explicit parameters, because Airflow applies a DAG's default_args only to those.
        retries: int = 10,
        retry_delay: timedelta = timedelta(seconds=1),
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
        self._killed = False
        self._restarts = Restarts()
        self._began: float | None = None

    def pre_execute(self, context: Any) -> None:
        """Note when the operator begins, after Airflow has parsed the DAG."""
        self._began = time.time()
        super().pre_execute(context)

    @property
    def subject(self) -> str:
        """Return the name that prefixes log lines: the connector's or the application's."""
        raise NotImplementedError

    def on_kill(self) -> None:
        """Drain the driver for at most 4 s, then kill it. Runs in the main thread, in a signal handler."""
        self._killed = True
        if self._processes is not None:
            self._processes.refresh()
            if self._processes.drain() and self._processes.wait(_DRAIN_ON_KILL_SECONDS):
                self.log.info("[%s|worker] The driver has drained", self.subject)
        if self._hook is not None:
            super().on_kill()

    def _worker_overrides(self) -> dict[str, str]:
        """Return the worker properties that override the worker's file; raises ConfigError."""
        return kafka_overrides(self.kafka_conn_id)

    def _prepare(
        self, context: Context, settings: Settings, submission: Submission, overrides: Mapping[str, str]
    ) -> ConnectorSubmitHook:
        """Return the hook for a submission, and publish the task's links."""
        if self._submission is None:  # a driver that is started again has no start to explain
            submission = replace(submission, times=self._times(context))
        self._submission = submission
        self._conn_id = self._conn_id or settings.spark_conn_id
        self.application = submission.application
        # Values from Airflow that the configs refer to, because the driver and its executors cannot read them.
        secrets = environment(read_properties(submission.worker), submission.config, run_variables(context), overrides)
        self.env_vars = {**(self.env_vars or {}), **secrets} or None
        self.name = submission.name
        self._hook = hook = self._submit_hook(submission)
        if hook._is_yarn_cluster_mode and not self._yarn_track_via_rm_api:
            # Without the resource manager's REST API, Airflow's operator refuses durable=True; heartbeats find the driver too.
            self.durable = False
        hook.on_ui = lambda: publish(self, context["ti"])
        publish(self, context["ti"])
        return hook

    def _times(self, context: Context) -> dict[str, float]:
        """Return when the steps of the start so far were reached, in seconds since the epoch (``StartTimes``)."""
        run = context.get("dag_run")
        started = {
            "DAG run due": getattr(run, "run_after", None),  # of a new DAG that runs all the time, when Airflow has parsed it
            "DAG run started": getattr(run, "start_date", None),
            "Airflow task started": getattr(context["ti"], "start_date", None),
        }
        times = {step: moment.timestamp() for step, moment in started.items() if moment is not None}
        if self._began is not None:
            times["operator started"] = self._began
        return {**times, "driver submitted": time.time()}

    def _submit_hook(self, submission: Submission) -> ConnectorSubmitHook:
        """Return the hook with the arguments of SparkSubmitOperator. Tests replace it."""
        return ConnectorSubmitHook(
            submission,
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
        self, context: Context, settings: Settings, hook: ConnectorSubmitHook, is_paused: PausedFlag, on_pause: Callable[[], None]
    ) -> DriverEnd:
        """Submit the driver and block until it has ended; ``is_paused`` and ``on_pause`` as in ``DriverWatch``."""
        self._processes = None
        failure: Exception | None = None
        began = time.monotonic()
        with DriverWatch(
            self.subject,
            is_paused=is_paused,
            on_pause=on_pause,
            processes=lambda: self._driver_processes(hook),
            submit_ended=lambda: hook.exit_code is not None,
            interval=settings.pause_poll_interval,
            drain_timeout=settings.drain_timeout,
        ) as watch:
            try:
                super().execute(context)
            except Exception as error:  # noqa: BLE001 (hook and trackers raise several types; each means that the driver failed)
                failure = error
        code = hook.exit_code if hook.is_client_mode else None
        exit_code = code if code is not None else int(failure is not None)
        return DriverEnd(exit_code, failure, watch.paused, _reported_records(self._submission), time.monotonic() - began)

    def _driver_processes(self, hook: ConnectorSubmitHook) -> DriverProcesses | None:
        if self._processes is None and hook.is_client_mode and hook.submit_pid is not None:
            self._processes = DriverProcesses(hook.submit_pid, self.application)
        return self._processes

    def _reschedule(self, context: Context, settings: Settings, why: str) -> NoReturn:
        """Release the slot but keep the DAG run. Airflow queues the task again, or when the DAG resumes.

        Waits at least ``settle_time``: a scheduler that has not seen the end of this try yet would take it for the end of the
        next one, and fail the task.
        """
        self.log.info("[%s|worker] %s; the task releases its slot", self.subject, why)
        self._forget_driver(context)
        raise AirflowRescheduleException(pendulum.now("UTC") + timedelta(seconds=settings.settle_time))

    def _forget_driver(self, context: Context) -> None:
        """Forget a driver that has ended, so that the next one is submitted. Otherwise Airflow takes it for this task's job."""
        store = context.get("task_state_store")
        if store is not None and self.durable:
            store.delete(self.external_id_key)

    def _plan_restart(self, end: DriverEnd) -> tuple[float, str]:
        """Return the seconds to wait before the restart of a driver that ended by itself, and the message, which is logged."""
        delay = self._restarts.next_delay(end.seconds)
        notice = self._restarts.notice(end.exit_code, delay)
        # A driver on this machine has logged its cause; the error of spark-submit holds no more than the exit code.
        self.log.warning("[%s|worker] %s", self.subject, notice, exc_info=None if self._processes else end.failure)
        return delay, notice

    def _raise_if_killed(self) -> None:
        if self._killed:
            raise AirflowException(f"{self.subject}: Airflow ended the task while its driver ran.")

    def _internal_topics(self, worker: WorkerConfig) -> InternalTopics:
        """Return the access to the Connect cluster. Tests replace it."""
        return KafkaInternalTopics(worker)

    def _settings(self) -> Settings:
        """Return Airflow's ``[sluiceway]`` section. Tests replace it."""
        return read_settings()


def paused_flag(context: Context) -> PausedFlag:
    """Return a function that reads the paused flag of the task's DAG from Airflow at each call."""
    ti = context["ti"]
    return lambda: bool(ti.get_dag(ti.dag_id).is_paused)


def with_report(submission: Submission, folder: str) -> Submission:
    """Return a submission whose driver, if it runs on this machine, writes its number of records to a file in ``folder``."""
    return replace(submission, report=Path(folder) / "report.json")


def report_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder for ``with_report``."""
    return tempfile.TemporaryDirectory(prefix="sluiceway-")


def _reported_records(submission: Submission | None) -> int | None:
    if submission is None or submission.report is None:
        return None
    try:
        return int(json.loads(submission.report.read_text(encoding="utf-8"))["records"])
    except (OSError, ValueError, KeyError, TypeError):  # the driver died before it wrote the file
        return None

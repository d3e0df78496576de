"""The base of operators that run a driver: submits it with spark-submit, watches it, and reports its end.

The task runs on an Airflow worker. In client mode the driver is the task's child process; in cluster mode Spark runs it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pendulum
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.reachability import check_brokers
from sluiceway.provider.compat import AirflowException, AirflowFailException, AirflowRescheduleException, backoff
from sluiceway.provider.config_provider import environment, for_run, resolve_masked
from sluiceway.provider.driver.cluster_trackers import known_state
from sluiceway.provider.driver.driver_watch import DriverWatch
from sluiceway.provider.driver.internal_topics import InternalTopics, KafkaInternalTopics
from sluiceway.provider.driver.outcome import DriverRestarts
from sluiceway.provider.driver.processes import DriverProcesses
from sluiceway.provider.driver.run_variables import run_variables
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.driver.submit_file import Resolve
from sluiceway.provider.driver.submit_options import SubmitOptions
from sluiceway.provider.hooks.kafka_connect import kafka_overrides
from sluiceway.provider.hooks.spark_submit import ConnectorSubmitHook
from sluiceway.provider.links import SparkUiLink, publish
from sluiceway.provider.settings import Settings, read_settings
from sluiceway.provider.templated import Templated

if TYPE_CHECKING:
    from airflow.sdk import BaseOperatorLink, Context
    from requests.auth import AuthBase

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
    cause: str | None = None
    """The last error in its output."""
    ended: bool | None = None
    """Whether its micro-batch has moved what there was, rather than drained because it was told to; None if unknown."""


class DriverOperator(Templated, SparkSubmitOperator):
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

    template_fields: Sequence[str] = tuple(
        dict.fromkeys((*SparkSubmitOperator.template_fields, "post_submit_commands", "worker_properties", "kafka_conn_id"))
    )
    operator_extra_links: Collection[BaseOperatorLink] = (SparkUiLink(),)
    ui_color = "#d9e8f5"

    external_id_key = "spark_job_id"
    """The key of the cluster manager's id of the driver in Airflow's task state store, which Airflow has from 3.3 on."""

    py_files: str | None
    env_vars: dict[str, Any] | None

    def __init__(
        self,
        *,
        worker_properties: str | None = None,
        kafka_conn_id: str | None = None,
        conn_id: str | None = None,
        # Explicit parameters, because Airflow applies a DAG's default_args only to those. SparkSubmitOperator has them too, some
        # since recently, and keeps them in attributes of its own.
        archives: str | None = None,
        deploy_mode: str | None = None,
        driver_memory: str | None = None,
        durable: bool | None = None,
        executor_cores: int | None = None,
        executor_memory: str | None = None,
        num_executors: int | None = None,
        post_submit_commands: list[str] | None = None,
        repositories: str | None = None,
        spark_binary: str | None = None,
        status_poll_interval: float = 1,
        total_executor_cores: int | None = None,
        track_driver_via_k8s_api: bool = False,
        use_krb5ccache: bool = False,
        verbose: bool = False,
        yarn_queue: str | None = None,
        yarn_rm_auth: AuthBase | None = None,
        yarn_track_via_rm_api: bool = False,
        retries: int = 10,
        retry_delay: timedelta = timedelta(seconds=1),
        retry_exponential_backoff: float = 2.0,
        max_retry_delay: timedelta = timedelta(minutes=1),
        **kwargs: Any,
    ) -> None:
        super().__init__(
            retries=retries,
            retry_delay=retry_delay,
            retry_exponential_backoff=backoff(retry_exponential_backoff),
            max_retry_delay=max_retry_delay,
            **kwargs,
        )
        self.worker_properties = worker_properties
        self.kafka_conn_id = kafka_conn_id
        self.conn_id = conn_id
        self.durable = getattr(self, "durable", True) if durable is None else durable
        self.post_submit_commands = post_submit_commands or []
        self._options = SubmitOptions(
            archives=archives,
            deploy_mode=deploy_mode,
            driver_memory=driver_memory,
            executor_cores=executor_cores,
            executor_memory=executor_memory,
            num_executors=num_executors,
            repositories=repositories,
            spark_binary=spark_binary,
            status_poll_interval=status_poll_interval,
            total_executor_cores=total_executor_cores,
            track_driver_via_k8s_api=track_driver_via_k8s_api,
            use_krb5ccache=use_krb5ccache,
            verbose=verbose,
            yarn_queue=yarn_queue,
            yarn_rm_auth=yarn_rm_auth,
            yarn_track_via_rm_api=yarn_track_via_rm_api,
        )
        self._submit_hook: ConnectorSubmitHook | None = None
        self._submission: Submission | None = None
        self._processes: DriverProcesses | None = None
        self._killed = False
        self._restarts = DriverRestarts()
        self._resolve: Resolve = dict
        self._began: float | None = None

    def pre_execute(self, context: Any) -> None:
        """Note when the operator begins, after Airflow has parsed the DAG."""
        self._began = time.time()
        super().pre_execute(context)

    @property
    def subject(self) -> str:
        """Return the name that prefixes log lines: the connector's or the application's."""
        raise NotImplementedError

    @property
    def has_run(self) -> bool:
        """Return whether this task has already prepared a driver, with its config and connections as they are."""
        return self._submission is not None

    @property
    def driver_ui_url(self) -> str | None:
        """Return the address of the driver's Spark UI; None before it is known, and in cluster mode."""
        return None if self._submit_hook is None else self._submit_hook.ui_url

    def on_kill(self) -> None:
        """Drain the driver for at most 4 s, then kill it. Runs in the main thread, in a signal handler."""
        self._killed = True
        if self._processes is not None:
            self._processes.refresh()
            if self._processes.drain() and self._processes.wait(_DRAIN_ON_KILL_SECONDS):
                self.log.info("[%s|worker] The driver has drained", self.subject)
        if self._submit_hook is not None:
            self._submit_hook.on_kill()

    def _end_driver(self, *, kill: bool) -> None:
        """Drain the driver, or kill it. In cluster mode, ask the cluster to end it. Callable from another thread."""
        if self._processes is None:
            if self._submit_hook is not None:
                self._submit_hook.on_kill()
        elif kill:
            self._processes.kill()
        else:
            self._processes.drain()

    def _worker(self, context: Context, settings: Settings, overrides: Mapping[str, str] | None = None) -> WorkerConfig:
        """Return the worker's config, with which references to this DAG run can be resolved; raises ConfigError.

        ``overrides`` are those of ``_worker_overrides``, for callers that have asked Airflow for them already.
        """
        more = self._worker_overrides() if overrides is None else overrides
        return for_run(settings.worker(self.worker_properties, more), run_variables(context))

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
        self.application = submission.application
        # Values from Airflow that the configs refer to, because the driver and its executors cannot read them.
        secrets = environment(read_properties(submission.worker), submission.config, run_variables(context), overrides)
        self.env_vars = {**(self.env_vars or {}), **secrets} or None
        self.name = submission.name
        self._resolve = partial(resolve_masked, self._worker(context, settings, overrides))
        self._submit_hook = hook = self._hook_for(submission, self.conn_id or settings.spark_conn_id)
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

    def _hook_for(self, submission: Submission, conn_id: str) -> ConnectorSubmitHook:
        """Return the hook that submits a driver with this operator's options. Tests replace it."""
        options = replace(
            self._options,
            driver_class_path=self.driver_class_path,
            env_vars=self.env_vars,
            exclude_packages=self.exclude_packages,
            files=self.files,
            jars=self.jars,
            keytab=self.keytab,
            name=self.name,
            packages=self.packages,
            post_submit_commands=tuple(self.post_submit_commands or ()),
            principal=self.principal,
            properties_file=self.properties_file,
            proxy_user=self.proxy_user,
            py_files=self.py_files,
        )
        return ConnectorSubmitHook(submission, conf=self.conf, conn_id=conn_id, options=options, resolve=self._resolve)

    def _run(
        self, context: Context, settings: Settings, hook: ConnectorSubmitHook, is_paused: PausedFlag, on_pause: Callable[[], None]
    ) -> DriverEnd:
        """Submit the driver and block until it has ended; ``is_paused`` and ``on_pause`` as in ``DriverWatch``."""
        self._processes = None
        hook.on_interrupt = partial(self._drain_late, hook, settings.drain_timeout)
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
                self._submit_and_wait(context, hook)
            except AirflowFailException:
                raise
            except Exception as error:  # noqa: BLE001 (hook and trackers raise several types; each means that the driver failed)
                failure = error
        code = hook.exit_code if hook.is_client_mode else None
        exit_code = code if code is not None else int(failure is not None)
        (records, ended), seconds = _reported(self._submission), time.monotonic() - began
        return DriverEnd(exit_code, failure, watch.paused, records, seconds, hook.last_error if exit_code else None, ended)

    def _submit_and_wait(self, context: Context, hook: ConnectorSubmitHook) -> None:
        """Submit the driver and wait for its end, or for the end of an earlier try's driver that the cluster still runs."""
        if hook.tracker is None:
            hook.submit(self.application)
            return
        store = self._driver_store(context)
        known = None if store is None else store.get(self.external_id_key)
        if known is not None:
            state = known_state(hook.tracker, str(known))
            self.log.info("[%s|worker] An earlier try has submitted driver %s: %s", self.subject, known, state.name)
            if state.succeeded:
                return
            if state.active:
                hook.await_end(str(known))
                return
        submitted = hook.submit(self.application)
        if submitted is not None:
            if store is not None:
                store.set(self.external_id_key, submitted)
            hook.await_end(submitted)

    def _driver_store(self, context: Context) -> Any:
        """Return Airflow's task state store; None if the task is not durable, or Airflow has none."""
        return context.get("task_state_store") if self.durable else None

    def _drain_late(self, hook: ConnectorSubmitHook, seconds: float, await_end: Callable[[], object]) -> None:
        """Drain a driver whose task has lasted too long. The on_kill that Airflow calls afterwards has less time."""
        if (processes := self._driver_processes(hook)) is not None:
            processes.drain_within(seconds, await_end)

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
        store = self._driver_store(context)
        if store is not None:
            store.delete(self.external_id_key)

    def _plan_restart(self, end: DriverEnd) -> tuple[float, str]:
        """Return the seconds to wait before the restart of a driver that ended by itself, and the message, which is logged."""
        delay = self._restarts.next_delay(end.seconds)
        notice = self._restarts.notice(end.exit_code, delay, end.cause)
        # A driver on this machine has logged its cause; the error of spark-submit holds no more than the exit code.
        self.log.warning("[%s|worker] %s", self.subject, notice, exc_info=None if self._processes else end.failure)
        return delay, notice

    def _raise_if_killed(self) -> None:
        if self._killed:
            raise AirflowException(f"{self.subject}: Airflow ended the task while its driver ran.")

    def _internal_topics(self, worker: WorkerConfig) -> InternalTopics:
        """Return the access to the Connect cluster, whose brokers answer. Tests replace it."""
        check_brokers(worker)
        return KafkaInternalTopics(worker)

    def _settings(self) -> Settings:
        """Return Airflow's ``[sluiceway]`` section. Tests replace it."""
        return read_settings()


def tells_pauses(context: Context) -> bool:
    """Return whether Airflow tells a task whether its DAG is paused, which it does from 3.2 on."""
    return hasattr(context["ti"], "get_dag")


def paused_flag(context: Context) -> PausedFlag:
    """Return a function that reads the paused flag of the task's DAG from Airflow at each call.

    Before Airflow 3.2 it always returns False. There the task follows the connector's target state alone, to which the pause
    sync in the API server copies the flag.
    """
    ti = context["ti"]
    return (lambda: bool(ti.get_dag(ti.dag_id).is_paused)) if tells_pauses(context) else lambda: False


def with_report(submission: Submission, folder: Path) -> Submission:
    """Return a submission whose driver, if it runs on this machine, writes its number of records to a file in ``folder``."""
    return replace(submission, report=folder / "report.json")


def _reported(submission: Submission | None) -> tuple[int | None, bool | None]:
    """Return the records that the driver has moved, and whether its micro-batch has ended by itself; None if unknown."""
    if submission is None or submission.report is None:
        return None, None
    try:
        report = json.loads(submission.report.read_text(encoding="utf-8"))
        return int(report["records"]), report.get("ended")
    except (OSError, ValueError, KeyError, TypeError):  # the driver died before it wrote the file
        return None, None

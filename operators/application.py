"""The operator that runs a shared Spark application: one driver for several connectors."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.errors import ConnectError
from sluiceway.operators.driver_operator import DAG_PAUSED, DriverEnd, DriverOperator, PausedFlag, paused_flag, tells_pauses
from sluiceway.provider.compat import AirflowFailException
from sluiceway.provider.dag_bundle.dag_keys import LONG_RUNNING
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.driver.waits import interruption
from sluiceway.provider.mistakes import mistakes_are_final
from sluiceway.provider.settings import Settings

if TYPE_CHECKING:
    from airflow.sdk import Context

_NO_PAUSES = (
    "Before version 3.2, Airflow does not tell a task that its DAG is paused, so a pause does not end this application. Pause "
    "its connectors instead, or mark this task as failed to end it"
)


class ApplicationOperator(DriverOperator):
    """Runs the driver of every connector whose config names this application, until the DAG is paused or no connector is left.

    Each connector has its own DAG, whose task waits in the triggerer; there the connector is paused, resumed and restarted alone.
    Meant for many small connectors, which then share one JVM. Runs in client mode, on the Airflow worker's machine.

    Args:
        application_name: the value of ``sluiceway.application`` in the connectors' configs (templated).
        conf: Spark settings; they override the ``spark.*`` keys of the connectors' configs.
    """

    template_fields: Sequence[str] = (*DriverOperator.template_fields, "application_name")

    def __init__(self, *, application_name: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.application_name = application_name
        self._spark_settings: dict[str, str] = {}

    @property
    def subject(self) -> str:
        return self.application_name

    @mistakes_are_final
    def execute(self, context: Context) -> None:
        """Run one driver after another until no connector is left. A pause reschedules the task."""
        while not self._run_driver(context):
            pass

    def _run_driver(self, context: Context) -> bool:
        """Run one driver. Return whether the task is done; False, after a delay, if the driver must be started again."""
        settings = self._settings()
        is_paused = paused_flag(context)

        def drain() -> None:
            if self._processes is not None:
                self._processes.drain()

        if is_paused():  # Airflow queued the task before the pause, or the DAG was paused during the delay
            self._reschedule(context, settings, DAG_PAUSED)
        if not tells_pauses(context):
            self.log.warning("[%s|worker] %s", self.application_name, _NO_PAUSES)
        overrides = self._worker_overrides()
        self._read_spark_settings(settings, overrides)
        worker_file = settings.worker_file(self.worker_properties)
        submission = Submission(self.application_name, worker_file, LONG_RUNNING, self._spark_settings, shared=True)
        hook = self._prepare(context, settings, submission, overrides)
        if not hook.is_client_mode:
            raise AirflowFailException(
                f"Application {self.application_name}: a shared application runs in client mode only. Remove "
                "deploy-mode=cluster from its Spark connection."
            )
        end = self._run(context, settings, hook, is_paused, drain)
        self._raise_if_killed()
        if end.dag_paused:
            self._reschedule(context, settings, "The driver has drained; waiting for the resume")
        if end.exit_code == 0:
            self.log.info("[%s|worker] Done: no connector names this application any more", self.application_name)
            return True
        self._await_restart(end, settings, is_paused)
        return False

    def _read_spark_settings(self, settings: Settings, overrides: Mapping[str, str]) -> None:
        """Read the connectors' ``spark.*`` keys from the config topic, because a DAG's file must hold no secret.

        A driver that is started again waits for brokers longer than this task, so it may start with what was read before.
        """
        try:
            topics = self._internal_topics(settings.worker(self.worker_properties, overrides))
            self._spark_settings = topics.spark_settings(self.application_name)
        except ConnectError as error:
            if not self.has_run:
                raise
            self.log.warning("[%s|worker] Starts with the last known spark.* keys: %s", self.application_name, error)

    def _await_restart(self, end: DriverEnd, settings: Settings, is_paused: PausedFlag) -> None:
        """Wait before the restart of a driver that ended by itself; the status of each connector says so."""
        delay, notice = self._plan_restart(end)
        deadline = time.monotonic() + delay
        try:
            topics = self._internal_topics(settings.worker(self.worker_properties, self._worker_overrides()))
            topics.mark_hosted_unassigned(self.application_name, notice)
        except ConnectError as error:  # the restart is more important than the status
            self.log.warning("[%s|worker] Cannot write the status of its connectors: %s", self.application_name, error)
        interrupted = interruption(is_paused, lambda: self._killed)
        while (left := deadline - time.monotonic()) > 0 and not interrupted():
            time.sleep(min(left, settings.pause_poll_interval))
        self._raise_if_killed()

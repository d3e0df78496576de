"""The operator that runs a Spark application which connectors share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.exceptions import AirflowException

from sluiceway.operators.driver_operator import DriverOperator, paused_probe
from sluiceway.provider.dag_bundle.dag_keys import LONG_RUNNING
from sluiceway.provider.driver.submission import Submission

if TYPE_CHECKING:
    from airflow.sdk import Context


class ApplicationOperator(DriverOperator):
    """Runs the driver of every connector whose config names this application, until its DAG is paused or none is left.

    The connectors have DAGs of their own, whose tasks wait in the triggerer: there each is paused, resumed and restarted alone.
    Meant for many small connectors, which then share one JVM. Runs in client mode, on the worker's machine.

    Args:
        application_name: the value of ``sluiceway.application`` in the connectors' configs (templated).
        conf: Spark settings.
    """

    template_fields: Sequence[str] = (*DriverOperator.template_fields, "application_name")

    def __init__(self, *, application_name: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.application_name = application_name

    @property
    def subject(self) -> str:
        return self.application_name

    def execute(self, context: Context) -> None:
        """Run the driver; whatever its end is, but for a pause, Airflow's retries start another."""
        settings = self._settings()
        overrides = self._begin(settings)
        is_paused = paused_probe(context)

        def drain() -> None:
            if self._processes is not None:
                self._processes.drain()

        if is_paused():  # queued before the pause
            self._reschedule(context, "The DAG is paused")
        worker_file = settings.worker_file(self.worker_properties)
        submission = Submission(self.application_name, worker_file, LONG_RUNNING, {}, shared=True)
        hook = self._prepare(context, settings, submission, overrides)
        if not hook.is_client_mode:
            raise AirflowException(
                f"Application {self.application_name}: a driver that connectors share runs in client mode only; "
                "leave out deploy-mode=cluster of its Spark connection."
            )
        end = self._run(context, settings, hook, is_paused, drain)
        if self._killed:
            raise AirflowException(f"Application {self.application_name}: the task was told to end.")
        if end.dag_paused:
            self._reschedule(context, "The driver has drained; waiting for the resume")
        if end.exit_code == 0:
            self.log.info("[%s|worker] Done: no connector is left that names this application", self.application_name)
            return
        raise AirflowException(
            f"Application {self.application_name}: the driver ended with exit code {end.exit_code}; its last lines are in this "
            "log. Airflow starts it again after a pause."
        ) from end.failure

"""A sensor that waits for a connector's state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseSensorOperator
from airflow.sdk.exceptions import AirflowFailException
from sluiceway.errors import NotFoundError
from sluiceway.provider.observe import Observation, observe
from sluiceway.provider.settings import read_settings
from sluiceway.storage.model import State

if TYPE_CHECKING:
    from airflow.sdk import Context


class ConnectorStateSensor(BaseSensorOperator):
    """Waits until a connector, and with ``tasks`` all its tasks too, is in one of some states. Runs on an Airflow worker.

    A state is what ``GET /connectors/<name>/status`` says: a driver that has not been heard of for
    ``sluiceway.heartbeat.timeout.ms`` is UNASSIGNED. A connector that does not exist yet is waited for.

    In mode "reschedule" it looks again no sooner than some seconds after Airflow's ``[workers] min_heartbeat_interval``,
    however short ``poke_interval`` is: a task that comes back before the scheduler has heard that it left is failed by it.

    Args:
        connector: the connector's name (templated).
        states: the states to wait for (templated).
        tasks: whether its tasks must be in one of these states too, and be at least one if RUNNING is waited for.
        fail_on: states of the connector or of a task that end the wait with a failure.
        worker_properties: path of the worker's properties file; default is Airflow's ``[sluiceway] worker_properties``.
    """

    template_fields: Sequence[str] = ("connector", "states", "worker_properties")
    ui_color: ClassVar[str] = "#e6e0f2"

    def __init__(
        self,
        *,
        connector: str,
        states: Sequence[str] = ("RUNNING",),
        tasks: bool = True,
        fail_on: Sequence[str] = (),
        worker_properties: str | None = None,
        mode: str = "reschedule",
        poke_interval: float = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(mode=mode, poke_interval=poke_interval, **kwargs)
        self.connector = connector
        self.states = tuple(states)
        self.tasks = tasks
        self.fail_on = tuple(fail_on)
        for each in (*self.states, *self.fail_on):
            if "{{" not in each:  # a template is not known yet
                State(each)  # a ValueError now, rather than a wait without end
        self.worker_properties = worker_properties

    def poke(self, context: Context) -> bool:
        """Look once; opens its own connection to Kafka, since between two looks the task may not exist."""
        try:
            seen = self._observe()
        except NotFoundError:
            self.log.info("[%s|worker] The connector does not exist yet", self.connector)
            return False
        self.log.info("[%s|worker] %s", self.connector, seen)
        unwanted = seen.states() & {State(each) for each in self.fail_on}
        if unwanted:
            raise AirflowFailException(f"Connector {self.connector} is not as it should be: {seen}.")
        return seen.is_in({State(each) for each in self.states}, tasks=self.tasks)

    def _get_next_poke_interval(self, started_at: datetime | float, run_duration: Callable[[], float], poke_count: int) -> float:
        interval = super()._get_next_poke_interval(started_at, run_duration, poke_count)
        return max(interval, read_settings().settle_time) if self.reschedule else interval

    def _observe(self) -> Observation:
        return observe(read_settings().worker(self.worker_properties), self.connector)

"""The base of the sensors: a condition on a Connect cluster, polled by the task or, if deferred, by the triggerer."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pendulum
from airflow.sdk import BaseSensorOperator

from sluiceway.errors import InternalTopicError, KafkaClientError
from sluiceway.kafka.reachability import check_brokers
from sluiceway.provider.compat import AirflowFailException, AirflowRescheduleException, conf
from sluiceway.provider.hooks.kafka_connect import kafka_overrides
from sluiceway.provider.mistakes import mistakes_are_final
from sluiceway.provider.progress.cluster_view import open_view
from sluiceway.provider.settings import read_settings
from sluiceway.provider.templated import Templated
from sluiceway.provider.triggers import ConditionTrigger
from sluiceway.provider.triggers.conditions import Condition, ConditionResult

if TYPE_CHECKING:
    from airflow.sdk import Context


class ConditionSensor(Templated, BaseSensorOperator):
    """Waits for a condition on a Connect cluster.

    If deferred, it holds no slot, and all sensors on one cluster share one set of Kafka clients. Otherwise, in the mode
    "reschedule", two pokes are some seconds further apart than Airflow's ``[workers] min_heartbeat_interval``, even if
    ``poke_interval`` is shorter: the scheduler fails a task that comes back before it has seen the previous poke's end.

    Args:
        worker_properties: path of the worker's properties file; default is Airflow's ``[sluiceway] worker_properties``. A
            deferred sensor reads it on the triggerer's machine too. (templated)
        kafka_conn_id: an Airflow connection of type ``kafka_connect`` or ``kafka`` that overrides the file. (templated)
        deferrable: whether to wait in the triggerer; default is Airflow's ``[operators] default_deferrable``.
    """

    template_fields: Sequence[str] = ("worker_properties", "kafka_conn_id")
    ui_color: str = "#e6e0f2"

    def __init__(
        self,
        *,
        worker_properties: str | None = None,
        kafka_conn_id: str | None = None,
        deferrable: bool | None = None,
        mode: str = "reschedule",
        poke_interval: float = 10,
        **kwargs: Any,
    ) -> None:
        super().__init__(mode=mode, poke_interval=poke_interval, **kwargs)
        self.worker_properties = worker_properties
        self.kafka_conn_id = kafka_conn_id
        self.deferrable = conf.getboolean("operators", "default_deferrable", fallback=False) if deferrable is None else deferrable

    @abc.abstractmethod
    def condition(self) -> Condition:
        """Return the condition, from the rendered fields; raises ValueError for invalid fields."""

    @mistakes_are_final
    def poke(self, context: Context) -> bool:
        """Check once, with new Kafka clients, since the task may end between two pokes."""
        condition = self.condition()
        result = self._check(condition)
        self.log.info("[%s|worker] %s", self._subject(condition), result.seen)
        return self._conclude(condition, met=result.met, failed=result.failed, seen=result.seen)

    def execute(self, context: Context) -> Any:
        """Poke, and defer the task if ``deferrable`` and the condition is not met yet."""
        if not self.deferrable:
            return self._execute_in_slot(context)
        try:
            if self.poke(context):
                return None
        except (KafkaClientError, InternalTopicError) as error:  # the triggerer retries until Kafka answers
            self.log.warning("The first check failed; the triggerer repeats it: %s", error)
        settings = read_settings()
        worker_file = str(settings.worker_file(self.worker_properties))
        trigger = ConditionTrigger.of(self.condition(), worker_file, self.kafka_conn_id, settings.sensor_interval)
        self.defer(trigger=trigger, method_name="after_wait", timeout=timedelta(seconds=float(self.timeout)))
        raise AssertionError("defer() does not return")

    def after_wait(self, context: Context, event: Mapping[str, Any]) -> None:
        """Continue with the payload of ``ConditionTrigger``. Airflow stores this method's name while the task is deferred."""
        condition = self.condition()
        self.log.info("[%s|worker] %s", self._subject(condition), event["seen"])
        self._conclude(condition, met=bool(event["met"]), failed=bool(event["failed"]), seen=str(event["seen"]))

    def _conclude(self, condition: Condition, *, met: bool, failed: bool, seen: str) -> bool:
        if failed:
            raise AirflowFailException(f"{self._subject(condition)}: the sensor's condition cannot be met any more: {seen}.")
        return met

    def _subject(self, condition: Condition) -> str:
        return str(getattr(condition, "connector", None) or getattr(condition, "topic", ""))

    def _execute_in_slot(self, context: Context) -> Any:
        """Poke, and release the slot until the next poke for at least ``settle_time``, as the operators do."""
        try:
            return super().execute(context)
        except AirflowRescheduleException as later:
            soonest = pendulum.now("UTC") + timedelta(seconds=read_settings().settle_time)
            raise AirflowRescheduleException(max(later.reschedule_date, soonest)) from None

    def _check(self, condition: Condition) -> ConditionResult:
        """Check the condition on the cluster. Tests replace it."""
        worker = read_settings().worker(self.worker_properties, kafka_overrides(self.kafka_conn_id))
        check_brokers(worker)
        with open_view(worker) as view:
            return condition.check(view)

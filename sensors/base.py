"""What the sensors share: one look at a time, by the task or, deferred, by the triggerer for all tasks of a cluster."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseSensorOperator
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowFailException

from sluiceway.errors import InternalTopicError, KafkaClientError
from sluiceway.provider.hooks.kafka_connect import kafka_overrides
from sluiceway.provider.progress.cluster_view import open_view
from sluiceway.provider.settings import read_settings
from sluiceway.provider.triggers.conditions import Answer, Condition

if TYPE_CHECKING:
    from airflow.sdk import Context


class ConditionSensor(BaseSensorOperator):
    """A sensor on a Connect cluster. Looks on an Airflow worker, or deferred in the triggerer.

    Deferred, it holds no slot, and all sensors on one cluster share one set of connections to Kafka. Otherwise, in mode
    "reschedule", it looks again no sooner than some seconds after Airflow's ``[workers] min_heartbeat_interval``, however
    short ``poke_interval`` is: a task that comes back before the scheduler has heard that it left is failed by it.

    Args:
        worker_properties: path of the worker's properties file; default is Airflow's ``[sluiceway] worker_properties``. It must
            be there on the triggerer's machine too where the sensor is deferred. (templated)
        kafka_conn_id: an Airflow connection of type ``kafka_connect`` or ``kafka`` that wins over the file. (templated)
        deferrable: whether to wait in the triggerer; default is Airflow's ``[operators] default_deferrable``.
    """

    template_fields: Sequence[str] = ("worker_properties", "kafka_conn_id")
    ui_color: ClassVar[str] = "#e6e0f2"

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
        """Return what is waited for, from the rendered fields; raises ValueError for what can never be."""

    def poke(self, context: Context) -> bool:
        """Look once; opens its own connection to Kafka, since between two looks the task may not exist."""
        condition = self.condition()
        answer = self._look(condition)
        self.log.info("[%s|worker] %s", self._subject(condition), answer.seen)
        return self._conclude(condition, met=answer.met, failed=answer.failed, seen=answer.seen)

    def execute(self, context: Context) -> Any:
        """Wait in the way that was asked for."""
        if not self.deferrable:
            return super().execute(context)
        try:
            if self.poke(context):
                return None
        except (KafkaClientError, InternalTopicError) as error:  # the triggerer waits for a Kafka that is away
            self.log.warning("Nothing was seen yet, waiting: %s", error)
        from sluiceway.provider.triggers import ConditionTrigger

        settings = read_settings()
        worker_file = str(settings.worker_file(self.worker_properties))
        trigger = ConditionTrigger.of(self.condition(), worker_file, self.kafka_conn_id, settings.sensor_interval)
        self.defer(trigger=trigger, method_name="after_wait", timeout=timedelta(seconds=float(self.timeout)))
        raise AssertionError("defer() does not return")

    def after_wait(self, context: Context, event: Mapping[str, Any]) -> None:
        """Go on with what the trigger saw."""
        condition = self.condition()
        self.log.info("[%s|worker] %s", self._subject(condition), event["seen"])
        self._conclude(condition, met=bool(event["met"]), failed=bool(event["failed"]), seen=str(event["seen"]))

    def _conclude(self, condition: Condition, *, met: bool, failed: bool, seen: str) -> bool:
        if failed:
            raise AirflowFailException(f"{self._subject(condition)} is not as it should be: {seen}.")
        return met

    def _subject(self, condition: Condition) -> str:
        return str(getattr(condition, "connector", None) or getattr(condition, "topic", ""))

    def _get_next_poke_interval(self, started_at: datetime | float, run_duration: Callable[[], float], poke_count: int) -> float:
        interval = super()._get_next_poke_interval(started_at, run_duration, poke_count)
        return max(interval, read_settings().settle_time) if self.reschedule else interval

    def _look(self, condition: Condition) -> Answer:
        with open_view(read_settings().worker(self.worker_properties, kafka_overrides(self.kafka_conn_id))) as view:
            return condition.check(view)

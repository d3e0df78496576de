"""The trigger that waits for a condition, for deferred sensors and operators."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from sluiceway.config.properties import read_properties
from sluiceway.config.worker import WorkerConfig
from sluiceway.provider.driver.internal_topics import KafkaInternalTopics
from sluiceway.provider.driver.warm_batch import RequestedBatch
from sluiceway.provider.hooks.kafka_connect import kafka_overrides
from sluiceway.provider.links import publish_from_triggerer
from sluiceway.provider.progress.cluster_view import ClusterKey
from sluiceway.provider.triggers.cluster_polling import ClusterPolling
from sluiceway.provider.triggers.conditions import BatchEndedCondition, Condition, DriverEndedCondition, from_dict, to_dict

# The first value that a triggerer stores makes it load Airflow's execution API: 4 s of processor time, while connectors start.
_LINKS_SECONDS = 30.0
_APPEARANCE_SECONDS = 20.0  # less than Airflow's [triggerer] on_kill_timeout


class ConditionTrigger(BaseTrigger):
    """Fires once a condition is met, or has failed.

    The event's payload has the keys ``met``, ``failed`` and ``seen`` (a text). Path and arguments are stored in Airflow's
    database while a task is deferred, so they must stay compatible with those that 0.1.0 stored. No secret is among them: the
    triggerer reads the worker's file and looks up the connection.

    Args:
        condition: the condition, as ``to_dict`` returns it.
        worker_file: path of the worker's properties file on the triggerer's machine.
        kafka_conn_id: an Airflow connection that overrides the file.
        interval: seconds between two polls.
    """

    def __init__(
        self, condition: Mapping[str, Any], worker_file: str, kafka_conn_id: str | None = None, interval: float = 5.0
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Airflow's
        self.condition = dict(condition)
        self.worker_file = worker_file
        self.kafka_conn_id = kafka_conn_id
        self.interval = interval

    @classmethod
    def of(cls, condition: Condition, worker_file: str, kafka_conn_id: str | None, interval: float) -> ConditionTrigger:
        """Return the trigger for a condition object."""
        return cls(to_dict(condition), worker_file, kafka_conn_id, interval)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments that Airflow stores."""
        names = ("condition", "worker_file", "kafka_conn_id", "interval")
        return "sluiceway.provider.triggers.ConditionTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Poll until the condition is met or has failed; log what is seen whenever it changes."""
        logged = ""
        links_at = time.monotonic() + _LINKS_SECONDS
        async with ClusterPolling(ClusterKey(self.worker_file, self.kafka_conn_id), self.interval, self.log) as polling:
            async for result in polling.poll(from_dict(self.condition).check):
                if time.monotonic() > links_at:
                    links_at = math.inf
                    await self._publish_links()
                if result.seen != logged:
                    logged = result.seen
                    self.log.info("%s", logged)
                if result.met or result.failed:
                    yield TriggerEvent({"met": result.met, "failed": result.failed, "seen": result.seen})
                    return

    async def _publish_links(self) -> None:
        """Store the links of a task that starts in the triggerer; only such a one has its operator here."""
        operator = getattr(self, "task", None)  # Airflow 3.2 has no such attribute
        if operator is not None:
            await asyncio.to_thread(publish_from_triggerer, operator, self.task_instance)

    async def on_kill(self) -> None:
        """End what runs for the task: its micro-batch in a shared application, or its own driver in a cluster.

        Airflow calls this, from 3.3 on, if somebody clears the task or sets its state, and waits 30 s for it.
        """
        condition = from_dict(self.condition)
        if isinstance(condition, BatchEndedCondition):
            batch = RequestedBatch(condition.connector, condition.application, condition.batch)
            await asyncio.to_thread(lambda: self._topics().cancel_batch(batch))
        elif isinstance(condition, DriverEndedCondition) and condition.own:
            await self._end_driver(condition)

    async def _end_driver(self, condition: DriverEndedCondition) -> None:
        """End the task's driver. One that was submitted a moment ago is awaited: nobody else would end it."""
        until = min(condition.patience, time.time() + _APPEARANCE_SECONDS)
        while not await asyncio.to_thread(lambda: self._topics().end_driver(condition.connector)) and time.time() < until:
            await asyncio.sleep(self.interval)

    def _topics(self) -> KafkaInternalTopics:
        return KafkaInternalTopics(
            WorkerConfig.of({**read_properties(Path(self.worker_file)), **kafka_overrides(self.kafka_conn_id)})
        )

"""Triggers: what deferred tasks wait for. Run in the triggerer, where all those of one cluster share one set of connections.

A trigger asks Kafka only. It must not ask Airflow for a DAG: the triggerer does not answer that, and would stop for good.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

from airflow.triggers.base import BaseEventTrigger, BaseTrigger, TriggerEvent

from sluiceway.errors import ConnectError
from sluiceway.provider.hooks.kafka_connect import kafka_overrides
from sluiceway.provider.progress.cluster_view import Cluster, ClusterView, SharedViews
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.triggers.conditions import Condition, from_dict, to_dict
from sluiceway.provider.triggers.lag_gate import LagGate
from sluiceway.storage.model import TargetState

T = TypeVar("T")

_VIEWS = SharedViews()
_LONGEST_PAUSE = 60.0


class _Looking:
    """Holds the shared view of a cluster and looks at it, at ``interval`` seconds, later and later while Kafka is away."""

    def __init__(self, cluster: Cluster, interval: float, log: Any) -> None:
        self._cluster = cluster
        self._interval = interval
        self._log = log

    async def __aenter__(self) -> _Looking:
        _VIEWS.acquire(self._cluster)
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.shield(asyncio.to_thread(_VIEWS.release, self._cluster))

    async def looks(self, look: Callable[[ClusterView], T]) -> AsyncIterator[T]:
        """Yield what a look shows, again and again; an outage is waited for, and said."""
        pause = self._interval
        while True:
            try:
                seen = await asyncio.to_thread(self._look, look)
            except ConnectError as error:
                pause = min(2 * pause, _LONGEST_PAUSE)
                self._log.warning("Nothing was seen, looking again in %g s: %s", pause, error)
            else:
                pause = self._interval
                yield seen
            await asyncio.sleep(pause)

    def _look(self, look: Callable[[ClusterView], T]) -> T:
        return look(_VIEWS.view(self._cluster, kafka_overrides))


class ConditionTrigger(BaseTrigger):
    """Fires once a condition holds, or is not to be waited for any longer.

    The event's payload: ``met``, ``failed`` and ``seen``. ``worker_file`` is read where the triggerer runs, and there the
    connection ``kafka_conn_id`` is looked up that wins over it: no secret is stored with a wait. ``interval`` in seconds.
    """

    def __init__(
        self, condition: Mapping[str, Any], worker_file: str, kafka_conn_id: str | None = None, interval: float = 5.0
    ) -> None:
        super().__init__()
        self.condition = dict(condition)
        self.worker_file = worker_file
        self.kafka_conn_id = kafka_conn_id
        self.interval = interval

    @classmethod
    def of(cls, condition: Condition, worker_file: str, kafka_conn_id: str | None, interval: float) -> ConditionTrigger:
        return cls(to_dict(condition), worker_file, kafka_conn_id, interval)

    def serialize(self) -> tuple[str, dict[str, Any]]:
        fields = {name: getattr(self, name) for name in ("condition", "worker_file", "kafka_conn_id", "interval")}
        return f"{__name__}.ConditionTrigger", fields

    async def run(self) -> AsyncIterator[TriggerEvent]:
        said = ""
        async with _Looking(Cluster(self.worker_file, self.kafka_conn_id), self.interval, self.log) as looking:
            async for answer in looking.looks(from_dict(self.condition).check):
                if answer.seen != said:
                    said = answer.seen
                    self.log.info("%s", said)
                if answer.met or answer.failed:
                    yield TriggerEvent({"met": answer.met, "failed": answer.failed, "seen": answer.seen})
                    return


class LagTrigger(BaseEventTrigger):
    """An event whenever a sink has at least so many records left: what ``airflow.schedule=lag:<n>`` runs by.

    A lag that stays is told again only once something was committed, or after ``patience`` seconds.
    """

    def __init__(self, connector: str, at_least: int, worker_file: str, interval: float = 5.0, patience: float = 600.0) -> None:
        super().__init__()
        self.connector = connector
        self.at_least = at_least
        self.worker_file = worker_file
        self.interval = interval
        self.patience = patience

    def serialize(self) -> tuple[str, dict[str, Any]]:
        names = ("connector", "at_least", "worker_file", "interval", "patience")
        return f"{__name__}.LagTrigger", {name: getattr(self, name) for name in names}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        gate = LagGate(self.at_least, self.patience)

        def look(view: ClusterView) -> tuple[ConnectorProgress, bool, bool]:
            entry = view.entry(self.connector)
            resting = entry is not None and entry.target_state is not TargetState.STARTED
            return view.progress(self.connector), view.driver(self.connector).lives, resting

        async with _Looking(Cluster(self.worker_file), self.interval, self.log) as looking:
            async for progress, running, resting in looking.looks(look):
                if gate.opens(progress.lag, progress.count, running=running, resting=resting):
                    yield TriggerEvent({"connector": self.connector, "lag": progress.lag})

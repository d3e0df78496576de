"""The part of the connector operators that makes a connector the task's own before a driver starts: lease, DAG, config.

Two tasks that ran one connector would fence each other's drivers forever. So a task leaves a connector to the driver of another
task as long as that lives, and stores nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluiceway.config.connector import CONFIG_TASK
from sluiceway.errors import BadRequestError
from sluiceway.operators.driver_operator import DriverEnd
from sluiceway.operators.watched import WatchedConnector
from sluiceway.provider.compat import AirflowException, AirflowFailException
from sluiceway.provider.dag_bundle.dag_ids import dag_id
from sluiceway.provider.dag_bundle.dag_keys import DAG, dag_of
from sluiceway.provider.driver.internal_topics import InternalTopics
from sluiceway.provider.driver.lease_owner import owner_of, rival
from sluiceway.provider.driver.outcome import NextAction, failure
from sluiceway.provider.driver.waits import await_drained
from sluiceway.provider.mistakes import task_error
from sluiceway.provider.settings import Settings
from sluiceway.provider.triggers.conditions import DriverEndedCondition

if TYPE_CHECKING:
    from airflow.sdk import Context


class ClaimedConnector(WatchedConnector):
    """Claims the connector for the task and its DAG. A base of the connector operators."""

    config: Mapping[str, Any] | str | None
    """The config that the task gives, if any."""

    def _warn_of_more_runs(self) -> None:
        """Warn at parse about a DAG of which several runs may want the connector at once."""
        if self.has_dag() and (most := self.dag.max_active_runs) > 1:  # type: ignore[no-untyped-call]
            warnings.warn(
                f"DAG {self.dag.dag_id}, task {self.task_id}: a long-running connector runs in one DAG run at a time, and "
                f"max_active_runs is {most}. A further run waits for the end of the first. Set max_active_runs=1.",
                UserWarning,
                stacklevel=4,
            )

    def _respect_lease(self, context: Context, settings: Settings, topics: InternalTopics, name: str) -> None:
        """Leave the connector to the living driver of another task.

        Defers the task until that driver ends, if it belongs to another run of this task; otherwise fails it without a retry.
        """
        driver = topics.driver(name)
        owner, own = rival(context, driver), owner_of(context)
        if owner is None:
            if driver.lives and driver.owner not in (None, own):
                await_drained(name, topics, settings, lambda: self._killed)
            return
        if (owner.dag, owner.task) != (own.dag, own.task):
            raise AirflowFailException(
                f"Connector {name}: {owner} runs it, and its driver lives. A connector runs in one task at a time. Stop that "
                "run, or remove the connector from one of the two; then clear this task."
            )
        self.log.warning("[%s|worker] Waiting for the end of the driver of another run: %s", name, owner)
        condition = DriverEndedCondition(name, driver.generation - 1, deadline=self._deadline(context))
        self._defer(settings, condition, {}, "after_creation")

    def _raise_failure(
        self, context: Context, settings: Settings, topics: InternalTopics, name: str, action: NextAction, end: DriverEnd
    ) -> None:
        """Raise the error with which the task fails after a driver's end; return if it does not fail."""
        if action is NextAction.FAIL_FENCED:
            self._respect_lease(context, settings, topics, name)
        if (message := failure(action, name, end.exit_code, end.cause)) is not None:
            # A driver on this machine has logged its cause; the error of spark-submit would repeat its last lines.
            raise AirflowException(message) from (None if end.cause else end.failure)

    def _raise_if_late(self, event: Mapping[str, Any]) -> None:
        """Fail the task if its wait in the triggerer has failed. ``event`` is the payload of ``ConditionTrigger``."""
        if event.get("failed"):
            raise AirflowException(f"Connector {self.connector}: {event['seen']}.")

    def _claim(self, topics: InternalTopics, config: Mapping[str, str], dag: str) -> bool:
        """Store this DAG as the one that runs the connector; return False if it was stored already.

        A config that this task does not give is nobody's any more who would set it again.

        Fails the task of a generated DAG if a hand-written one runs the connector: two DAGs that ran one connector would fence
        each other forever.
        """
        owner = dag_of(self.connector, config)
        if owner == dag and (self.config is not None or CONFIG_TASK not in config):
            return False
        if owner != dag == dag_id(self.connector):
            raise AirflowFailException(
                f"Connector {self.connector}: DAG {owner} runs it, according to its key {DAG}. Remove the key to run it here."
            )
        if owner != dag:
            self.log.info("[%s|worker] DAG %s takes over the connector from DAG %s", self.connector, dag, owner)
        self._store_config(topics, {**{key: value for key, value in config.items() if key != CONFIG_TASK}, DAG: dag})
        return True

    def _store_config(self, topics: InternalTopics, config: Mapping[str, str]) -> None:
        try:
            topics.ensure_config(self.connector, config)
        except BadRequestError as error:
            raise task_error(f"Connector {self.connector}", error) from error

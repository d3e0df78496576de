"""A sensor that waits for a connector's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from airflow.sdk import XComArg

from sluiceway.provider.triggers.conditions import StateCondition
from sluiceway.sensors.base import ConditionSensor
from sluiceway.storage.model import State


class ConnectorStateSensor(ConditionSensor):
    """Waits until a connector, and with ``tasks`` all its tasks too, has one of some states; see ``ConditionSensor``.

    States are those of ``GET /connectors/<name>/status``: without a heartbeat for ``sluiceway.heartbeat.timeout.ms``, connector
    and tasks are UNASSIGNED. Waits for a connector that does not exist yet.

    Args:
        connector: the connector's name (templated).
        states: the state, or the states, to wait for (templated).
        tasks: whether all tasks must have one of these states too. A RUNNING connector must then have at least one task.
        fail_on: states of the connector or of a task that fail the sensor.
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "connector", "states")

    def __init__(
        self,
        *,
        connector: str,
        states: Sequence[str] | str = ("RUNNING",),
        tasks: bool = True,
        fail_on: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.connector = connector
        self.states = states
        self.tasks = tasks
        self.fail_on = tuple(fail_on)
        for each in (*(() if isinstance(states, XComArg) else _listed(states)), *self.fail_on):
            if "{{" not in each:  # a template is rendered later
                State(each)  # raises ValueError when the DAG is parsed, instead of waiting forever

    def condition(self) -> StateCondition:
        states = _listed(self.states)
        for each in states:
            State(each)
        return StateCondition(self.connector, states, self.tasks, self.fail_on)


def _listed(states: Sequence[str] | str) -> tuple[str, ...]:
    return (states,) if isinstance(states, str) else tuple(states)

"""A sensor that waits for a connector's state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sluiceway.provider.triggers.conditions import StateCondition
from sluiceway.sensors.base import ConditionSensor
from sluiceway.storage.model import State


class ConnectorStateSensor(ConditionSensor):
    """Waits until a connector, and with ``tasks`` all its tasks too, is in one of some states; see ``ConditionSensor``.

    A state is what ``GET /connectors/<name>/status`` says: a driver that has not been heard of for
    ``sluiceway.heartbeat.timeout.ms`` is UNASSIGNED. A connector that does not exist yet is waited for.

    Args:
        connector: the connector's name (templated).
        states: the states to wait for (templated).
        tasks: whether its tasks must be in one of these states too, and be at least one if RUNNING is waited for.
        fail_on: states of the connector or of a task that end the wait with a failure.
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "connector", "states")

    def __init__(
        self,
        *,
        connector: str,
        states: Sequence[str] = ("RUNNING",),
        tasks: bool = True,
        fail_on: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.connector = connector
        self.states = tuple(states)
        self.tasks = tasks
        self.fail_on = tuple(fail_on)
        for each in (*self.states, *self.fail_on):
            if "{{" not in each:  # a template is not known yet
                State(each)  # a ValueError now, rather than a wait without end

    def condition(self) -> StateCondition:
        for each in self.states:
            State(each)
        return StateCondition(self.connector, tuple(self.states), self.tasks, self.fail_on)

"""Decides which parts of a connector a restart request concerns, as Kafka Connect does (KIP-745). No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluiceway.storage.model import RestartRequest, State, Status


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """Whether to restart the Connector object, and the numbers of the tasks to restart."""

    connector: bool
    tasks: tuple[int, ...] = ()

    def shown(self, connector: Status, tasks: Mapping[int, Status]) -> tuple[Status, dict[int, Status]]:
        """Return the statuses with RESTARTING for what the plan restarts. Traces are kept until the restart is done."""
        shown = {number: _restarting(status) if number in self.tasks else status for number, status in tasks.items()}
        return _restarting(connector) if self.connector else connector, shown


def plan_restart(request: RestartRequest, connector: State, tasks: Mapping[int, State]) -> RestartPlan:
    """Return the restart plan for a connector in this state with these tasks.

    A request for one task restarts only that task. Any other request restarts the Connector, and its tasks with
    ``include_tasks``. ``only_failed`` excludes the Connector and tasks that have not failed.
    """
    if request.task is not None:
        return RestartPlan(connector=False, tasks=(request.task,) if request.task in tasks else ())

    def chosen(state: State) -> bool:
        return not request.only_failed or state is State.FAILED

    numbers = sorted(number for number, state in tasks.items() if chosen(state)) if request.include_tasks else ()
    return RestartPlan(connector=chosen(connector), tasks=tuple(numbers))


def _restarting(status: Status) -> Status:
    return replace(status, state=State.RESTARTING)

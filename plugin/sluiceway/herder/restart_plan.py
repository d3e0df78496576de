"""Which parts of a connector a restart concerns, as Kafka Connect decides it (KIP-745). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sluiceway.storage.model import RestartRequest, State, Status


@dataclass(frozen=True, slots=True)
class RestartPlan:
    """Whether the Connector object is started anew, and which of its tasks, by number."""

    connector: bool
    tasks: tuple[int, ...] = ()

    def shown(self, connector: Status, tasks: Mapping[int, Status]) -> tuple[Status, dict[int, Status]]:
        """Return the statuses with RESTARTING where the plan is at work; traces stay until it has worked."""
        told = {number: _restarting(status) if number in self.tasks else status for number, status in tasks.items()}
        return _restarting(connector) if self.connector else connector, told


def plan_restart(request: RestartRequest, connector: State, tasks: Mapping[int, State]) -> RestartPlan:
    """Return what a request means for a connector in this state with these tasks.

    A request for one task is for that task alone. Any other starts the Connector anew, and its tasks only with
    ``include_tasks``; ``only_failed`` leaves out of both what has not failed.
    """
    if request.task is not None:
        return RestartPlan(connector=False, tasks=(request.task,) if request.task in tasks else ())

    def chosen(state: State) -> bool:
        return not request.only_failed or state is State.FAILED

    numbers = sorted(number for number, state in tasks.items() if chosen(state)) if request.include_tasks else ()
    return RestartPlan(connector=chosen(connector), tasks=tuple(numbers))


def _restarting(status: Status) -> Status:
    return replace(status, state=State.RESTARTING)

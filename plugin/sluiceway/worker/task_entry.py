"""A task of a connector and its current launch, as the driver's task table keeps them."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from sluiceway.herder.restart_policy import TaskRestarts
from sluiceway.runtime.task import TaskResult
from sluiceway.worker.executor import TaskAssignment
from sluiceway.worker.task_watch import TaskWatch

_NO_RESTARTS = TaskRestarts()


class Phase(enum.Enum):
    """State of a task as its driver knows it."""

    LAUNCHED = "launched"
    RESTARTING = "waiting for its restart"
    FAILED = "failed, with no automatic restart left"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of a task."""

    assignment: TaskAssignment
    future: Future[TaskResult]
    watch: TaskWatch


@dataclass(slots=True)
class TaskEntry:
    """A task of the connector.

    ``generation`` is that of its launch, and of the statuses that its driver writes about it.
    ``launch`` is None while the task does not run. ``since`` and ``due`` are monotonic seconds: when the task was launched or
    last waited for a slot, and when it will be restarted. ``failures``, ``crashes`` and ``losses`` count restarts after a
    failure, after the end of the task's process, and after a loss through no fault of the task.
    """

    config: Mapping[str, str]
    generation: int
    phase: Phase = Phase.LAUNCHED
    launch: Launch | None = None
    since: float = 0.0
    due: float = 0.0
    failures: TaskRestarts = _NO_RESTARTS
    crashes: TaskRestarts = _NO_RESTARTS
    losses: TaskRestarts = _NO_RESTARTS

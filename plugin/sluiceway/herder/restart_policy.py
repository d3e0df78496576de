"""Decides when a task that failed or whose process was lost is restarted automatically. No I/O."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.backoff import pause_after
from sluiceway.config.restarts import BACKOFF_INITIAL, BACKOFF_MAX, MAX_RESTARTS, ON_FAILURE, POLICY, RESET_AFTER, RESTARTS
from sluiceway.config.worker import WorkerConfig


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """The maximum number of automatic restarts (0: none) and the back-off before them, in seconds.

    The back-off doubles with each restart up to ``backoff_max``. The count starts again after a run of ``reset_after``.
    """

    max_restarts: int
    backoff_initial: float
    backoff_max: float
    reset_after: float

    @classmethod
    def of(cls, config: Mapping[str, str], worker: WorkerConfig) -> RestartPolicy:
        """Return the policy of a connector's config, with the worker's values as defaults. Raises ConfigError."""
        values = RESTARTS.parse({**{key.name: worker.raw[key.name] for key in RESTARTS if key.name in worker.raw}, **config})

        def number(key: str) -> int:
            value = values[key]
            assert isinstance(value, int)  # noqa: S101 (the definition says so)
            return value

        return cls(
            max_restarts=number(MAX_RESTARTS) if values[POLICY] == ON_FAILURE else 0,
            backoff_initial=number(BACKOFF_INITIAL) / 1000,
            backoff_max=number(BACKOFF_MAX) / 1000,
            reset_after=number(RESET_AFTER) / 1000,
        )


CRASHED_PROCESS_POLICY = RestartPolicy(max_restarts=5, backoff_initial=1.0, backoff_max=60.0, reset_after=20.0)
"""The policy for tasks whose own process ends, such as one that runs out of memory soon after each start. A longer run shows
that the task can run, so that processes killed now and then never add up to a failure."""

LOST_EXECUTOR_POLICY = RestartPolicy(max_restarts=sys.maxsize, backoff_initial=1.0, backoff_max=15.0, reset_after=10.0)
"""The policy for tasks that were lost through no fault of their own, such as with their host. It never gives up. The back-off
grows only while tasks are lost as they start: executors that are lost now and then do not make a task wait longer each time."""


@dataclass(frozen=True, slots=True)
class TaskRestarts:
    """The number of restarts that a task has used."""

    used: int = 0

    def next(self, policy: RestartPolicy, ran_for: float) -> tuple[TaskRestarts, float] | None:
        """Return the increased count and the back-off in seconds, or None if no restart is left.

        ``ran_for`` is the duration of the task's last run in seconds.
        """
        used = 0 if ran_for >= policy.reset_after else self.used
        if used >= policy.max_restarts:
            return None
        return TaskRestarts(used + 1), pause_after(used + 1, policy.backoff_initial, policy.backoff_max)

"""When a task that failed, or whose process was lost, is started anew by itself, and when that is given up. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.restarts import BACKOFF_INITIAL, BACKOFF_MAX, MAX_RESTARTS, ON_FAILURE, POLICY, RESET_AFTER, RESTARTS
from sluiceway.config.worker import WorkerConfig


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How often a task is started anew (0: never) and how long it is waited before, in seconds.

    The wait doubles with each restart up to ``backoff_max``. A task that ran for ``reset_after`` has its whole budget again.
    """

    max_restarts: int
    backoff_initial: float
    backoff_max: float
    reset_after: float

    @classmethod
    def of(cls, config: Mapping[str, str], worker: WorkerConfig) -> RestartPolicy:
        """Return what a connector's config says of failures, or for want of that the worker's. Raises ConfigError."""
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


LOST_PROCESSES = RestartPolicy(max_restarts=5, backoff_initial=1.0, backoff_max=60.0, reset_after=300.0)
"""What is done about a task whose process was lost, which is no failure of the task's own."""


@dataclass(frozen=True, slots=True)
class Restarts:
    """How many restarts a task has used up."""

    used: int = 0

    def next(self, policy: RestartPolicy, ran_for: float) -> tuple[Restarts, float] | None:
        """Return the count with one restart more and the seconds to wait before it; None once the budget is used up.

        ``ran_for`` is how long the task ran, in seconds, before it failed this time.
        """
        used = 0 if ran_for >= policy.reset_after else self.used
        if used >= policy.max_restarts:
            return None
        return Restarts(used + 1), min(policy.backoff_initial * 2**used, policy.backoff_max)

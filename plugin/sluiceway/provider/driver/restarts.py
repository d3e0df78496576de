"""Plans the restarts of a driver that has ended by itself: their number, their delays, the message about them. No I/O."""

from __future__ import annotations

from dataclasses import dataclass

from sluiceway import exit_codes
from sluiceway.backoff import pause_after

_FIRST_SECONDS, _MAX_SECONDS = 1.0, 60.0
_HEALTHY_SECONDS = 600.0


@dataclass
class Restarts:
    """The restarts of one driver by one Airflow task. Delays double from 1 s to 60 s."""

    number: int = 0
    """The number of restarts since a driver last ran for ten minutes."""

    def next_delay(self, ran: float) -> float:
        """Count a restart and return the seconds to wait before it.

        Args:
            ran: seconds for which the driver ran; ten minutes reset number and delay.
        """
        self.number = 1 if ran >= _HEALTHY_SECONDS else self.number + 1
        return pause_after(self.number, _FIRST_SECONDS, _MAX_SECONDS)

    def notice(self, exit_code: int, delay: float, error: str | None = None) -> str:
        """Return the message about the restart that ``next_delay`` counted, for the log and the connector's status."""
        cause = death_cause(exit_code, error)
        return (
            f"{cause[0].upper()}{cause[1:]}; see its last lines in the log of its Airflow task, which starts it again in "
            f"{delay:g} s (restart {self.number} since it last ran for ten minutes)."
        )


def death_cause(exit_code: int, error: str | None = None) -> str:
    """Describe why a driver that was not asked to end has ended. ``error`` is the last one in its output."""
    if exit_code == exit_codes.DONE:
        return "the driver has ended although it must run"
    if exit_code == exit_codes.APPLICATION_ENDED:
        return (
            f"the Spark application has ended (the driver's exit code is {exit_code}). It was killed from outside, or the "
            "cluster gives it no executors any more"
        )
    return f"the driver died with exit code {exit_code}{f' ({error})' if error else ''}"

"""Decides what an operator does before it starts a driver and after the driver has ended. No I/O."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from sluiceway import exit_codes
from sluiceway.backoff import pause_after
from sluiceway.herder.moved import needs_driver
from sluiceway.storage.model import ConnectorEntry

_FIRST_SECONDS, _MAX_SECONDS = 1.0, 60.0
_HEALTHY_SECONDS = 600.0


class NextAction(enum.Enum):
    """The next action of a connector's task."""

    START = "start the driver"
    RESCHEDULE = "give the slot back and try again later"
    SUCCEED = "end the task with success"
    FAIL_FENCED = "fail: another driver has taken over"
    FAIL_DIED = "fail: a micro-batch's driver died"
    SHARE = "wait for the end of the shared application that runs the connector now"
    RESTART = "start the driver again in this task: it died, or ended without a request"


def before_start(*, dag_paused: bool, entry: ConnectorEntry | None) -> NextAction:
    """Return START, or RESCHEDULE for a connector that is paused, stopped or not created yet."""
    if dag_paused or entry is None or not needs_driver(entry):
        return NextAction.RESCHEDULE
    return NextAction.START


def after_end(*, exit_code: int, bounded: bool, dag_paused: bool, entry: ConnectorEntry | None) -> NextAction:
    """Return the next action after a driver ended.

    Args:
        exit_code: the driver's (``sluiceway.exit_codes``); negative if a signal ended it.
        bounded: True for a micro-batch. Its driver ends by itself, and its run must end too, so that a failure is seen.
        dag_paused: the DAG's paused flag, as last read while the driver ran.
        entry: the connector after the end; None if it was deleted.
    """
    moved = exit_code in (exit_codes.DONE, exit_codes.FENCED) and entry is not None and entry.application is not None
    if moved and not bounded and before_start(dag_paused=dag_paused, entry=entry) is NextAction.START:
        return NextAction.SHARE
    if exit_code == exit_codes.FENCED:
        return NextAction.FAIL_FENCED
    if entry is None:  # deleted: nothing to start again, whatever the exit code
        return NextAction.SUCCEED
    if dag_paused or not needs_driver(entry):
        return NextAction.RESCHEDULE
    if not bounded:
        return NextAction.RESTART
    return NextAction.SUCCEED if exit_code == exit_codes.DONE else NextAction.FAIL_DIED


def failure(action: NextAction, connector: str, exit_code: int, error: str | None = None) -> str | None:
    """Return the message with which a connector's task fails; None for other actions."""
    if action is NextAction.FAIL_FENCED:
        return (
            f"Connector {connector}: another driver has taken over, so this one has ended; its last lines in this log say "
            f"which. If that is not intended, find the second DAG or the Kafka Connect worker that runs {connector}, and stop it."
        )
    if action is NextAction.FAIL_DIED:
        return (
            f"Connector {connector}: {death_cause(exit_code, error)}; see its last lines in this log. Airflow retries the task."
        )
    return None


@dataclass
class DriverRestarts:
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

"""What an operator does when its driver has ended, and before it starts one. Pure decisions."""

from __future__ import annotations

import enum

from sluiceway import exit_codes
from sluiceway.storage.model import ConnectorEntry, TargetState


class Verdict(enum.Enum):
    """How an operator goes on."""

    START = "start the driver"
    WAIT = "give the slot back and look again later"
    DONE = "end the task with success"
    FENCED = "fail: another driver has taken over"
    DIED = "fail: the driver died"
    AGAIN = "start the driver again: it ended though nobody asked it to"


def before_start(*, dag_paused: bool, entry: ConnectorEntry | None) -> Verdict:
    """Decide whether a driver is to be started now; WAIT for a connector that is paused, stopped or not created yet."""
    if dag_paused or entry is None or entry.target_state is not TargetState.STARTED:
        return Verdict.WAIT
    return Verdict.START


def after_end(*, exit_code: int, bounded: bool, dag_paused: bool, entry: ConnectorEntry | None) -> Verdict:
    """Decide how to go on after the driver ended; ``bounded`` says that it was to end by itself (a micro-batch)."""
    if exit_code == exit_codes.FENCED:
        return Verdict.FENCED
    if entry is None:  # deleted: however the driver ended, there is nothing to start again
        return Verdict.DONE
    if dag_paused or entry.target_state is not TargetState.STARTED:
        return Verdict.WAIT
    if exit_code != exit_codes.DONE:
        return Verdict.DIED
    return Verdict.DONE if bounded else Verdict.AGAIN

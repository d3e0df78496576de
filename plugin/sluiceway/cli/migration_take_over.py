"""Follows a cluster that takes over the internal topics of another one: which connectors it can run, and until they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from sluiceway.cli.migration import Move
from sluiceway.cli.migration_cluster import POLL_SECONDS, MigrationCluster, awaited
from sluiceway.cli.migration_steps import FAILED, ConnectorView, Step, cause_of, has_reached


def take_over(
    source: MigrationCluster, target: MigrationCluster, names: Collection[str], *, say: Callable[[str], None], timeout: float
) -> list[Move]:
    """Wait until the workers of the source have ended, and then until the target runs the connectors of their common topics.

    A source that does not respond has ended. Each of the two waits takes ``timeout`` seconds at most. Returns what became of
    each connector. Raises MigrationError if the workers do not end.
    """
    statuses = (source if source.responds() else target).api.statuses()
    wanted = {name: _wanted(status) for name, status in sorted(statuses.items()) if name in names}
    if source.responds():
        say(f"Waiting up to {timeout:g} s until {source.text} does not respond any more ...")
        awaited(lambda: not source.responds(), timeout, f"the workers of {source.text} still run. Stop them")
    began = time.monotonic()
    moves = {name: Move(name) for name in wanted}
    while pending := [move for move in moves.values() if not move.done]:
        statuses = target.api.statuses()
        for move in pending:
            move.state = ConnectorView.of({}, statuses.get(move.name, {})).state
            if has_reached(move.state, wanted[move.name]):
                move.step, move.standstill = Step.DONE, time.monotonic() - began
                say(f"{move.name}: {move.state} at {target.text}")
        if time.monotonic() > began + timeout:
            break
        time.sleep(POLL_SECONDS)
    for move in moves.values():
        if not move.done:
            cause = cause_of(statuses.get(move.name, {})).rstrip(".")
            move.error = f"It is {move.state}, not {wanted[move.name]}, after {timeout:g} s{f': {cause}' if cause else ''}."
            say(f"{move.name}: not taken over. {move.error} See its driver's log")
    return list(moves.values())


def _wanted(status: Mapping[str, Any]) -> str:
    view = ConnectorView.of({}, status)
    return FAILED if view.state == FAILED else view.target_state

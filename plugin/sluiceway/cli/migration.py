"""Moves connectors from one Connect cluster to another through their REST APIs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from sluiceway.cli.migration_cluster import POLL_SECONDS, Cluster, awaited
from sluiceway.cli.migration_steps import (
    CHANGING,
    FAILED,
    PAUSED,
    RUNNING,
    STOPPED,
    MigrationError,
    Step,
    View,
    final_state,
    has_reached,
    next_step,
    offset_edits,
)
from sluiceway.config.connector import MOVED, MOVING
from sluiceway.errors import ConnectError
from sluiceway.rest.client import RestError

log = logging.getLogger(__name__)

_NO_TASKS_SECONDS = 15.0  # how long a connector that has started may take to get its first task
# No connection, a rebalance of Connect's workers, their timeouts, a server that is starting.
_CONFLICT = 409
_TRANSIENT = (0, _CONFLICT, 500, 502, 503, 504)


class Mover:
    """Moves connectors from ``source`` to ``target``. ``timeout`` is the seconds that each step may take."""

    def __init__(self, source: Cluster, target: Cluster, *, say: Callable[[str], None], timeout: float) -> None:
        self._source = source
        self._target = target
        self._say = say
        self._timeout = timeout
        self._perform: dict[Step, Callable[[str], None]] = {
            Step.PREPARE: self._prepare,
            Step.STOP: lambda name: self._stop(self._source, name),
            Step.COPY_OFFSETS: lambda name: self._copy_offsets(self._source, self._target, name),
            Step.MARK_SOURCE: self._mark_source,
            Step.UNMARK_TARGET: lambda name: self._unmark(self._target, name),
            Step.START: self._start,
            Step.UNMARK_SOURCE: self._leave_source,
        }

    def move(self, name: str, *, delete_source: bool = False) -> None:
        """Move one connector, from the step that an earlier move has reached.

        Raises ConnectError. Then the connector is as before on the source, and stopped on the target; the message says so, or why
        that failed.
        """
        try:
            self._until_done(name)
        except ConnectError as error:
            raise self._restored(name, error) from error
        if delete_source and self._source.view(name) is not None:
            self._source.api.delete(name)
            self._say(f"{name}: deleted on the source")

    def _until_done(self, name: str) -> None:
        deadline = time.monotonic() + self._timeout
        last = None
        while True:
            try:
                step = self._next(name)
                if step is Step.DONE:
                    self._say(f"{name}: {step.value}, {self._state(self._target, name)} at {self._target.text}")
                    return
                self._perform[step](name)
            except RestError as error:
                if error.status not in _TRANSIENT or time.monotonic() > deadline:
                    raise
                log.info("Connector %s: %s. Trying again", name, error)
                time.sleep(POLL_SECONDS)
                continue
            if step is not last:
                self._say(f"{name}: {step.value}")
                deadline = time.monotonic() + self._timeout
            last = step
            if time.monotonic() > deadline:
                raise MigrationError(f"Connector {name}: the step '{step.value}' has no effect.")

    def _next(self, name: str) -> Step:
        source, target = self._source.view(name), self._target.view(name)
        if source is not None and target is not None and source.state == CHANGING and target.mark is None:
            # A rebalance of Connect's workers shows a stopped connector as UNASSIGNED for a moment.
            raise RestError(_CONFLICT, f"Connector {name} is changing its state at {self._source.text}.")
        return next_step(name, source, target, lambda: not self._offset_edits(self._source, self._target, name))

    # Steps.

    def _prepare(self, name: str) -> None:
        source, target = self._existing(self._source, name), self._target.view(name)
        mark = final_state(source, target)
        if target is None:
            self._target.api.create(name, {**source.config, MOVING: mark}, STOPPED)
            self._await_state(self._target, name, STOPPED)
        else:
            self._put_config(self._target, name, source.config, mark)

    def _stop(self, cluster: Cluster, name: str) -> None:
        """Stop a connector and wait until its last task has ended, so that its last offsets are stored."""
        tasks = range(len(cluster.api.status(name)["tasks"]))
        cluster.api.stop(name)
        self._await(
            lambda: self._state(cluster, name) == STOPPED and not any(cluster.has_task(name, task) for task in tasks),
            f"{name} STOPPED at {cluster.text}",
        )

    def _copy_offsets(self, source: Cluster, target: Cluster, name: str) -> None:
        edits = self._offset_edits(source, target, name)
        if edits:
            target.api.alter_offsets(name, edits)

    def _mark_source(self, name: str) -> None:
        source, target = self._existing(self._source, name), self._existing(self._target, name)
        self._put_config(self._source, name, source.config, target.mark)

    def _unmark(self, cluster: Cluster, name: str) -> None:
        self._put_config(cluster, name, self._existing(cluster, name).config, None)

    def _leave_source(self, name: str) -> None:
        """Remove the mark of the move. A Sluiceway notes where the connector is now, and refuses to start it."""
        config = self._existing(self._source, name).config
        there = {MOVED: self._target.text} if self._source.is_sluiceway else {}
        self._put_config(self._source, name, {**config, **there}, None)

    def _start(self, name: str) -> None:
        wanted = self._existing(self._source, name).mark
        self._set_state(self._target, name, wanted or RUNNING)

    def _set_state(self, cluster: Cluster, name: str, state: str) -> None:
        if state == PAUSED:
            cluster.api.pause(name)
            self._await_state(cluster, name, PAUSED)
        elif state in (RUNNING, FAILED):
            cluster.api.resume(name)
            since = time.monotonic()
            self._await(lambda: self._runs(cluster, name, state, since), f"{name} RUNNING at {cluster.text}")

    def _runs(self, cluster: Cluster, name: str, wanted: str, since: float) -> bool:
        """Return whether a connector runs, or has failed again. Raises MigrationError if it fails for the first time."""
        status = cluster.api.status(name)
        state = View.of({}, status).state
        if state == FAILED == wanted:
            return True
        if state == FAILED:
            traces = [part.get("trace", "").partition("\n")[0] for part in (status["connector"], *status["tasks"])]
            cause = next(filter(None, traces), "no trace")
            raise MigrationError(f"Connector {name} FAILED at {cluster.text}: {cause}")
        return state == RUNNING and (bool(status["tasks"]) or time.monotonic() > since + _NO_TASKS_SECONDS)

    # After a failure.

    def _restored(self, name: str, error: ConnectError) -> MigrationError:
        """Give the source its former state again, and return the error that says so."""
        what = str(error).rstrip(".")
        try:
            state = self._restore(name)
        except ConnectError as second:
            return MigrationError(
                f"{what}. Connector {name} could not get its former state back on the source either: {second} "
                "Run the command again: it continues this move. Or resume the connector at the source."
            )
        if state is None:
            return MigrationError(f"{what}. Nothing was changed at {self._source.text}.")
        return MigrationError(f"{what}. Connector {name} is {state} again at {self._source.text}, and STOPPED on the target.")

    def _restore(self, name: str) -> str | None:
        """Undo a move. Return the connector's state on the source, None if the move had not begun.

        Until the source has its state again, one of the clusters records it, so that an interruption loses nothing.
        """
        source, target = self._source.view(name), self._target.view(name)
        if source is None or target is None or (source.mark is None and target.mark is None):
            return None
        state = final_state(source, target)
        if target.state != STOPPED:
            self._stop(self._target, name)
            self._copy_offsets(self._target, self._source, name)
        if source.mark is not None:
            self._put_config(self._target, name, source.config, state)
            self._unmark(self._source, name)
        state = self._resumed(name, state)
        self._unmark(self._target, name)
        return state

    def _resumed(self, name: str, state: str) -> str:
        """Give the source a state; return the one that it reaches. A connector that had failed may fail again."""
        if state == STOPPED:
            return state
        if state == PAUSED:
            self._source.api.pause(name)
        else:
            self._source.api.resume(name)
        self._await(
            lambda: self._state(self._source, name) in (PAUSED, RUNNING, FAILED), f"{name} {state} at {self._source.text}"
        )
        return self._state(self._source, name)

    # Helpers.

    def _offset_edits(self, source: Cluster, target: Cluster, name: str) -> list[dict[str, Any]]:
        return offset_edits(source.api.offsets(name), target.api.offsets(name))

    def _existing(self, cluster: Cluster, name: str) -> View:
        view = cluster.view(name)
        if view is None:
            raise MigrationError(f"Connector {name} does not exist any more at {cluster.text}.")
        return view

    def _state(self, cluster: Cluster, name: str) -> str:
        return self._existing(cluster, name).state

    def _put_config(self, cluster: Cluster, name: str, config: Mapping[str, str], mark: str | None) -> None:
        """Change the config of a stopped connector, and wait until the cluster shows it as stopped again."""
        cluster.api.put_config(name, {**config, MOVING: mark} if mark is not None else config)
        self._await_state(cluster, name, STOPPED)

    def _await_state(self, cluster: Cluster, name: str, state: str) -> None:
        def reached() -> bool:
            view = cluster.view(name)  # a connector that has just been created may be missing for a moment
            return view is not None and view.state == state

        self._await(reached, f"{name} {state} at {cluster.text}")

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        awaited(condition, self._timeout, f"{what}. See the log of its worker, or raise --timeout")


def take_over(source: Cluster, target: Cluster, *, say: Callable[[str], None], timeout: float) -> None:
    """Wait until the workers of the source have ended, and then until the target runs the connectors of their common topics.

    Each waits ``timeout`` seconds. Raises MigrationError.
    """
    before = source.api.statuses()
    say(f"Waiting up to {timeout:g} s until {source.text} does not respond any more ...")
    awaited(lambda: not _responds(source), timeout, f"the workers of {source.text} still run. Stop them")
    for name, status in sorted(before.items()):
        view = View.of({}, status)
        wanted = FAILED if view.state == FAILED else view.target_state
        awaited(
            _has_reached(target, name, wanted),
            timeout,
            f"connector {name} is not {wanted} at {target.text}. See its driver's log",
        )
        say(f"{name}: {wanted} at {target.text}")


def _has_reached(cluster: Cluster, name: str, wanted: str) -> Callable[[], bool]:
    return lambda: has_reached(View.of({}, cluster.api.status(name)).state, wanted)


def _responds(cluster: Cluster) -> bool:
    try:
        cluster.api.root()
    except RestError as error:
        return error.status != 0
    return True

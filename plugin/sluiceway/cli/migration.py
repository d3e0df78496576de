"""Moves connectors from one Connect cluster to another through their REST APIs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sluiceway.cli.migration_cluster import POLL_SECONDS, TRANSIENT, MigrationCluster, awaited
from sluiceway.cli.migration_steps import (
    CHANGING,
    FAILED,
    PAUSED,
    RUNNING,
    STOPPED,
    ConnectorView,
    MigrationError,
    Step,
    Tasks,
    cause_of,
    final_state,
    mark_of,
    next_step,
    offset_edits,
)
from sluiceway.config.connector import DAG, MICRO_BATCH, MODE, MOVED, MOVING
from sluiceway.errors import ConnectError
from sluiceway.rest.client import RestError

log = logging.getLogger(__name__)

_FIRST_TASK_SECONDS = 15.0  # how long a connector that has started may take to get its tasks
_CONFLICT = 409
# Connectors that stand still at once. Each stop and start keeps the workers busy, so more of them would only stand still longer.
_MOST_STANDING = 2

Offsets = list[dict[str, Any]]


@dataclass
class Move:
    """The progress and the result of one connector's move."""

    name: str
    step: Step | None = None
    """The last step that is done."""
    state: str | None = None
    """The connector's state on the target in the end."""
    stopped_at: float | None = None
    """When (monotonic seconds) the connector was told to stop on the source."""
    standstill: float | None = None
    """Seconds from then until it had its state on the target; None if it was not stopped by this command."""
    before: Offsets | None = None
    """Its offsets on the source, where it has stopped."""
    after: Offsets | None = None
    """Its offsets on the target, once it runs there."""
    error: str | None = None
    wanted: str | None = None
    """The state that the target gives the connector, once it is decided."""
    copied: bool = False
    """Whether the target has been seen to have the offsets with which the connector has stopped."""
    started: bool = False
    """Whether this command has told the target to start it."""
    here: bool = False
    """Whether this command has done a step of it."""
    standing: bool = False
    """Whether it is one of the few connectors that may stand still now."""

    @property
    def done(self) -> bool:
        return self.step is Step.DONE


class Mover:
    """Moves connectors from ``source`` to ``target``. ``timeout`` is the seconds that each step may take.

    Several threads may move connectors side by side; few of these stand still at once. ``changed`` is called on their threads
    after each step.
    """

    def __init__(
        self,
        source: MigrationCluster,
        target: MigrationCluster,
        *,
        timeout: float,
        changed: Callable[[Move], None] = lambda _: None,
    ) -> None:
        self._source = source
        self._target = target
        self._timeout = timeout
        self._changed = changed
        self._cancelled = threading.Event()
        self._standing = threading.BoundedSemaphore(_MOST_STANDING)
        # Between two clusters of Kafka Connect the target notes it, whose tasks are restarted once when the note is removed.
        self._holder = source if source.is_sluiceway and not target.is_sluiceway else target
        self._perform: dict[Step, Callable[[Move], None]] = {
            Step.PREPARE: self._prepare,
            Step.STOP: self._stop_source,
            Step.COPY_OFFSETS: self._copy,
            Step.START: self._start,
            Step.LEAVE: self._leave,
        }

    def move(self, name: str, *, delete_source: bool = False) -> Move:
        """Move one connector, from the step that an earlier move has reached. Return what was done; nothing is raised.

        After an error the connector is as before on the source, and stopped on the target; the error says so, or why that failed.
        """
        move = Move(name)
        try:
            try:
                self._until_done(move)
            except ConnectError as error:
                raise self._restored(move, error) from error
            if delete_source and self._source.view(name) is not None:
                self._source.api.delete(name)
        except ConnectError as error:
            move.error = str(error)
            self._changed(move)
        finally:
            self._end_standing(move)
        return move

    def cancel(self) -> None:
        """Let every move end with KeyboardInterrupt at its next request, as it is."""
        self._cancelled.set()

    def _until_done(self, move: Move) -> None:
        name = move.name
        deadline = time.monotonic() + self._timeout
        while True:
            self._end_if_cancelled()
            try:
                step = self._next(move)
                if step is Step.DONE:
                    move.state = self._state(self._target, name)
                else:
                    move.here = True
                    self._perform[step](move)
            except RestError as error:
                if error.status not in TRANSIENT or time.monotonic() > deadline:
                    raise
                log.info("Connector %s: %s. Trying again", name, error)
                time.sleep(POLL_SECONDS)
                continue
            if step is not move.step:
                deadline = time.monotonic() + self._timeout
                move.step = step
                self._changed(move)
            if step is Step.DONE:
                return
            if time.monotonic() > deadline:
                raise MigrationError(f"Connector {name}: the step '{step.value}' has no effect.")

    def _next(self, move: Move) -> Step:
        """Return the next step, by what the clusters say. Between the stop and the start of a connector they are not asked."""
        if move.step is Step.STOP:
            return Step.COPY_OFFSETS
        if move.copied and move.step is Step.COPY_OFFSETS:
            return Step.START
        name = move.name
        source, target = self._source.view(name), self._target.view(name)
        if source is not None:
            move.wanted = mark_of(source, target)
            if source.state == CHANGING and (move.wanted is None or (target and target.state not in (STOPPED, CHANGING))):
                raise _changing(name, self._source)
            if move.wanted is not None and target is not None and target.state == CHANGING and source.state == STOPPED:
                raise _changing(name, self._target)
        return next_step(name, source, target, lambda: not self._offset_edits(self._source, self._target, name))

    # Steps.

    def _prepare(self, move: Move) -> None:
        name = move.name
        source, target = self._existing(self._source, name), self._target.view(name)
        state = final_state(source, target)
        if self._holder is self._source and source.mark != state:
            self._put_config(self._source, name, source.config, state)
        mark = state if self._holder is self._target else None
        if target is None:
            self._target.api.create(name, _marked(source.config, mark), STOPPED)
        elif target.config != source.config or target.mark != mark:
            self._put_config(self._target, name, source.config, mark)
        self._await_state(self._target, name, STOPPED)

    def _stop_source(self, move: Move) -> None:
        self._await_driver(move.name)
        while not move.standing:
            move.standing = self._standing.acquire(timeout=POLL_SECONDS)
            self._end_if_cancelled()
        if move.stopped_at is None:
            move.stopped_at = time.monotonic()
        self._stop(self._source, move.name)

    def _end_standing(self, move: Move) -> None:
        if move.standing:
            move.standing = False
            self._standing.release()

    def _await_driver(self, name: str) -> None:
        """Wait until a driver is ready for the connector: it would stand still while one starts. Schedules start their own."""
        target = self._existing(self._target, name)
        if not self._target.is_sluiceway or target.mark not in (RUNNING, FAILED) or _by_schedule(target.config):
            return
        self._await(
            lambda: self._target.api.application(name).get("driver", "unknown") is not None,
            f"a driver for {name} at {self._target.text}, which is running its DAG",
        )

    def _stop(self, cluster: MigrationCluster, name: str) -> None:
        """Stop a connector and wait until its last task has ended, so that its last offsets are stored."""
        ends = cluster.ends(name)
        ends.expect(self._started_tasks(cluster, name).numbers)
        cluster.api.stop(name)
        self._await(lambda: self._state(cluster, name) == STOPPED and ends.all(), f"{name} STOPPED at {cluster.text}")

    def _started_tasks(self, cluster: MigrationCluster, name: str) -> Tasks:
        """Return a connector's tasks. Those that are about to start are waited for, as after a worker's return.

        Nothing would show when such a task ends: it could store offsets after they were read.
        """
        deadline = time.monotonic() + _FIRST_TASK_SECONDS
        while True:
            tasks = cluster.tasks(name)
            if not tasks.starting or time.monotonic() > deadline:
                return tasks
            self._end_if_cancelled()
            time.sleep(POLL_SECONDS)

    def _copy(self, move: Move) -> None:
        move.copied = self._copy_offsets(self._source, self._target, move.name)

    def _copy_offsets(self, source: MigrationCluster, target: MigrationCluster, name: str) -> bool:
        """Return whether the target has the offsets."""
        wanted = self._last_offsets(source, name)
        edits = offset_edits(wanted, target.api.offsets(name))
        if not edits:
            return True
        target.api.alter_offsets(name, edits)
        return not offset_edits(wanted, target.api.offsets(name))

    def _start(self, move: Move) -> None:
        name, move.started = move.name, True
        self._set_state(self._target, name, move.wanted or RUNNING)
        if move.stopped_at is not None:
            move.standstill = time.monotonic() - move.stopped_at
        self._end_standing(move)
        move.before, move.after = self._source.api.offsets(name), self._target.api.offsets(name)

    def _leave(self, move: Move) -> None:
        """Remove the mark of the move. A Sluiceway notes where the connector is now, and refuses to start it."""
        name = move.name
        source, target = self._existing(self._source, name), self._existing(self._target, name)
        if self._source.is_sluiceway:
            self._put_config(self._source, name, {**source.config, MOVED: self._target.text}, None)
        elif source.mark is not None:
            self._put_config(self._source, name, source.config, None)
        if target.mark is not None:
            self._put_config(self._target, name, target.config, None)

    def _set_state(self, cluster: MigrationCluster, name: str, state: str) -> None:
        if state == PAUSED:
            cluster.pause(name)
            self._await_state(cluster, name, PAUSED)
        elif state in (RUNNING, FAILED):
            cluster.resume(name)
            since = time.monotonic()
            self._await(lambda: self._runs(cluster, name, state, since), f"{name} RUNNING at {cluster.text}")

    def _runs(self, cluster: MigrationCluster, name: str, wanted: str, since: float) -> bool:
        """Return whether a connector runs, or has failed again. Raises MigrationError if it fails for the first time."""
        status = cluster.status(name)
        state = ConnectorView.of({}, status).state
        if state == FAILED == wanted:
            return True
        if state == FAILED:
            raise MigrationError(f"Connector {name} FAILED at {cluster.text}: {cause_of(status) or 'no trace'}")
        return state == RUNNING and (bool(status["tasks"]) or time.monotonic() > since + _FIRST_TASK_SECONDS)

    # After a failure.

    def _restored(self, move: Move, error: ConnectError) -> MigrationError:
        """Give the source its former state again, and return the error that says so."""
        name = move.name
        what, deadline = str(error).rstrip("."), time.monotonic() + self._timeout
        while True:
            try:
                state = self._restore(move)
                break
            except ConnectError as second:
                if isinstance(second, RestError) and second.status in TRANSIENT and time.monotonic() < deadline:
                    time.sleep(POLL_SECONDS)
                    continue
                return MigrationError(
                    f"{what}. Connector {name} could not get its former state back on the source either: {second} "
                    "Run the command again: it continues this move. Or resume the connector at the source."
                )
        if state is None:
            return MigrationError(f"{what}. Nothing was changed at {self._source.text}.")
        return MigrationError(f"{what}. Connector {name} is {state} again at {self._source.text}, and STOPPED on the target.")

    def _restore(self, move: Move) -> str | None:
        """Undo a move. Return the connector's state on the source, None if the move had not begun.

        Until the source has its state again, one of the clusters has the mark, so that an interruption loses nothing.
        """
        name = move.name
        source, target = self._source.view(name), self._target.view(name)
        if source is None or target is None or mark_of(source, target) is None:
            return None
        state = final_state(source, target)
        if target.state == CHANGING and not move.started:  # nothing shows whether its offsets are newer
            raise _changing(name, self._target)
        if move.started or target.state != STOPPED:  # one that was just told to start may still be STOPPED in its status
            self._stop(self._target, name)
            self._copy_offsets(self._target, self._source, name)
        if self._source.is_sluiceway:  # it may have noted already that the connector has moved
            self._put_config(self._source, name, source.config, source.mark)
        state = self._resumed(name, state)
        for cluster, view in ((self._source, source), (self._target, target)):
            if view.mark is not None:
                self._put_config(cluster, name, view.config, None)
        return state

    def _resumed(self, name: str, state: str) -> str:
        """Give the source a state; return the one that it reaches. A connector that had failed may fail again."""
        if state == STOPPED:
            return state
        if state == PAUSED:
            self._source.pause(name)
        else:
            self._source.resume(name)
        self._await(
            lambda: self._state(self._source, name) in (PAUSED, RUNNING, FAILED), f"{name} {state} at {self._source.text}"
        )
        return self._state(self._source, name)

    # Helpers.

    def _last_offsets(self, cluster: MigrationCluster, name: str) -> Offsets:
        """Return the offsets of a connector that is STOPPED, maybe by an earlier command, once its last task has ended."""
        self._await(cluster.ends(name).all, f"the end of the last task of {name} at {cluster.text}")
        return cluster.api.offsets(name)

    def _offset_edits(self, source: MigrationCluster, target: MigrationCluster, name: str) -> list[dict[str, Any]]:
        return offset_edits(self._last_offsets(source, name), target.api.offsets(name))

    def _existing(self, cluster: MigrationCluster, name: str) -> ConnectorView:
        view = cluster.view(name)
        if view is None:
            raise MigrationError(f"Connector {name} does not exist any more at {cluster.text}.")
        return view

    def _state(self, cluster: MigrationCluster, name: str) -> str:
        return self._existing(cluster, name).state

    def _put_config(self, cluster: MigrationCluster, name: str, config: Mapping[str, str], mark: str | None) -> None:
        cluster.api.put_config(name, _marked(config, mark))

    def _await_state(self, cluster: MigrationCluster, name: str, state: str) -> None:
        def reached() -> bool:
            view = cluster.view(name)  # a connector that has just been created may be missing for a moment
            return view is not None and view.state == state

        self._await(reached, f"{name} {state} at {cluster.text}")

    def _await(self, condition: Callable[[], bool], what: str) -> None:
        def holds() -> bool:
            self._end_if_cancelled()
            return condition()

        awaited(holds, self._timeout, f"{what}. See the log of its worker, or raise --timeout")

    def _end_if_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise KeyboardInterrupt


def _marked(config: Mapping[str, str], mark: str | None) -> dict[str, str]:
    return {**config, MOVING: mark} if mark is not None else dict(config)


def _by_schedule(config: Mapping[str, str]) -> bool:
    """Return whether a connector runs when a schedule or a DAG of users says so."""
    return config.get(MODE, "").strip() == MICRO_BATCH or bool(config.get(DAG))


def _changing(name: str, cluster: MigrationCluster) -> RestError:
    """Return the error for a state that passes: a rebalance of Connect's workers shows a connector as UNASSIGNED for a moment."""
    return RestError(_CONFLICT, f"Connector {name} is changing its state at {cluster.text}.")

"""The tasks that one connector has on this driver: placed, watched, placed anew, drained or given up."""

from __future__ import annotations

import enum
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from sluiceway.errors import ConnectError, FencedError, trace_of
from sluiceway.herder.restart_policy import LOST_PROCESS_POLICY, RestartPolicy, Restarts
from sluiceway.runtime.task import TaskResult, TaskSpec
from sluiceway.storage.model import State
from sluiceway.worker.control_channel import ConnectorPort
from sluiceway.worker.executor import Assignment
from sluiceway.worker.task_launcher import TaskLauncher
from sluiceway.worker.worker_connector import Await

log = logging.getLogger(__name__)

_KILL_SECONDS = 15.0  # Spark kills a Python worker 2 s after its task was cancelled; a loaded machine takes longer
_NONE_YET = Restarts()


class Phase(enum.Enum):
    """Where a task stands, as its driver sees it."""

    PLACED = "placed"
    WAITING = "waiting to be placed anew"
    FAILED = "failed for good"
    ENDED = "ended"


@dataclass(slots=True)
class _Task:
    """``since`` and ``due`` are monotonic seconds: when it was placed, and when it is to be placed anew."""

    config: Mapping[str, str]
    phase: Phase = Phase.PLACED
    placed: tuple[Assignment, Future[TaskResult]] | None = None
    since: float = 0.0
    due: float = 0.0
    failures: Restarts = _NONE_YET
    losses: Restarts = _NONE_YET


class TaskTable:
    """For the runner's thread. Whatever writes a status raises FencedError once a newer driver has taken over.

    Args:
        spec: makes what a task's loop needs from its number and config.
        fence: shuts out whoever ran the tasks before, if that is still to be done; they stay FAILED where it cannot be.
        patience: seconds that tasks may take to stop, all together.
        wait: waits for a condition while heartbeats go on.
    """

    def __init__(
        self,
        name: str,
        *,
        port: ConnectorPort,
        launcher: TaskLauncher,
        policy: RestartPolicy,
        spec: Callable[[int, Mapping[str, str]], TaskSpec],
        fence: Callable[[], None],
        patience: float,
        wait: Await,
        notify: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.paused = False
        self.records = 0  # moved by tasks that have ended
        self._name = name
        self._port = port
        self._launcher = launcher
        self._policy = policy
        self._spec = spec
        self._fence = fence
        self._patience = patience
        self._wait = wait
        self._notify = notify
        self._clock = clock
        self._tasks: dict[int, _Task] = {}
        self._given_up: dict[int, str] = {}
        self._failed: set[int] = set()

    @property
    def configs(self) -> dict[int, Mapping[str, str]]:
        """The configs of the tasks that there are, whatever became of them."""
        return {number: task.config for number, task in self._tasks.items()}

    def states(self) -> dict[int, State]:
        """Return FAILED where a task has failed, be it that its loop is still on its way to its end; RUNNING for the others."""
        failed = self._port.failed_tasks()  # what people see who ask for a restart, a moment before the loop has ended
        failed.update(number for number, task in self._tasks.items() if task.phase is Phase.FAILED)
        return {number: State.FAILED if number in failed else State.RUNNING for number in self._tasks}

    @property
    def failed(self) -> list[int]:
        """The tasks that failed and were not started again since, those included that were stopped after."""
        return sorted(self._failed)

    @property
    def at_work(self) -> bool:
        """Whether a task runs or is to be placed anew."""
        return any(task.phase in (Phase.PLACED, Phase.WAITING) for task in self._tasks.values())

    @property
    def seconds_left(self) -> float:
        """The time until a task is to be placed anew."""
        due = [task.due for task in self._tasks.values() if task.phase is Phase.WAITING]
        return max(0.0, min(due) - self._clock()) if due else float("inf")

    def start(self, configs: Mapping[int, Mapping[str, str]], state: State = State.UNASSIGNED) -> None:
        """Place tasks that do not run; they are in ``state`` until they say that they are RUNNING."""
        if not configs:
            return
        for number, config in sorted(configs.items()):
            self._failed.discard(number)
            self._given_up.pop(number, None)
            self._tasks[number] = _Task(config)
        self._port.publish_tasks(configs, state)
        self._place(configs)

    def restart(self, numbers: Iterable[int]) -> None:
        """Stop tasks and place them with the configs that they have; their budgets of restarts are whole again."""
        chosen = {number: self._tasks[number].config for number in numbers if number in self._tasks}
        self.stop(chosen, State.RESTARTING)
        self.start(chosen, State.RESTARTING)

    def pause(self) -> None:
        self.paused = True
        self._port.order_pause(self._tasks)

    def resume(self) -> None:
        self.paused = False
        self._port.order_run(self._tasks)

    def stop(self, numbers: Iterable[int], state: State = State.UNASSIGNED) -> None:
        """Drain tasks within the patience, and take the process of those that do not come to an end; say ``state`` of them."""
        chosen = {number: self._tasks[number] for number in numbers if number in self._tasks}
        if not chosen:
            return
        running = {number: task.placed for number, task in chosen.items() if task.placed is not None}
        self._port.order_stop(running)
        self._port.publish_tasks(set(chosen) - self._failed, state)  # a failure stays visible until the task is started again
        self._wait(lambda: all(future.done() for _, future in running.values()), self._patience)
        self._give_up(running, state)
        for number, (_, future) in running.items():
            if future.done() and future.exception() is None:
                self.records += future.result().records
                if future.result().failed:
                    self._failed.add(number)
        for number in chosen:
            del self._tasks[number]

    def settle(self, numbers: Iterable[int], state: State, version: str | None = None) -> None:
        """Say where stopped tasks were left: in ``state``, but FAILED where they failed, and why where they were given up."""
        left = sorted(set(numbers) - self._failed)
        self._port.publish_tasks([number for number in left if number not in self._given_up], state, version=version)
        for number in left:
            if number in self._given_up:
                self._port.publish_tasks([number], state, self._given_up[number], version=version)

    def look_after(self) -> None:
        """Take note of tasks that ended, and place those whose time has come."""
        for number, task in self._tasks.items():
            if task.placed is not None and task.placed[1].done():
                self._ended(number, task, task.placed[1])
        now = self._clock()
        self._place([number for number, task in self._tasks.items() if task.phase is Phase.WAITING and now >= task.due])

    def abandon(self) -> None:
        """Take every task's process without a word: a newer driver has taken over."""
        for task in self._tasks.values():
            if task.placed is not None:
                self._launcher.cancel(task.placed[0])
        self._tasks.clear()

    def _place(self, numbers: Collection[int]) -> None:
        if not numbers:
            return
        try:
            self._fence()
        except FencedError:
            raise
        except ConnectError as error:
            log.exception("[%s|worker] No task was started", self._name)
            for number in numbers:
                self._fail(number, trace_of(error))
            return
        for number in sorted(numbers):
            self._launch(number, self._tasks[number])

    def _launch(self, number: int, task: _Task) -> None:
        spec = self._spec(number, task.config)
        assignment = Assignment(spec, self._port.services(spec.id))
        if self.paused:
            self._port.order_pause([number])
        future = self._launcher.launch(assignment)
        task.phase, task.placed, task.since = Phase.PLACED, (assignment, future), self._clock()
        future.add_done_callback(lambda _: self._notify())

    def _ended(self, number: int, task: _Task, future: Future[TaskResult]) -> None:
        task.placed = None
        ran_for = self._clock() - task.since
        error = future.exception()
        if error is not None:
            self._lost(number, task, str(error).partition("\n")[0], trace_of(error), ran_for)
            return
        result = future.result()
        self.records += result.records
        if result.lost:
            self._lost(number, task, "its transactional id was taken over", result.trace or "", ran_for)
        elif result.failed:
            self._failed_itself(number, task, result.trace or "", ran_for)
        elif not self._spec(number, task.config).bounded:  # it took an order for its own that was none of this driver's
            self._lost(number, task, "its loop ended though nobody had stopped it", "", ran_for)
        else:
            task.phase = Phase.ENDED
            log.info("[%s|task-%d] ended after %d records", self._name, number, result.records)

    def _lost(self, number: int, task: _Task, reason: str, trace: str, ran_for: float) -> None:
        again = task.losses.next(LOST_PROCESS_POLICY, ran_for)
        if again is None:
            self._failed_itself(number, task, trace, ran_for)
            return
        task.losses, delay = again
        log.warning("[%s|task-%d] was lost (%s); placing it anew in %g s", self._name, number, reason, delay)
        self._await_turn(number, task, delay, State.UNASSIGNED, f"The task was lost and is placed anew: {reason}")

    def _failed_itself(self, number: int, task: _Task, trace: str, ran_for: float) -> None:
        again = task.failures.next(self._policy, ran_for)
        if again is not None:
            task.failures, delay = again
            log.warning(
                "[%s|task-%d] failed; restart %d of %d in %g s",
                self._name,
                number,
                task.failures.used,
                self._policy.max_restarts,
                delay,
            )
            self._await_turn(number, task, delay, State.RESTARTING, trace)
            return
        if self._policy.max_restarts:
            trace = (
                f"Given up after {task.failures.used} restarts, as sluiceway.task.restart.max.restarts says; the task stays "
                f"FAILED until somebody restarts it. Its last failure: {trace}"
            )
        log.error("[%s|task-%d] failed; it stays FAILED until restarted", self._name, number)
        self._fail(number, trace)

    def _fail(self, number: int, trace: str) -> None:
        task = self._tasks[number]
        task.phase = Phase.FAILED
        self._failed.add(number)
        self._port.publish_tasks([number], State.FAILED, trace, version=self._spec(number, task.config).version)

    def _await_turn(self, number: int, task: _Task, delay: float, state: State, trace: str) -> None:
        task.phase, task.due = Phase.WAITING, self._clock() + delay
        self._port.publish_tasks([number], state, trace)

    def _give_up(self, running: Mapping[int, tuple[Assignment, Future[TaskResult]]], state: State) -> None:
        hung = {number: placed for number, placed in running.items() if not placed[1].done()}
        for assignment, _ in hung.values():
            self._launcher.cancel(assignment)
        self._wait(lambda: all(future.done() for _, future in hung.values()), _KILL_SECONDS)
        for number, (_, future) in hung.items():
            fate = "its process was ended" if future.done() else "its process could not be ended"
            trace = (
                f"The task did not stop within task.shutdown.graceful.timeout.ms ({self._patience:g} s) and was given up: {fate}."
            )
            log.error("[%s|task-%d] %s", self._name, number, trace)
            self._given_up[number] = trace
            self._port.publish_tasks([number], state, trace)

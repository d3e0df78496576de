"""Starts, monitors, restarts and stops the tasks that one connector runs from this driver."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import replace

from sluiceway.errors import ConnectError, FencedError, InternalTopicError, trace_of
from sluiceway.herder.restart_policy import CRASHED_PROCESS_POLICY, LOST_EXECUTOR_POLICY, RestartPolicy
from sluiceway.metrics.registry import registry
from sluiceway.runtime.task import TaskResult, TaskSpec
from sluiceway.storage.model import State, Status
from sluiceway.worker.control_channel import ControlChannel
from sluiceway.worker.executor import TaskAssignment
from sluiceway.worker.task_entry import Launch, Phase, TaskEntry
from sluiceway.worker.task_launcher import TaskLauncher, TaskLostError
from sluiceway.worker.task_watch import TaskWatch, Verdict
from sluiceway.worker.worker_connector import WaitUntil

log = logging.getLogger(__name__)

_WAITS = "Waits for a slot"

_KILL_SECONDS = 15.0  # Spark kills a Python worker 2 s after its job was canceled; a busy machine takes longer
_WATCH_SECONDS = 2.0
_STALL_SECONDS = 5.0  # between two looks at the tasks, after which their silence says nothing


class TaskTable:
    """The tasks of one connector. For the runner's thread; methods that write a status raise FencedError after a takeover.

    Args:
        name: the connector's name.
        channel: publishes statuses and carries commands to the tasks.
        launcher: starts tasks.
        policy: how often and how soon a failed task is restarted.
        spec: makes a task's spec from its number, config and generation.
        fence: fences earlier tasks where exactly-once requires it; on ConnectError the tasks to be started become FAILED.
        stop_timeout: seconds within which all tasks together must stop.
        slots_timeout: seconds between two warnings about tasks that wait for a slot.
        heartbeat_timeout: seconds without a heartbeat after which a task is lost, where tasks send heartbeats.
        wait: waits for a condition while heartbeats continue.
        notify: called on any thread when a task has ended.
        clock: monotonic seconds.

    Attributes:
        paused: tasks that start are paused at once; set it before the first ``start``.
        records: number of records that ended tasks have moved.
    """

    def __init__(
        self,
        name: str,
        *,
        channel: ControlChannel,
        launcher: TaskLauncher,
        policy: RestartPolicy,
        spec: Callable[[int, Mapping[str, str], int], TaskSpec],
        fence: Callable[[], None],
        stop_timeout: float,
        slots_timeout: float,
        heartbeat_timeout: float,
        wait: WaitUntil,
        notify: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.paused = False
        self.records = 0
        self._name = name
        self._channel = channel
        self._launcher = launcher
        self._policy = policy
        self._spec = spec
        self._fence = fence
        self._stop_timeout = stop_timeout
        self._slots_timeout = slots_timeout
        self._heartbeat_timeout = heartbeat_timeout if channel.tasks_send_heartbeats else float("inf")
        self._wait = wait
        self._notify = notify
        self._clock = clock
        self._tasks: dict[int, TaskEntry] = {}
        self._killed: dict[int, str] = {}
        self._failed: dict[int, str] = {}
        self._watched_at = clock()
        self._warn_at = 0.0

    @property
    def configs(self) -> dict[int, Mapping[str, str]]:
        """The config of each task, running or not."""
        return {number: task.config for number, task in self._tasks.items()}

    def states(self) -> dict[int, State]:
        """Return FAILED for each task that has reported it, even if its loop has not exited yet; RUNNING for all others.

        A restart of failed tasks must include every task that its caller has seen as FAILED.
        """
        failed = self._channel.failed_tasks()
        failed.update(number for number, task in self._tasks.items() if task.phase is Phase.FAILED)
        return {number: State.FAILED if number in failed else State.RUNNING for number in self._tasks}

    @property
    def failed(self) -> dict[int, str]:
        """The traces of tasks that failed and have not been started since, including those that were stopped afterwards."""
        return dict(sorted(self._failed.items()))

    @property
    def active(self) -> bool:
        """True while any task runs or will be restarted."""
        return any(task.phase in (Phase.LAUNCHED, Phase.RESTARTING) for task in self._tasks.values())

    @property
    def seconds_left(self) -> float:
        """Seconds until the next restart of a task is due or running tasks must be looked at."""
        due = [task.due for task in self._tasks.values() if task.phase is Phase.RESTARTING]
        if any(task.launch is not None for task in self._tasks.values()):
            due.append(self._watched_at + _WATCH_SECONDS)
        return max(0.0, min(due) - self._clock()) if due else float("inf")

    def start(self, configs: Mapping[int, Mapping[str, str]], state: State = State.UNASSIGNED) -> None:
        """Start tasks that do not run. Their status is ``state`` until they report RUNNING themselves."""
        if not configs:
            return
        for number, config in sorted(configs.items()):
            self._failed.pop(number, None)
            self._killed.pop(number, None)
            self._tasks[number] = TaskEntry(config, self._channel.generation)
        self._channel.publish_tasks(configs, state)
        self._launch(configs)

    def restart(self, numbers: Iterable[int]) -> None:
        """Stop tasks and start them with their current configs and a full budget of automatic restarts."""
        chosen = {number: self._tasks[number].config for number in numbers if number in self._tasks}
        self.stop(chosen, State.RESTARTING)
        self.start(chosen, State.RESTARTING)

    def pause(self) -> None:
        self.paused = True
        self._channel.pause_tasks(self._tasks)

    def resume(self) -> None:
        self.paused = False
        self._channel.resume_tasks(self._tasks)

    def stop(self, numbers: Iterable[int], state: State = State.UNASSIGNED) -> None:
        """Drain tasks, kill those that have not ended after the stop timeout, and remove all from the table.

        Publishes ``state`` for each, except that a FAILED status stays until the task is started again.
        """
        chosen = {number: self._tasks[number] for number in numbers if number in self._tasks}
        if not chosen:
            return
        running = {number: task.launch for number, task in chosen.items() if task.launch is not None}
        self._channel.stop_tasks(running)
        self._publish(sorted(set(chosen) - self._failed.keys()), state)
        for launch in running.values():
            if launch.watch.waiting:  # it does not run, so it would not obey
                self._launcher.cancel(launch.assignment)
        self._wait(lambda: all(launch.future.done() for launch in running.values()), self._stop_timeout)
        self._kill_hung(running, state)
        for number, launch in running.items():
            if launch.future.done() and launch.future.exception() is None:
                self.records += launch.future.result().records
                if launch.future.result().failed:
                    self._failed[number] = launch.future.result().trace or ""
        for number in chosen:
            del self._tasks[number]

    def publish_stopped(
        self, numbers: Iterable[int], state: State, version: str | None = None, *, trace: str | None = None
    ) -> None:
        """Publish ``state`` and ``trace`` for stopped tasks that have not failed; for those that were killed, that reason."""
        stopped = sorted(set(numbers) - self._failed.keys())
        others = [number for number in stopped if number not in self._killed]
        self._channel.publish_tasks(others, state, trace, version=version)
        for number in stopped:
            if number in self._killed:
                self._channel.publish_tasks([number], state, self._killed[number], version=version)

    def check(self) -> None:
        """Handle tasks that have ended or are lost, and restart those whose restart is due."""
        for number, task in self._tasks.items():
            if task.launch is not None and task.launch.future.done():
                self._ended(number, task, task.launch.future)
        now = self._clock()
        if now - self._watched_at >= _WATCH_SECONDS:
            self._watch_all(now)
            self._move()
        self._launch([number for number, task in self._tasks.items() if task.phase is Phase.RESTARTING and now >= task.due])

    def release(self) -> None:
        """Let every task commit and end, and kill those that do not in time. Kafka Connect writes the statuses."""
        launches = [task.launch for task in self._tasks.values() if task.launch is not None]
        running = [launch.future for launch in launches if not launch.watch.waiting]
        if running:
            self._channel.release_tasks()
            wait(running, self._stop_timeout)
            self.records += sum(each.result().records for each in running if each.done() and each.exception() is None)
            self._channel.forget_release()
        self.abandon()

    def abandon(self) -> None:
        """Kill every task and publish nothing, because another driver has taken over."""
        for task in self._tasks.values():
            if task.launch is not None and not task.launch.future.done():
                self._launcher.cancel(task.launch.assignment)
        self._tasks.clear()

    def _launch(self, numbers: Collection[int]) -> None:
        if not numbers:
            return
        try:
            self._fence()
        except FencedError:
            raise
        except ConnectError as error:
            log.exception("[%s|worker] Cannot fence earlier tasks; no task was started", self._name)
            for number in numbers:
                self._fail(number, trace_of(error))
            return
        for number in sorted(numbers):
            self._launch_one(number, self._tasks[number])

    def _launch_one(self, number: int, task: TaskEntry) -> None:
        spec = self._spec(number, task.config, task.generation)
        assignment = TaskAssignment(spec, self._channel.services(spec.id))
        if self.paused:
            self._channel.pause_tasks([number])
        registry.task_launched(spec.id)
        future = self._launcher.launch(assignment)
        watch = TaskWatch(task.generation, self._heartbeat_timeout)
        task.phase, task.launch, task.since = Phase.LAUNCHED, Launch(assignment, future, watch), self._clock()
        future.add_done_callback(lambda _: self._notify())

    def _watch_all(self, now: float) -> None:
        """Find tasks that wait for a slot, and those whose process is lost although their Spark job has not failed."""
        stalled, self._watched_at = now - self._watched_at > _STALL_SECONDS, now
        launched = {number: task.launch for number, task in self._tasks.items() if task.launch is not None}
        if stalled:
            for launch in launched.values():
                launch.watch.excuse(now)
        statuses = self._channel.task_statuses() if launched else {}
        waiting = []
        for number, launch in launched.items():
            verdict = launch.watch.judge(self._launcher.slot(launch.assignment), statuses.get(number), now)
            if verdict is Verdict.WAITS:
                waiting.append(number)
                self._tasks[number].since = now  # or a wait would count as a run without a crash
            elif verdict is Verdict.LOST_SLOT:
                self._replace(number, "Spark lost the task's executor or its host")
            elif verdict is Verdict.SILENT and self._is_silent(number, launch, now):
                self._replace(
                    number,
                    f"no heartbeat for {self._heartbeat_timeout:g} s: its process hangs, or its host is down or cut off",
                )
        self._report_waiting(waiting, statuses, now)

    def _move(self) -> None:
        """Drain tasks that must run elsewhere, and start them there."""
        launches = {number: task.launch for number, task in self._tasks.items() if task.launch is not None}
        found = {number: self._launcher.must_move(launch.assignment) for number, launch in launches.items()}
        leaving = {number: reason for number, reason in found.items() if reason is not None}
        if not leaving:
            return
        for number, reason in leaving.items():
            log.info("[%s|task-%d] Moves. %s", self._name, number, reason)
        moved = {number: self._tasks[number] for number in leaving}
        self.stop(moved)
        for number, task in moved.items():
            self._failed.pop(number, None)
            self._killed.pop(number, None)
            self._tasks[number] = replace(task, generation=self._channel.generation, launch=None)
            self._publish([number], State.UNASSIGNED, leaving[number])
        self._launch(moved)

    def _is_silent(self, number: int, launch: Launch, now: float) -> bool:
        """Read the newest statuses and judge again: this driver may have read them late. Raises InternalTopicError."""
        try:
            statuses = self._channel.task_statuses(refresh=True)
        except InternalTopicError:
            raise
        except ConnectError as error:
            log.warning("[%s|worker] Cannot read the heartbeats of its tasks: %s", self._name, error)
            launch.watch.excuse(self._clock())
            return False
        return launch.watch.judge(self._launcher.slot(launch.assignment), statuses.get(number), now) is Verdict.SILENT

    def _report_waiting(self, waiting: Collection[int], statuses: Mapping[int, Status], now: float) -> None:
        if not waiting:
            self._warn_at = 0.0
            return
        advice = self._launcher.slots_advice()
        for number in waiting:
            known = statuses.get(number)
            if known is None or known.state is not State.UNASSIGNED or not (known.trace or "").startswith(_WAITS):
                self._publish([number], State.UNASSIGNED, f"{_WAITS}: {advice}")
        if now >= self._warn_at:
            log.warning("[%s|worker] Task(s) %s wait for a slot: %s", self._name, ", ".join(map(str, waiting)), advice)
            self._warn_at = now + self._slots_timeout

    def _replace(self, number: int, reason: str) -> None:
        """Give up a launch whose Spark job has not failed, and start the task again."""
        task = self._tasks[number]
        assert task.launch is not None  # noqa: S101 (the caller has checked it)
        self._launcher.cancel(task.launch.assignment)
        task.launch = None
        self._lost(number, task, reason, "", self._clock() - task.since, crashed=False)

    def _ended(self, number: int, task: TaskEntry, future: Future[TaskResult]) -> None:
        task.launch = None
        ran_for = self._clock() - task.since
        error = future.exception()
        if error is not None:
            reason = next(iter(str(error).splitlines()), "") or type(error).__name__
            crashed = error.crashed if isinstance(error, TaskLostError) else True
            self._lost(number, task, reason, trace_of(error), ran_for, crashed=crashed)
            return
        result = future.result()
        self.records += result.records
        if result.second_attempt:
            self._lost(number, task, result.trace or "", "", ran_for, crashed=False)
        elif result.lost:
            self._lost(number, task, "its transactional id was taken over", result.trace or "", ran_for)
        elif result.failed:
            self._restart_failed(number, task, result.trace or "", ran_for)
        elif not self._spec(number, task.config, task.generation).bounded:  # it obeyed a command that this driver did not send
            self._lost(number, task, "its loop ended without a command of this driver", "", ran_for)
        else:
            task.phase = Phase.ENDED
            log.info("[%s|task-%d] Ended after %d records", self._name, number, result.records)

    def _lost(self, number: int, task: TaskEntry, reason: str, trace: str, ran_for: float, *, crashed: bool = True) -> None:
        """Start a task again whose process was lost; if it ``crashed`` too often in a row, treat that as its failure."""
        # Part of the lost process may still run, such as on a host that is cut off. It ends at a status of a higher generation.
        task.generation = self._channel.raise_generation()
        if self._launcher.has_ended():
            log.warning("[%s|task-%d] Lost (%s); the Spark application has ended", self._name, number, reason)
            self._restart_later(number, task, float("inf"), State.UNASSIGNED, f"The Spark application has ended: {reason}")
            return
        again = task.crashes.next(CRASHED_PROCESS_POLICY, ran_for) if crashed else task.losses.next(LOST_EXECUTOR_POLICY, ran_for)
        if again is None:
            self._restart_failed(number, task, trace, ran_for)
            return
        restarts, delay = again
        task.crashes, task.losses = (restarts, task.losses) if crashed else (task.crashes, restarts)
        log.warning("[%s|task-%d] Lost (%s); starting it again in %g s", self._name, number, reason, delay)
        log.debug("[%s|task-%d] %s", self._name, number, trace)
        self._restart_later(number, task, delay, State.UNASSIGNED, f"The task was lost and will be started again: {reason}")

    def _restart_failed(self, number: int, task: TaskEntry, trace: str, ran_for: float) -> None:
        again = task.failures.next(self._policy, ran_for)
        if again is not None:
            task.failures, delay = again
            log.warning(
                "[%s|task-%d] Failed; restart %d of %d in %g s",
                self._name,
                number,
                task.failures.used,
                self._policy.max_restarts,
                delay,
            )
            self._restart_later(number, task, delay, State.RESTARTING, trace)
            return
        if self._policy.max_restarts:
            trace = (
                f"Given up after {task.failures.used} restarts, the limit set by sluiceway.task.restart.max.restarts; the task "
                f"stays FAILED until it is restarted by request. Its last failure: {trace}"
            )
        log.error("[%s|task-%d] Failed; it stays FAILED until it is restarted by request", self._name, number)
        self._fail(number, trace)

    def _fail(self, number: int, trace: str) -> None:
        task = self._tasks[number]
        task.phase = Phase.FAILED
        self._failed[number] = trace
        version = self._spec(number, task.config, task.generation).version
        self._channel.publish_tasks([number], State.FAILED, trace, version=version, generation=task.generation)

    def _restart_later(self, number: int, task: TaskEntry, delay: float, state: State, trace: str) -> None:
        task.phase, task.due = Phase.RESTARTING, self._clock() + delay
        self._publish([number], state, trace)

    def _publish(self, numbers: Iterable[int], state: State, trace: str | None = None) -> None:
        """Publish a status of the generation with which each task runs, for which it may be a command."""
        by_generation: dict[int, list[int]] = {}
        for number in numbers:
            by_generation.setdefault(self._tasks[number].generation, []).append(number)
        for generation, group in by_generation.items():
            self._channel.publish_tasks(group, state, trace, generation=generation)

    def _kill_hung(self, running: Mapping[int, Launch], state: State) -> None:
        hung = {number: launch for number, launch in running.items() if not launch.future.done()}
        for launch in hung.values():
            self._launcher.cancel(launch.assignment)
        self._wait(lambda: all(launch.future.done() for launch in hung.values()), _KILL_SECONDS)
        if hung:
            self._channel.raise_generation()  # ends processes that still run somewhere
        for number, launch in hung.items():
            outcome = "its process was ended" if launch.future.done() else "its process could not be ended"
            trace = (
                f"The task did not stop within task.shutdown.graceful.timeout.ms ({self._stop_timeout:g} s) and was given up: "
                f"{outcome}."
            )
            log.error("[%s|task-%d] %s", self._name, number, trace)
            self._killed[number] = trace
            self._channel.publish_tasks([number], state, trace)

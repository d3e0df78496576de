"""Runs one connector: its Connector object, its tasks and its status. Level-triggered: it makes real what the config topic says.

Lives on the driver, one thread for each connector, so that a connector that hangs holds up no other.
"""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass

from sluiceway.api import Connector
from sluiceway.config.variables import resolver, with_references
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConnectError, FencedError, trace_of
from sluiceway.herder.reconcile import desired_task_configs
from sluiceway.runtime.task import TaskResult, TaskSpec
from sluiceway.spark.executor import Assignment
from sluiceway.spark.launcher import TaskLauncher
from sluiceway.spark.port import ConnectorPort
from sluiceway.storage.interfaces import ConfigStore
from sluiceway.storage.model import ConnectorEntry, RestartRequest, State, TargetState, TaskId

_RELAUNCHES = 5  # times a task whose process was lost is placed anew within _RELAUNCH_WINDOW, before it is FAILED
_RELAUNCH_WINDOW = 300.0  # seconds
_RELAUNCH_DELAY = 1.0  # seconds before the first placing anew, doubled with each one after it


class Outcome(enum.Enum):
    """Why a runner ended."""

    DONE = "done"
    FENCED = "fenced"
    FAILED = "failed"


@dataclass(slots=True)
class RunningTask:
    """A task that was launched; ``losses`` are the times (monotonic seconds) at which its process was lost."""

    assignment: Assignment
    future: Future[TaskResult]
    losses: list[float]


@dataclass(slots=True)
class LostTask:
    """A task whose process was lost, to be placed anew at ``due`` (monotonic seconds)."""

    assignment: Assignment
    losses: list[float]
    due: float


class ConnectorRunner(threading.Thread):
    """One connector's life on this driver.

    With ``exit_when_idle`` (an Airflow task's driver) it drains and ends when the connector is paused, stopped or deleted;
    without (standalone mode) a paused connector stays in place.
    """

    def __init__(
        self,
        name: str,
        *,
        worker: WorkerConfig,
        config_store: ConfigStore,
        port: ConnectorPort,
        launcher: TaskLauncher,
        worker_id: str,
        exit_when_idle: bool,
        bounded: bool = False,
    ) -> None:
        super().__init__(name=f"connector-{name}", daemon=True)
        self.connector_name = name
        self.outcome: Outcome | None = None
        self._worker = worker
        self._config_store = config_store
        self._port = port
        self._launcher = launcher
        self._worker_id = worker_id
        self._exit_when_idle = exit_when_idle
        self._bounded = bounded
        self._wake = threading.Event()
        self._leaving = False
        self._over = False
        self._connector: Connector | None = None
        self._entry: ConnectorEntry | None = None
        self._tasks: dict[int, RunningTask] = {}
        self._lost_tasks: dict[int, LostTask] = {}
        self._failed_tasks: set[int] = set()
        self._state = State.UNASSIGNED
        self._trace: str | None = None
        self._version: str | None = None
        self._reconfigure = False
        self._restarts: list[RestartRequest] = []
        self._log = logging.LoggerAdapter(logging.getLogger(__name__), {"connector": name})

    # Called from other threads.

    def notify(self) -> None:
        """Say that something changed: the runner looks again at once."""
        self._wake.set()

    def leave(self) -> None:
        """Drain, give the connector up (UNASSIGNED) and end: the driver is told to stop."""
        self._leaving = True
        self.notify()

    def restart(self, request: RestartRequest) -> None:
        """Restart the connector, and its tasks if the request says so."""
        self._restarts.append(request)
        self.notify()

    def request_task_reconfiguration(self) -> None:
        """ConnectorContext: called by the connector when its inputs changed."""
        self._reconfigure = True
        self.notify()

    def raise_error(self, error: BaseException) -> None:
        """ConnectorContext: called by the connector's own threads."""
        self._publish(State.FAILED, trace_of(error))

    # The runner's own thread.

    def run(self) -> None:
        interval = self._worker.duration("sluiceway.heartbeat.interval.ms").total_seconds()
        try:
            self._port.acquire()
            self._log.info("%s holds connector %s as generation %d", self._worker_id, self.connector_name, self._port.generation)
            next_beat = 0.0
            while not self._over:
                self._wake.clear()
                self._step()
                if not self._over and time.monotonic() >= next_beat:
                    next_beat = time.monotonic() + interval
                    if self._state is not State.UNASSIGNED:
                        self._publish(self._state, self._trace)
                if not self._over:
                    self._wake.wait(max(0.0, next_beat - time.monotonic()))
            self.outcome = Outcome.DONE
        except FencedError as error:
            self._log.error("Connector %s: %s Stopping without a commit.", self.connector_name, error)
            self._abandon()
            self.outcome = Outcome.FENCED
        except Exception:  # noqa: BLE001 (the outermost loop of a connector: nothing else would report it)
            self._log.exception("Connector %s: the driver cannot go on", self.connector_name)
            self._abandon()
            self.outcome = Outcome.FAILED
        finally:
            self._port.close()

    def _step(self) -> None:
        """Compare what is wanted with what is, and take the steps between."""
        entry = self._config_store.snapshot().entry(self.connector_name)
        if self._leaving:
            self._give_up()
        elif entry is None:
            self._forget()
        elif self._entry is None or dict(entry.config or {}) != dict(self._entry.config or {}):
            self._stop_all()
            self._begin(entry)
        elif entry.target_state is not self._entry.target_state:
            self._retarget(entry)
        else:
            self._entry = entry
            self._serve_requests()
            self._look_after_tasks()

    def _begin(self, entry: ConnectorEntry) -> None:
        """Start with this config, in the state that is wanted."""
        self._entry = entry
        self._failed_tasks.clear()
        if entry.target_state is TargetState.STARTED:
            self._start_connector(entry)
        elif self._exit_when_idle or entry.target_state is TargetState.STOPPED:
            self._rest(entry)
        else:
            self._start_connector(entry)
            self._port.order_pause(self._tasks)
            self._publish(State.PAUSED)

    def _retarget(self, entry: ConnectorEntry) -> None:
        before, self._entry = self._entry, entry
        assert before is not None  # noqa: S101 (_step begins first)
        self._log.info("Connector %s: target state %s", self.connector_name, entry.target_state.value)
        if entry.target_state is TargetState.STARTED and before.target_state is TargetState.PAUSED and self._connector:
            self._port.order_run(self._tasks)
            self._publish(State.RUNNING)
        elif entry.target_state is TargetState.PAUSED and self._connector and not self._exit_when_idle:
            self._port.order_pause(self._tasks)
            self._publish(State.PAUSED)
        else:
            self._stop_all()
            self._begin(entry)

    def _rest(self, entry: ConnectorEntry) -> None:
        """Nothing runs, and the status says why; an Airflow task's driver ends."""
        if entry.target_state is TargetState.STOPPED:
            self._publish(State.STOPPED)
            for task in self._port.known_tasks():
                self._port.remove_task(task)
        else:
            self._publish(State.PAUSED)
            for task in range(len(entry.task_configs)):
                if task not in self._failed_tasks:
                    self._port.publish_task(task, State.PAUSED, version=self._version)
        self._over = self._exit_when_idle

    def _start_connector(self, entry: ConnectorEntry) -> None:
        """Start the Connector and its tasks; its failure is the connector's status, not this driver's end."""
        try:
            config = self._meant(entry)
            cls = connector_class(config["connector.class"])
            self._version = cls.version()
            connector = cls()
            connector.initialize(self)
            connector.start(config)
            self._connector = connector
            self._publish(State.RUNNING)
            self._start_tasks(entry)
        except FencedError:
            raise
        except Exception as error:  # noqa: BLE001 (a connector's own code: whatever it raises is its failure)
            self._log.exception("Connector %s failed to start", self.connector_name)
            self._publish(State.FAILED, trace_of(error))

    def _meant(self, entry: ConnectorEntry) -> dict[str, str]:
        """Return the connector's config with its references replaced: for the connector alone, never for a topic or the log."""
        return resolver(self._worker).resolve(entry.config or {})

    def _start_tasks(self, entry: ConnectorEntry) -> None:
        assert self._connector is not None  # noqa: S101 (called after it was started)
        config = dict(entry.config or {})
        configs = with_references(config, desired_task_configs(self._connector, self._meant(entry)))
        if entry.inconsistent or [dict(c) for c in entry.task_configs] != [dict(c) for c in configs]:
            self._config_store.put_task_configs(self.connector_name, configs)
        for task in self._port.known_tasks():
            if task >= len(configs):
                self._port.remove_task(task)
        self._launcher.ensure_slots(len(configs))
        for number, task_config in enumerate(configs):
            self._launch(number, {**config, **task_config})

    def _launch(self, number: int, config: Mapping[str, str]) -> None:
        spec = TaskSpec(
            id=TaskId(self.connector_name, number),
            config=config,
            worker=self._worker,
            worker_id=self._worker_id,
            generation=self._port.generation,
            sink=is_sink(connector_class(config["connector.class"])),
            version=self._version,
            bounded=self._bounded,
        )
        assignment = Assignment(spec, self._port.services(spec.id))
        self._place(assignment, [])

    def _place(self, assignment: Assignment, losses: list[float]) -> None:
        future = self._launcher.launch(assignment)
        future.add_done_callback(lambda _: self.notify())
        self._tasks[assignment.spec.id.task] = RunningTask(assignment, future, losses)

    def _look_after_tasks(self) -> None:
        """Take note of tasks that ended; place those anew whose process was lost."""
        for number, task in list(self._tasks.items()):
            if not task.future.done():
                continue
            del self._tasks[number]
            error = task.future.exception()
            if error is not None:
                self._replace_lost(number, task, error)
            elif task.future.result().failed:
                self._failed_tasks.add(number)
                self._log.error("[%s|task-%d] failed; it stays FAILED until restarted", self.connector_name, number)
            else:
                self._log.info("[%s|task-%d] ended after %d records", self.connector_name, number, task.future.result().records)
        for number, lost in list(self._lost_tasks.items()):
            if time.monotonic() >= lost.due:
                del self._lost_tasks[number]
                self._place(Assignment(lost.assignment.spec, self._port.services(lost.assignment.spec.id)), lost.losses)
        if self._bounded and not self._tasks and not self._lost_tasks and self._connector is not None:
            self._end_batch()

    def _replace_lost(self, number: int, task: RunningTask, error: BaseException) -> None:
        now = time.monotonic()
        losses = [*(at for at in task.losses if now - at < _RELAUNCH_WINDOW), now]
        if len(losses) > _RELAUNCHES:
            self._failed_tasks.add(number)
            self._port.publish_task(number, State.FAILED, trace_of(error), version=self._version)
            self._log.error(
                "[%s|task-%d] was lost %d times within %d s: FAILED until restarted",
                self.connector_name, number, len(losses), int(_RELAUNCH_WINDOW),
            )  # fmt: skip
            return
        reason = str(error).partition("\n")[0]
        delay = _RELAUNCH_DELAY * 2 ** (len(losses) - 1)
        self._log.warning(
            "[%s|task-%d] its process was lost (%s); placing it anew in %.0f s", self.connector_name, number, reason, delay
        )
        self._port.publish_task(number, State.UNASSIGNED)
        self._lost_tasks[number] = LostTask(task.assignment, losses, now + delay)
        timer = threading.Timer(delay, self.notify)
        timer.daemon = True
        timer.start()

    def _serve_requests(self) -> None:
        while self._restarts:
            request = self._restarts.pop(0)
            self._log.info("Connector %s: restart requested (%s)", self.connector_name, request)
            self._restart_now(request)
        if self._reconfigure and self._connector is not None and self._entry is not None:
            self._reconfigure = False
            self._lost_tasks.clear()
            self._stop_tasks(self._tasks)
            self._start_tasks(self._entry)

    def _restart_now(self, request: RestartRequest) -> None:
        entry = self._entry
        if entry is None or entry.target_state is not TargetState.STARTED:
            return
        chosen = [n for n in range(len(entry.task_configs)) if not request.only_failed or n in self._failed_tasks]
        if self._state is State.FAILED or (not request.only_failed and request.include_tasks):
            self._publish(State.RESTARTING)
            self._stop_all()
            self._begin(self._config_store.refresh().entry(self.connector_name) or entry)
        elif request.include_tasks:
            self._stop_tasks({n: t for n, t in self._tasks.items() if n in chosen})
            for number in chosen:
                self._failed_tasks.discard(number)
                self._port.publish_task(number, State.RESTARTING)
                self._launch(number, {**(entry.config or {}), **entry.task_configs[number]})

    def _end_batch(self) -> None:
        """A micro-batch is done: give the connector up until the next one."""
        failed = bool(self._failed_tasks)
        self._give_up()
        if failed:
            raise ConnectError(f"Task(s) {sorted(self._failed_tasks)} of connector {self.connector_name} failed; see its status.")

    def _give_up(self) -> None:
        self._stop_all()
        for number in self._port.known_tasks():
            if number not in self._failed_tasks:
                self._port.publish_task(number, State.UNASSIGNED)
        self._publish(State.UNASSIGNED)
        self._over = True

    def _forget(self) -> None:
        """The connector was deleted: drain, then tombstones for everything that the status topic says of it."""
        self._stop_all()
        self._publish(State.UNASSIGNED)
        self._port.remove_connector()
        self._log.info("Connector %s was deleted", self.connector_name)
        self._over = True

    def _stop_all(self) -> None:
        """Stop the tasks, then the Connector."""
        self._lost_tasks.clear()
        self._stop_tasks(self._tasks)
        connector, self._connector = self._connector, None
        if connector is not None:
            try:
                connector.stop()
            except Exception:  # noqa: BLE001 (a connector's own code; it is going anyway)
                self._log.exception("Connector %s failed to stop cleanly", self.connector_name)

    def _stop_tasks(self, tasks: Mapping[int, RunningTask]) -> None:
        """Drain tasks within ``task.shutdown.graceful.timeout.ms``, cancel those that do not come to an end."""
        tasks = dict(tasks)
        if not tasks:
            return
        self._port.order_stop(tasks)
        deadline = time.monotonic() + self._worker.duration("task.shutdown.graceful.timeout.ms").total_seconds()
        while not all(task.future.done() for task in tasks.values()) and time.monotonic() < deadline:
            self._wake.wait(0.1)
            self._wake.clear()
        for number, task in tasks.items():
            if not task.future.done():
                self._log.warning("[%s|task-%d] did not stop in time; cancelling it", self.connector_name, number)
                self._launcher.cancel(task.assignment)
            elif task.future.exception() is None and task.future.result().failed:
                self._failed_tasks.add(number)
            self._tasks.pop(number, None)
        self.notify()  # what the waiting above may have swallowed

    def _abandon(self) -> None:
        for task in self._tasks.values():
            self._launcher.cancel(task.assignment)

    def _publish(self, state: State, trace: str | None = None) -> None:
        self._state, self._trace = state, trace
        version = None if state in (State.UNASSIGNED, State.RESTARTING) else self._version
        self._port.publish_connector(state, trace, version=version)

"""Runs one connector: its Connector object, its tasks and its status. Level-triggered: it makes real what the config topic says.

Lives on the driver, one thread for each connector; the Connector's own code runs on another (``HostedConnector``), so that
one that hangs holds up neither other connectors nor its own heartbeat, and can be deleted.
"""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConnectError, FencedError, trace_of
from sluiceway.herder.restart_plan import plan_restart
from sluiceway.herder.restart_policy import RestartPolicy
from sluiceway.herder.task_plan import plan_tasks
from sluiceway.runtime.task import TaskSpec
from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.model import ConnectorEntry, RestartRequest, State, TargetState, TaskId
from sluiceway.worker.control_channel import ConnectorPort
from sluiceway.worker.status_heartbeat import Announcer
from sluiceway.worker.task_launcher import TaskLauncher
from sluiceway.worker.task_table import TaskTable
from sluiceway.worker.worker_connector import ConnectorLife, News, Started, Wants
from sluiceway.worker.zombie_fencing import fence_earlier_tasks, needs_fencing


class Outcome(enum.Enum):
    """Why a runner ended."""

    DONE = "done"
    FENCED = "fenced"
    FAILED = "failed"


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
        config_store: ConfigBackingStore,
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
        self._patience = worker.duration("task.shutdown.graceful.timeout.ms").total_seconds()
        self._wake = threading.Event()
        self._leaving = False
        self._over = False
        self._entry: ConnectorEntry | None = None
        self._requests: deque[RestartRequest] = deque()
        self._announcer = Announcer(port, worker.duration("sluiceway.heartbeat.interval.ms").total_seconds())
        self._life = ConnectorLife(name, worker, self.notify, self._await)
        self._tasks = self._table({})
        self._moved = 0
        self._log = logging.LoggerAdapter(logging.getLogger(__name__), {"connector": name})

    # Called from other threads.

    @property
    def records(self) -> int:
        """How many records its tasks have moved, those that have ended."""
        return self._moved + self._tasks.records

    def notify(self) -> None:
        """Say that something changed: the runner looks again at once."""
        self._wake.set()

    def leave(self) -> None:
        """Drain, give the connector up (UNASSIGNED) and end: the driver is told to stop."""
        self._leaving = True
        self._port.hurry()
        self.notify()

    def restart(self, request: RestartRequest) -> None:
        """Restart what the request says."""
        self._requests.append(request)
        self.notify()

    # The runner's own thread.

    def run(self) -> None:
        try:
            self._port.acquire()
            self._log.info("%s holds connector %s as generation %d", self._worker_id, self.connector_name, self._port.generation)
            while not self._over:
                self._wake.clear()
                self._step()
                if not self._over:
                    self._announcer.beat()
                    self._wake.wait(min(self._announcer.seconds_left, self._tasks.seconds_left, self._life.seconds_left))
            self.outcome = Outcome.DONE
        except FencedError as error:
            self._log.error("Connector %s: %s Stopping without a commit.", self.connector_name, error)
            self._tasks.abandon()
            self.outcome = Outcome.FENCED
        except Exception:  # noqa: BLE001 (the outermost loop of a connector: nothing else would report it)
            self._log.exception("Connector %s: the driver cannot go on", self.connector_name)
            self._tasks.abandon()
            self.outcome = Outcome.FAILED
        finally:
            self._port.close()

    def _step(self) -> None:
        """Compare what is wanted with what is, and take the steps between."""
        entry = self._wanted()
        if self._leaving:
            self._give_up()
        elif entry is None:
            self._forget()
        elif self._entry is None or dict(entry.config or {}) != dict(self._entry.config or {}):
            self._stop_all()
            self._begin(entry)
        elif entry.target_state is not self._entry.target_state:
            self._retarget(self._entry.target_state, entry)
        else:
            self._entry = entry
            for news in self._life.news():
                self._take(entry, news)
            if self._life.outdated:
                self._log.info("Connector %s is restarted: values of its config providers hold no longer", self.connector_name)
                self._requests.append(RestartRequest(self.connector_name, include_tasks=True))
            while self._requests:
                self._serve(entry, self._requests.popleft())
            self._tasks.look_after()
            if self._bounded and not self._tasks.at_work:
                self._end_batch()

    def _wanted(self) -> ConnectorEntry | None:
        return self._config_store.snapshot().entry(self.connector_name)

    def _begin(self, entry: ConnectorEntry) -> None:
        """Start with this config, in the state that is wanted."""
        self._entry = entry
        self._requests.clear()
        resting = entry.target_state is not TargetState.STARTED
        if entry.target_state is TargetState.STOPPED or (resting and self._exit_when_idle):
            self._rest(entry)
            return
        config = dict(entry.config or {})
        self._announcer.version = None
        try:
            self._moved, self._tasks = self.records, self._table(config)
        except ConnectError as error:
            self._announcer.say(State.FAILED, trace_of(error))
            return
        self._tasks.paused = resting
        self._announcer.say(State.UNASSIGNED)
        self._life.begin(config)

    def _retarget(self, before: TargetState, entry: ConnectorEntry) -> None:
        self._log.info("Connector %s: target state %s", self.connector_name, entry.target_state.value)
        stays = self._life.begun and not self._exit_when_idle and before is not TargetState.STOPPED
        if not stays or entry.target_state is TargetState.STOPPED:
            self._stop_all()
            self._begin(entry)
            return
        self._entry = entry
        if entry.target_state is TargetState.PAUSED:
            self._tasks.pause()
        else:
            self._tasks.resume()
        if self._life.started and not self._life.broken:
            self._announcer.say(self._at_work(entry))

    def _rest(self, entry: ConnectorEntry) -> None:
        """Nothing runs, and the status says why; an Airflow task's driver ends."""
        if entry.target_state is TargetState.STOPPED:
            self._announcer.say(State.STOPPED)
            for task in self._port.known_tasks():
                self._port.remove_task(task)
        else:
            self._announcer.say(State.PAUSED)
            self._tasks.settle(range(len(entry.task_configs)), State.PAUSED, self._announcer.version)
        self._over = self._exit_when_idle

    # The Connector, and the tasks that it wants.

    def _take(self, entry: ConnectorEntry, news: News) -> None:
        self._announcer.version = self._life.version
        if isinstance(news, Started):
            self._announcer.say(self._at_work(entry))
        elif isinstance(news, Wants):
            try:
                self._apply(entry, news.configs)
            except FencedError:
                raise
            except ConnectError as error:
                self._life.ask_again()
                self._failed(error)
        else:
            self._failed(news.error)

    def _failed(self, error: BaseException) -> None:
        """The connector's failure is its status, not this driver's end; its tasks go on."""
        self._log.error("Connector %s failed", self.connector_name, exc_info=error)
        self._announcer.say(State.FAILED, trace_of(error))

    def _apply(self, entry: ConnectorEntry, configs: list[dict[str, str]]) -> None:
        """Make the tasks that are wanted: those that stay the same go on keep_unchanged."""
        up_to_date = entry.applied_config == entry.config and not entry.inconsistent
        if not up_to_date or [dict(each) for each in entry.task_configs] != configs:
            self._config_store.put_task_configs(self.connector_name, configs)
        connector = dict(entry.config or {})
        wanted = [{**connector, **config} for config in configs]
        plan = plan_tasks(self._tasks.configs, wanted, keep_unchanged=not self._must_fence())
        self._tasks.stop([*plan.gone, *plan.changed])
        for number in {*plan.gone, *self._port.known_tasks()}:
            if number >= len(wanted):
                self._port.remove_task(number)
        if plan.new:
            self._launcher.ensure_slots(len(wanted), self._still_wanted)
        self._tasks.start({number: wanted[number] for number in (*plan.changed, *plan.new)})
        self._life.contented()
        if not self._life.broken:
            self._announcer.say(self._at_work(entry))

    def _must_fence(self) -> bool:
        """Whether all tasks have to make way, since those of earlier configs are shut out together (exactly-once)."""
        entry = self._wanted()
        return entry is not None and needs_fencing(self._worker, entry)

    def _still_wanted(self) -> bool:
        """Beat, and say whether the connector is still to be run as it was: for what takes long."""
        self._announcer.beat()
        now, before = self._wanted(), self._entry
        same = now is not None and before is not None and (now.config, now.target_state) == (before.config, before.target_state)
        return same and not self._leaving

    def _at_work(self, entry: ConnectorEntry) -> State:
        return State.RUNNING if entry.target_state is TargetState.STARTED else State.PAUSED

    def _serve(self, entry: ConnectorEntry, request: RestartRequest) -> None:
        if entry.target_state is TargetState.STOPPED:
            return
        plan = plan_restart(request, self._announcer.state, self._tasks.states())
        self._log.info("Connector %s: restart requested (%s): %s", self.connector_name, request, plan)
        if plan.connector:
            self._announcer.say(State.RESTARTING)
            self._life.end(self._patience)
        self._tasks.restart(plan.tasks)
        if plan.connector:
            self._life.begin(dict(entry.config or {}))

    # Tasks.

    def _table(self, config: Mapping[str, str]) -> TaskTable:
        return TaskTable(
            self.connector_name,
            port=self._port,
            launcher=self._launcher,
            policy=RestartPolicy.of(config, self._worker),
            spec=self._spec,
            fence=lambda: fence_earlier_tasks(self._worker, self._config_store, self.connector_name),
            patience=self._patience,
            wait=self._await,
            notify=self.notify,
        )

    def _spec(self, number: int, config: Mapping[str, str]) -> TaskSpec:
        return TaskSpec(
            id=TaskId(self.connector_name, number),
            config=config,
            worker=self._worker,
            worker_id=self._worker_id,
            generation=self._port.generation,
            sink=is_sink(connector_class(config["connector.class"])),
            version=self._announcer.version,
            bounded=self._bounded,
        )

    # Ends.

    def _end_batch(self) -> None:
        """A micro-batch is done, or cannot be begun: give the connector up until the next one."""
        if self._life.broken:
            raise ConnectError(f"Connector {self.connector_name} failed; see its status.")
        if not self._life.settled:
            return
        self._give_up()
        if self._tasks.failed:
            raise ConnectError(f"Task(s) {self._tasks.failed} of connector {self.connector_name} failed; see its status.")

    def _give_up(self) -> None:
        self._stop_all()
        self._tasks.settle(self._port.known_tasks(), State.UNASSIGNED)
        self._announcer.say(State.UNASSIGNED)
        self._over = True

    def _forget(self) -> None:
        """The connector was deleted: drain, then tombstones for everything that the status topic says of it."""
        self._stop_all()
        self._announcer.say(State.UNASSIGNED)
        self._port.remove_connector()
        self._log.info("Connector %s was deleted", self.connector_name)
        self._over = True

    def _stop_all(self) -> None:
        """Stop the tasks, then the Connector."""
        self._tasks.stop(self._tasks.configs)
        self._life.end(self._patience)

    def _await(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until a condition holds, beating meanwhile; whether it holds after at most so many seconds."""
        deadline = time.monotonic() + seconds
        while not condition() and (left := deadline - time.monotonic()) > 0:
            self._wake.wait(min(left, self._announcer.seconds_left))
            self._wake.clear()
            self._announcer.beat()
        self.notify()  # what the waiting may have swallowed
        return condition()

"""Runs one connector: keeps its Connector object, its tasks and its status as the config topic wants them.

Level-triggered: each step compares the current config and target state with what runs. Runs on the driver, one thread for each
connector. The Connector's own code runs on another thread (``ConnectorThread``), so that a call that hangs blocks neither
other connectors nor this connector's heartbeat, and the connector can still be deleted.
"""

from __future__ import annotations

import enum
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from sluiceway.config.connector import without_marks
from sluiceway.config.intervals import IntervalRun
from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConnectError, FencedError, trace_of
from sluiceway.herder.intervals import reads_in_order
from sluiceway.herder.moved import needs_driver
from sluiceway.herder.restart_plan import plan_restart
from sluiceway.herder.restart_policy import RestartPolicy
from sluiceway.herder.task_plan import plan_tasks
from sluiceway.runtime.task import TaskSpec
from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.interval_ledger import read_ledger
from sluiceway.storage.model import ConnectorEntry, RestartRequest, State, TargetState, TaskId
from sluiceway.telemetry.tracing import CONNECTOR, span
from sluiceway.worker.connect_workers import RunByConnectError
from sluiceway.worker.control_channel import ControlChannel
from sluiceway.worker.status_heartbeat import StatusHeartbeat
from sluiceway.worker.task_launcher import TaskLauncher
from sluiceway.worker.task_table import TaskTable
from sluiceway.worker.worker_connector import Event, Started, TaskConfigs, WorkerConnector
from sluiceway.worker.zombie_fencing import fence_earlier_tasks, needs_fencing

_VERBS = {TargetState.STARTED: "resume", TargetState.PAUSED: "pause", TargetState.STOPPED: "stop"}


class RunnerOutcome(enum.Enum):
    """Result of a runner."""

    DONE = "done"
    FENCED = "fenced"
    FAILED = "failed"


class ConnectorRunner:
    """Runs one connector on this driver, on a thread that it has (``Thread``'s private names differ by Python version).

    Args:
        name: the connector's name in the config store.
        worker: the worker's config.
        config_store: holds the connector's config, target state and task configs.
        channel: publishes statuses and carries commands to the tasks.
        launcher: starts tasks.
        worker_id: identifies this driver in status records.
        exit_when_idle: True for an Airflow task's driver, which ends when the connector is paused, stopped or deleted; False
            for standalone mode, where a paused connector keeps its tasks.
        bounded: True for a micro-batch, which ends once the tasks have moved all records that were available at their start.
    """

    def __init__(
        self,
        name: str,
        *,
        worker: WorkerConfig,
        config_store: ConfigBackingStore,
        channel: ControlChannel,
        launcher: TaskLauncher,
        worker_id: str,
        exit_when_idle: bool,
        bounded: bool = False,
    ) -> None:
        self.connector_name = name
        self.bounded = bounded
        self.outcome: RunnerOutcome | None = None
        self.on_end: Callable[[], None] = lambda: None
        """Called on the runner's thread as its last act."""
        self.failure: str | None = None
        """The message of the error with which the runner ended."""
        self.batch_ended = False
        """True once a micro-batch has moved all records that were available at its start."""
        self._worker = worker
        self._config_store = config_store
        self._channel = channel
        self._launcher = launcher
        self._worker_id = worker_id
        self._exit_when_idle = exit_when_idle
        self._stop_timeout = worker.duration("task.shutdown.graceful.timeout.ms").total_seconds()
        self._wake = threading.Event()
        self._leaving = self._done = False
        self._leaving_trace: str | None = None
        self._entry: ConnectorEntry | None = None
        self._requests: deque[RestartRequest] = deque()
        self._heartbeat = StatusHeartbeat(channel, worker.duration("sluiceway.heartbeat.interval.ms").total_seconds())
        self._connector = WorkerConnector(name, worker, channel.source_offsets, self.notify, self._wait_until)
        self._earlier_records, self._tasks = 0, self._table({})
        self._interval: Mapping[str, str] = {}
        self._log = logging.LoggerAdapter(logging.getLogger(__name__), {"connector": name})
        self._thread = threading.Thread(target=self._run, name=f"connector-{name}", daemon=True)

    # Called from other threads.

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def records(self) -> int:
        """Number of records that the connector's ended tasks have moved."""
        return self._earlier_records + self._tasks.records

    def notify(self) -> None:
        """Make the runner take its next step at once, because something has changed."""
        self._wake.set()

    def leave(self, trace: str | None = None) -> None:
        """Drain, release the connector (UNASSIGNED, with ``trace``) and end: this driver stops, or another one runs it."""
        self._leaving, self._leaving_trace = True, trace
        self._channel.stop_waiting()
        self.notify()

    def restart(self, request: RestartRequest) -> None:
        """Queue a restart request for the runner's next step."""
        self._requests.append(request)
        self.notify()

    # The runner's own thread.

    def _run(self) -> None:
        try:
            self._channel.acquire()
            self._log.info(
                "Connector %s is run by %s as generation %d", self.connector_name, self._worker_id, self._channel.generation
            )
            while not self._done:
                self._wake.clear()
                self._channel.verify()
                self._step()
                if not self._done:
                    self._heartbeat.beat()
                    self._wake.wait(self._seconds_left)
            self.outcome = RunnerOutcome.DONE
        except FencedError as error:
            self.failure = str(error)
            self._yield(error)
            self.outcome = RunnerOutcome.FENCED
        except Exception as error:  # noqa: BLE001 (the thread's outermost frame: nothing else would report the error)
            self.failure = str(error)
            self._log.exception("Connector %s: this driver stops running it because of an error", self.connector_name)
            self._tasks.abandon()
            self.outcome = RunnerOutcome.FAILED
        finally:
            self._channel.close()
            self.on_end()

    @property
    def _seconds_left(self) -> float:
        return min(each.seconds_left for each in (self._heartbeat, self._tasks, self._connector, self._channel))

    def _step(self) -> None:
        """Compare the config store with what runs, and act on the first difference."""
        entry = self._current_entry()
        if self._leaving:
            with self._span("release"):
                self._release()
        elif entry is None:
            with self._span("delete"):
                self._clean_up_deleted()
        elif self._entry is None or _differs(entry, self._entry):
            with self._span("begin" if self._entry is None else "change config"):
                self._stop_all()
                self._begin(entry)
        elif entry.target_state is not self._entry.target_state:
            with self._span(_VERBS[entry.target_state]):
                self._retarget(self._entry.target_state, entry)
        elif self._ends_at_rest(entry):  # its move has ended
            self._done = True
        else:
            self._continue(entry)

    def _continue(self, entry: ConnectorEntry) -> None:
        """Serve what has happened while the config and the target state stayed the same."""
        self._entry = entry
        for event in self._connector.events():
            self._handle(entry, event)
        if self._connector.expired:
            self._log.info("Connector %s restarts because values of its config providers have expired", self.connector_name)
            self._requests.append(RestartRequest(self.connector_name, include_tasks=True))
        while self._requests:
            with self._span("restart"):
                self._serve_restart(entry, self._requests.popleft())
        self._tasks.check()
        if self._heartbeat.state is _active_state(entry):
            self._publish_active(entry)
        self._remove_late_statuses(entry)
        if self.bounded and not self._tasks.active:
            self._end_batch()

    def _span(self, name: str) -> AbstractContextManager[object]:
        return span(f"connector {name}", {CONNECTOR: self.connector_name})

    def _current_entry(self) -> ConnectorEntry | None:
        return self._config_store.snapshot().entry(self.connector_name)

    def _begin(self, entry: ConnectorEntry) -> None:
        """Start the connector with this config, or publish why it does not run."""
        self._entry = entry
        self._requests.clear()
        paused = entry.target_state is not TargetState.STARTED
        if entry.target_state is TargetState.STOPPED or (paused and self._exit_when_idle):
            self._publish_idle(entry)
            return
        config = dict(entry.config or {})
        self._heartbeat.version = None
        try:
            self._earlier_records, self._tasks = self.records, self._table(config)
            self._interval = self._interval_keys(config) if self.bounded else {}
        except ConnectError as error:
            self._heartbeat.set(State.FAILED, trace_of(error))
            return
        self._tasks.paused = paused
        self._heartbeat.set(State.UNASSIGNED)
        self._connector.start(config)

    def _interval_keys(self, config: Mapping[str, str]) -> dict[str, str]:
        """Return the keys of the interval that this batch moves with the connector's own offsets; none if it moves none."""
        if not reads_in_order(config):
            return {}
        with self._channel.source_offsets({}) as store:
            running = read_ledger(store, self.connector_name).running
        return {} if running is None else IntervalRun(self.connector_name, running.interval, running.attempt).keys()

    def _retarget(self, before: TargetState, entry: ConnectorEntry) -> None:
        self._log.info("Connector %s: target state is now %s", self.connector_name, entry.target_state.value)
        in_place = self._connector.exists and not self._exit_when_idle and before is not TargetState.STOPPED
        if not in_place or entry.target_state is TargetState.STOPPED:
            self._stop_all()
            self._begin(entry)
            return
        self._entry = entry
        if entry.target_state is TargetState.PAUSED:
            self._tasks.pause()
        else:
            self._tasks.resume()
        self._publish_active(entry)

    def _publish_active(self, entry: ConnectorEntry) -> None:
        """Publish that the connector runs or is paused, and what it waits for."""
        if self._connector.started and not self._connector.failed:
            self._heartbeat.set(_active_state(entry), self._connector.waits.text)

    def _publish_idle(self, entry: ConnectorEntry) -> None:
        """Publish STOPPED or PAUSED for a connector that does not run. An Airflow task's driver then ends."""
        if entry.target_state is TargetState.STOPPED:
            self._heartbeat.set(State.STOPPED)
            for task in self._channel.known_tasks():
                self._channel.remove_task(task)
        else:
            self._heartbeat.set(State.PAUSED)
            self._tasks.publish_stopped(range(len(entry.task_configs)), State.PAUSED, self._heartbeat.version)
        self._done = self._ends_at_rest(entry)

    def _ends_at_rest(self, entry: ConnectorEntry) -> bool:
        """Return whether this driver ends because the connector does not run. It stays for one that a move will start."""
        return self._exit_when_idle and not needs_driver(entry)

    # The Connector object and its task configs.

    def _handle(self, entry: ConnectorEntry, event: Event) -> None:
        self._heartbeat.version = self._connector.version
        if isinstance(event, Started):
            self._publish_active(entry)
        elif isinstance(event, TaskConfigs):
            try:
                self._apply_task_configs(entry, event.configs)
            except FencedError:
                raise
            except ConnectError as error:
                self._connector.retry_task_configs()
                self._failed(error)
        else:
            self._failed(event.error)

    def _failed(self, error: BaseException) -> None:
        """Publish the connector's failure. Its tasks and this driver keep running, as in Connect."""
        self._log.error("Connector %s failed", self.connector_name, exc_info=error)
        self._heartbeat.set(State.FAILED, trace_of(error))

    def _apply_task_configs(self, entry: ConnectorEntry, configs: list[dict[str, str]]) -> None:
        """Store new task configs, and start and stop tasks accordingly. Tasks whose config is unchanged keep running."""
        up_to_date = entry.applied_config == entry.config and not entry.inconsistent
        if not up_to_date or [dict(each) for each in entry.task_configs] != configs:
            self._config_store.put_task_configs(self.connector_name, configs)
        connector = dict(entry.config or {})
        wanted = [{**connector, **self._interval, **config} for config in configs]
        plan = plan_tasks(self._tasks.configs, wanted, keep_unchanged=not self._must_fence())
        self._tasks.stop([*plan.gone, *plan.changed])
        for number in {*plan.gone, *self._channel.known_tasks()}:
            if number >= len(wanted):
                self._channel.remove_task(number)
        self._tasks.start({number: wanted[number] for number in (*plan.changed, *plan.new)})
        self._connector.reset_backoff()
        self._publish_active(entry)

    def _remove_late_statuses(self, entry: ConnectorEntry) -> None:
        """Remove statuses of tasks that are gone: one that was canceled as it started may write RUNNING once more."""
        for number in self._channel.known_tasks():
            if number >= len(entry.task_configs) and number not in self._tasks.configs:
                self._channel.remove_task(number)

    def _must_fence(self) -> bool:
        """Return True if exactly-once requires all tasks to stop, because all earlier ones are fenced together."""
        entry = self._current_entry()
        return entry is not None and needs_fencing(self._worker, entry)

    def _serve_restart(self, entry: ConnectorEntry, request: RestartRequest) -> None:
        if entry.target_state is TargetState.STOPPED:
            return
        plan = plan_restart(request, self._heartbeat.state, self._tasks.states())
        self._log.info("Connector %s: restart requested (%s): %s", self.connector_name, request, plan)
        if plan.connector:
            self._heartbeat.set(State.RESTARTING)
            self._connector.stop(self._stop_timeout)
        self._tasks.restart(plan.tasks)
        if plan.connector:
            self._connector.start(dict(entry.config or {}))

    # Tasks.

    def _table(self, config: Mapping[str, str]) -> TaskTable:
        return TaskTable(
            self.connector_name,
            channel=self._channel,
            launcher=self._launcher,
            policy=RestartPolicy.of(config, self._worker),
            spec=self._spec,
            fence=lambda: fence_earlier_tasks(self._worker, self._config_store, self.connector_name),
            stop_timeout=self._stop_timeout,
            slots_timeout=self._worker.duration("sluiceway.slots.timeout.ms").total_seconds(),
            heartbeat_timeout=self._worker.duration("sluiceway.heartbeat.timeout.ms").total_seconds(),
            wait=self._wait_until,
            notify=self.notify,
        )

    def _spec(self, number: int, config: Mapping[str, str], generation: int) -> TaskSpec:
        return TaskSpec(
            id=TaskId(self.connector_name, number),
            config=config,
            worker=self._worker,
            worker_id=self._worker_id,
            generation=generation,
            sink=is_sink(connector_class(config["connector.class"])),
            version=self._heartbeat.version,
            bounded=self.bounded,
        )

    # Shutdown.

    def _yield(self, error: FencedError) -> None:
        """End what runs, because another process runs the connector now.

        Another driver has fenced the tasks. Kafka Connect's workers have not: a sink would repeat what it has not committed.
        """
        if isinstance(error, RunByConnectError):
            self._log.error("Connector %s: %s Stopping after a last commit.", self.connector_name, error)
            try:
                self._tasks.release()
            except ConnectError as failure:
                self._log.warning("Connector %s: its tasks end without a commit: %s", self.connector_name, failure)
                self._tasks.abandon()
        else:
            self._log.error("Connector %s: %s Stopping without a commit.", self.connector_name, error)
            self._tasks.abandon()

    def _end_batch(self) -> None:
        """Release the connector after a micro-batch. Raises ConnectError if the connector or a task failed."""
        if self._connector.failed or (not self._connector.exists and self._heartbeat.state is State.FAILED):
            self._stop_all()
            raise ConnectError(f"Connector {self.connector_name} failed; see its status for the trace.")
        if not self._connector.settled:
            return
        if error := self._connector.waits.refused():
            self._stop_all()
            self._failed(error)
            raise error
        self._release()
        self.batch_ended = not self._tasks.failed
        if failed := self._tasks.failed:
            reasons = "; ".join(f"task {number} failed: {trace.partition(chr(10))[0]}" for number, trace in failed.items())
            raise ConnectError(f"Connector {self.connector_name}: {reasons}")

    def _release(self) -> None:
        self._stop_all()
        self._tasks.publish_stopped(self._channel.known_tasks(), State.UNASSIGNED, trace=self._leaving_trace)
        self._heartbeat.set(State.UNASSIGNED, self._leaving_trace)
        self._done = True

    def _clean_up_deleted(self) -> None:
        """Drain a deleted connector and remove its statuses from the status topic."""
        self._stop_all()
        self._heartbeat.set(State.UNASSIGNED)
        self._channel.remove_connector()
        self._log.info("Connector %s was deleted", self.connector_name)
        self._done = True

    def _stop_all(self) -> None:
        """Stop the tasks, then the Connector."""
        self._tasks.stop(self._tasks.configs)
        self._connector.stop(self._stop_timeout)

    def _wait_until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait at most ``seconds`` until a condition is true, sending heartbeats; return the condition's value."""
        deadline = time.monotonic() + seconds
        while not condition() and (left := deadline - time.monotonic()) > 0:
            self._wake.wait(min(left, self._heartbeat.seconds_left))
            self._wake.clear()
            self._channel.verify()
            self._heartbeat.beat()
        self.notify()  # the wait may have consumed a notification that was meant for the next step
        return condition()


def _active_state(entry: ConnectorEntry) -> State:
    return State.RUNNING if entry.target_state is TargetState.STARTED else State.PAUSED


def _differs(entry: ConnectorEntry, before: ConnectorEntry) -> bool:
    """Return whether what runs has changed. An entry stays the same object until something of it changes."""
    return entry is not before and without_marks(entry.config or {}) != without_marks(before.config or {})

"""Runs many tasks in one Python worker process of an executor, each on a thread of its own.

The tasks share what a process needs only once: the reader of the config and status topics, the writer of statuses, and the
stores of source offsets. Their producers and consumers of records are their own, as are their errors: a task that fails ends its
thread only. A task that hangs, or ends the process, takes the other tasks of its host with it, and the driver starts those again
elsewhere.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

from sluiceway.api.task import TopicPartition
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, trace_of
from sluiceway.herder.loggers import LOGGER_LEVEL, Loggers
from sluiceway.kafka.admin import beginning_offsets, end_offsets
from sluiceway.kafka.clients import admin_client
from sluiceway.kafka.kafka_based_log import LogRecord, TopicTail
from sluiceway.package_imports import import_packages_first
from sluiceway.runtime.task import TaskCommand, TaskResult, TaskServices, TaskSpec
from sluiceway.storage.codec import HOST_PREFIX
from sluiceway.storage.config_state import ConfigState
from sluiceway.storage.model import TaskId
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.executor import TaskAssignment, run_assignment, task_prefix
from sluiceway.worker.log_context import log_prefix
from sluiceway.worker.task_commands import COMMAND_OF, command_keys
from sluiceway.worker.task_host.messages import (
    HostedTask,
    Orders,
    Report,
    config_digest,
    decode_orders,
    encode_report,
    orders_key,
    report_key,
)
from sluiceway.worker.task_host.shared_control import SharedTaskControl
from sluiceway.worker.task_host.shared_services import SharedOffsets, SharedStatuses

log = logging.getLogger(__name__)

_ENDS = (TaskCommand.STOP, TaskCommand.ABANDON)
_POLL_SECONDS = 1.0
_REPORT_SECONDS = 2.0
_SWITCH_SECONDS = 0.0005
"""The wait of a thread for Python's interpreter while another one computes. Python's default is 5 ms. A task waits as long
after each of its system calls, so beside a busy task it would need some 50 ms for a record."""
_SHARE_SECONDS = 5.0  # over which a share is measured


@dataclass(frozen=True, slots=True)
class HostAssignment:
    """A task host to run, the ``Work`` of a process.

    ``positions`` are the offsets of the status topic's partitions from which it reads its orders.
    """

    name: str
    worker: WorkerConfig
    worker_id: str
    positions: Mapping[TopicPartition, int]
    job: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def id(self) -> TaskId:
        return TaskId(self.name, 0)

    @property
    def title(self) -> str:
        return f"Connect task host {self.name}"

    @property
    def log_prefix(self) -> str:
        return f"[host {self.name}] "

    def run(self) -> TaskResult:
        with ExitStack() as resources:
            resources.callback(sys.setswitchinterval, sys.getswitchinterval())
            sys.setswitchinterval(_SWITCH_SECONDS)
            import_packages_first()
            TaskHost(self, resources).run()
        return TaskResult(self.id)


class TaskHost:
    """The process's main thread: reads orders and commands, starts tasks and reports. Tasks run on other threads."""

    def __init__(self, assignment: HostAssignment, resources: ExitStack) -> None:
        worker = assignment.worker
        self._assignment = assignment
        self._worker = worker
        self._orders_key = orders_key(assignment.name)
        store = KafkaStatusBackingStore(worker, reading=False)
        store.start()
        resources.callback(store.stop)
        self._store = store
        interval = worker.duration("sluiceway.heartbeat.interval.ms").total_seconds()
        self._last: dict[bytes, LogRecord] = {}
        """The last status record of each key, because a command may be read before the order that starts its task."""
        self._statuses = SharedStatuses(assignment.name, assignment.worker_id, store, interval, self._last.get)
        self._offsets = SharedOffsets(worker, resources)
        configs, admin = TopicPartition(worker.config_topic, 0), admin_client(worker)
        start = beginning_offsets(admin, [configs])
        self._levels_from = end_offsets(admin, [configs])[configs]  # levels set earlier are not applied, as in other processes
        self._tail = TopicTail(worker, f"{worker.group_id}-commands", {**assignment.positions, **start})
        resources.callback(self._tail.close)
        self._configs = ConfigState()
        self._loggers = Loggers()
        self._orders = Orders()
        self._controls: dict[bytes, dict[str, SharedTaskControl]] = defaultdict(dict)
        self._of_connector: dict[str, dict[str, SharedTaskControl]] = defaultdict(dict)
        self._running: dict[str, SharedTaskControl] = {}
        self._cpu = CpuMeter()
        self._reporting = threading.Lock()
        self._ended: dict[str, TaskResult] = {}
        self._reported = Report()
        self._report_due = 0.0

    def run(self) -> None:
        """Follow orders until they say to end. Tasks that still run then are abandoned."""
        log.info("Ready")
        try:
            while not self._orders.end:
                for record in self._tail.poll(_POLL_SECONDS):
                    self._read(record)
                self._follow_orders()
                self._statuses.beat()
                if time.monotonic() >= self._report_due:
                    self._report()
        finally:
            for control in list(self._running.values()):
                control.receive(TaskCommand.ABANDON)
        log.info("Ended")

    # Records.

    def _read(self, record: LogRecord) -> None:
        if record.topic == self._worker.config_topic:
            self._read_config(record)
        elif record.key == self._orders_key and record.value is not None:
            self._orders = decode_orders(record.value)
        elif record.key is not None and (record.key in self._controls or not record.key.startswith(HOST_PREFIX.encode())):
            self._last[record.key] = record
            for control in list(self._controls.get(record.key, {}).values()):
                control.read(record)

    def _read_config(self, record: LogRecord) -> None:
        change = self._configs.apply(record.offset, record.key, record.value, record.timestamp)
        if change is None:
            return
        for control in list(self._of_connector.get(change.connector, {}).values()):
            control.read(record)
        if change.kind == LOGGER_LEVEL and record.offset >= self._levels_from:
            self._loggers.apply_cluster_level(change.connector, self._configs.snapshot().logger_levels[change.connector])

    # Orders.

    def _follow_orders(self) -> None:
        wanted = self._orders.tasks
        for job, control in list(self._running.items()):
            if job not in wanted:
                control.receive(TaskCommand.ABANDON)
        with self._reporting:
            self._ended = {job: result for job, result in self._ended.items() if job in wanted}
            known = {*self._ended, *self._running}
        for job, task in wanted.items():
            if job not in known and task.config_offset <= self._configs.snapshot().offset:
                self._start(task)

    def _start(self, task: HostedTask) -> None:
        entry = self._configs.snapshot().entry(task.id.connector)
        number = task.id.task
        if entry is None or number >= len(entry.task_configs):
            self._refuse(task, "the connector, or this task of it, no longer exists")
            return
        config = {**(entry.config or {}), **entry.task_configs[number]}
        if config_digest(config) != task.config_digest:
            self._refuse(task, "its config has changed in the meantime")
            return
        spec = TaskSpec(
            id=task.id,
            config=config,
            worker=self._worker,
            worker_id=self._assignment.worker_id,
            generation=task.generation,
            sink=task.sink,
            version=task.version,
            bounded=task.bounded,
        )
        control = SharedTaskControl(spec, COMMAND_OF[entry.target_state], lambda: self._statuses.end(task.id))
        for key in command_keys(task.id):
            self._controls[key][task.job] = control
            last = self._last.get(key)
            if last is not None and last.offset >= task.positions.get(last.partition, 0):
                control.read(last)
        self._of_connector[task.id.connector][task.job] = control
        with self._reporting:
            self._running[task.job] = control
        assignment = TaskAssignment(spec, _HostServices(self, control), task.job)
        threading.Thread(target=self._run_task, args=(assignment, control), name=f"task-{task.id}", daemon=True).start()

    def _refuse(self, task: HostedTask, why: str) -> None:
        """Report a task as lost through no fault of its own: the driver will learn of the change that this host has read."""
        self._end(task.job, TaskResult(task.id, lost=True, second_attempt=True, trace=f"It was not started, because {why}"))

    def _run_task(self, assignment: TaskAssignment, control: SharedTaskControl) -> None:
        """Run a task to its end, on the calling thread."""
        with log_prefix(task_prefix(assignment.id)):
            self._cpu.enter(assignment.job)
            try:
                result = run_assignment(assignment, gives_up=lambda: control.command() in _ENDS)
            except Exception as error:  # the thread's outermost frame
                log.exception("The task's thread ended with an error")
                result = TaskResult(assignment.id, failed=True, trace=trace_of(error))
            finally:
                self._cpu.leave(assignment.job)
                self._statuses.end(assignment.id)
            self._end(assignment.job, result)

    def _end(self, job: str, result: TaskResult) -> None:
        with self._reporting:
            self._ended[job] = result
            self._running.pop(job, None)
        for key in command_keys(result.id):
            self._controls[key].pop(job, None)
        self._of_connector[result.id.connector].pop(job, None)
        self._report()

    # Reports.

    def _report(self) -> None:
        """Write the report if it has changed. If that fails, the next one, some seconds later, says the same."""
        self._report_due = time.monotonic() + _REPORT_SECONDS
        with self._reporting:
            report = Report({job: self._cpu.share(job) for job in self._running}, dict(self._ended))
            if report == self._reported:
                return
            try:
                self._store.put_message(report_key(self._assignment.name), encode_report(report))
                self._reported = report
            except ConnectError as error:
                log.warning("Cannot write the report of this host; trying again: %s", error)

    def services(self, spec: TaskSpec, control: SharedTaskControl) -> TaskServices:
        """Return a task's connections, which are this host's."""
        offsets = None if spec.sink else self._offsets.store(spec.config)
        return TaskServices(control=control, reporter=self._statuses.reporter(spec), offsets=offsets)


@dataclass(frozen=True, slots=True)
class _HostServices:
    """Implements ``ServicesFactory`` for a task that this process runs."""

    host: TaskHost
    control: SharedTaskControl

    def open(self, spec: TaskSpec) -> TaskServices:
        return self.host.services(spec, self.control)


@dataclass(slots=True)
class _Use:
    clock: int
    cpu: float
    since: float
    share: float = 0.0


class CpuMeter:
    """The share of a core that each task's own thread uses. Thread-safe.

    The threads of its Kafka clients are not counted, nor are those that a connector starts: what tasks contend for is Python's
    interpreter, in which a task's own thread spends most of its time.
    """

    def __init__(self) -> None:
        self._uses: dict[str, _Use] = {}

    def enter(self, job: str) -> None:
        """Count the calling thread as the task's."""
        clock = time.pthread_getcpuclockid(threading.get_ident())
        self._uses[job] = _Use(clock, time.clock_gettime(clock), time.monotonic())

    def leave(self, job: str) -> None:
        """Count it no longer. The thread must call this before it ends."""
        self._uses.pop(job, None)

    def share(self, job: str) -> float:
        """Return the share of a core that a task has used lately, in steps of 0.05; 0 for one that does not run yet."""
        use = self._uses.get(job)
        if use is None:
            return 0.0
        now = time.monotonic()
        if now - use.since >= _SHARE_SECONDS:
            try:
                cpu = time.clock_gettime(use.clock)
            except OSError:  # the thread has just ended
                return 0.0
            use.share, use.cpu, use.since = (cpu - use.cpu) / (now - use.since), cpu, now
        return round(use.share * 20) / 20

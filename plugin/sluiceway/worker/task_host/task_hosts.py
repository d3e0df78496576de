"""Launches small tasks in task hosts, and all others in processes of their own. Runs on the driver."""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from sluiceway.config.connector import TASK_ISOLATION
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConnectError, DataError
from sluiceway.runtime.task import TaskResult
from sluiceway.storage.factory import Stores
from sluiceway.storage.heartbeats import heartbeat_key
from sluiceway.storage.model import TaskId
from sluiceway.storage.status_backing_store import KafkaStatusBackingStore
from sluiceway.worker.executor import TaskAssignment
from sluiceway.worker.kafka_task_services import KafkaTaskServices
from sluiceway.worker.task_host.host import HostAssignment
from sluiceway.worker.task_host.messages import (
    HostedTask,
    Orders,
    Report,
    config_digest,
    decode_report,
    encode_orders,
    orders_key,
    report_key,
    reporting_host,
)
from sluiceway.worker.task_launcher import ProcessLauncher, TaskLostError
from sluiceway.worker.task_watch import Slot

log = logging.getLogger(__name__)

_CHECK_SECONDS = 1.0
_ABANDON_SECONDS = 5.0  # that a canceled task has to end by itself, before its host is ended
_IDLE_SECONDS = 60.0  # after which a host without tasks ends
_SLOT_SECONDS = 15.0  # that a host waits for a slot while other hosts run; an executor may take as long to start
_FULL_SECONDS = 60.0  # after such a wait, no further hosts start
_BUSY = "It uses more than a quarter of a core, so it starts again in a process of its own."
MOST_TASKS = 64
"""Number of tasks from which on another host is started, if it finds a slot."""

_SUSPECT_SECONDS = 120.0
_ALONE_SHARE = 0.25


@dataclass(slots=True)
class _Hosted:
    """A launched task of a host."""

    assignment: TaskAssignment
    order: HostedTask
    future: Future[TaskResult] = field(default_factory=Future)
    canceled_at: float | None = None


@dataclass(slots=True)
class _Host:
    """A launched host.

    ``slot`` is whether it holds a slot. The thread that writes orders asks for it, because each thread that asks Spark costs
    another one in the JVM. ``waits_since`` is when it was first seen without one. ``unwritten`` is True while its orders differ
    from what the status topic says. ``leaving`` is why its tasks must move.
    """

    work: HostAssignment
    process: Future[TaskResult]
    group: str
    tasks: dict[str, _Hosted] = field(default_factory=dict)
    idle_since: float = 0.0
    slot: Slot = Slot.HELD
    waits_since: float | None = None
    unwritten: bool = True
    reported: bool = False
    leaving: str | None = None
    ending: bool = False


class TaskHosts:
    """A ``TaskLauncher`` that lets tasks share processes, as ``sluiceway.task.isolation`` wants. Thread-safe.

    Args:
        worker: the worker's config.
        worker_id: identifies this driver in status records.
        stores: those on Kafka: the configs, which hosts read by themselves, and the statuses, beside which messages travel.
        processes: starts hosts, and tasks that do not share a process.
        shares: whether ``auto`` lets tasks share. It does in a shared application.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        worker_id: str,
        stores: Stores,
        processes: ProcessLauncher,
        *,
        shares: bool,
    ) -> None:
        if not isinstance(stores.status, KafkaStatusBackingStore):
            raise ConnectError("Task hosts need the status topic's store.")
        self._worker = worker
        self._worker_id = worker_id
        self._config_store = stores.config
        self._status_store = stores.status
        self._processes = processes
        self._shares = shares
        self._lock = threading.RLock()
        self._hosts: dict[str, _Host] = {}
        self._place: dict[str, str] = {}
        """The host of each launched job that shares a process."""
        self._suspects = Suspects()
        self._busy: set[TaskId] = set()
        """Tasks that used too much of a core to share a process. They stay so until this driver ends."""
        self._advice = ""
        """The advice while a host waits for a slot: all its tasks ask for it."""
        self._wake = threading.Event()
        self._closing = False
        self._full_until = 0.0
        self._status_store.on_message(self._read)
        self._thread = threading.Thread(target=self._run, name="task-hosts", daemon=True)
        self._thread.start()

    # TaskLauncher. Called from runner threads.

    def launch(self, assignment: TaskAssignment) -> Future[TaskResult]:
        if not self._may_share(assignment):
            return self._processes.launch(assignment)
        with self._lock:
            host = self._host_for(assignment)
            hosted = _Hosted(assignment, self._order(assignment))
            host.tasks[assignment.job] = hosted
            host.unwritten = True
            self._place[assignment.job] = host.work.name
        self._wake.set()
        return hosted.future

    def cancel(self, assignment: TaskAssignment) -> None:
        with self._lock:
            host = self._host_of(assignment)
            if host is not None:
                host.tasks[assignment.job].canceled_at = time.monotonic()
                host.unwritten = True
                self._wake.set()
                return
        self._processes.cancel(assignment)

    def slot(self, assignment: TaskAssignment) -> Slot:
        with self._lock:
            host = self._host_of(assignment)
        if host is None:
            return self._processes.slot(assignment)
        return Slot.HELD if host.reported else host.slot

    def must_move(self, assignment: TaskAssignment) -> str | None:
        with self._lock:
            host = self._host_of(assignment)
        if host is None:
            return self._processes.must_move(assignment)
        if assignment.id in self._busy and self._isolation(assignment) == "auto":
            return _BUSY if self._processes.has_free_slot() else None
        return host.leaving

    def slots_advice(self) -> str:
        return self._advice or self._processes.slots_advice()

    def has_ended(self) -> bool:
        return self._processes.has_ended()

    def close(self) -> None:
        """Let all hosts end. Their tasks should have ended before."""
        self._closing = True
        self._wake.set()
        self._thread.join(timeout=_ABANDON_SECONDS)

    # Placement.

    def _isolation(self, assignment: TaskAssignment) -> str:
        return assignment.spec.config.get(TASK_ISOLATION) or "auto"

    def _may_share(self, assignment: TaskAssignment) -> bool:
        isolation = self._isolation(assignment)
        if isolation == "process" or not self._processes.shareable(assignment):
            return False
        return isolation == "shared" or (self._shares and assignment.id not in self._busy)

    def _host_for(self, assignment: TaskAssignment) -> _Host:
        now = time.monotonic()
        group = self._suspects.group(assignment.id, now)
        hosts = [
            Candidate(name, len(host.tasks), host.group)
            for name, host in self._hosts.items()
            if not host.ending and host.leaving is None
        ]
        chosen = choose_host(hosts, group, can_grow=self._can_grow)
        return self._hosts[chosen] if chosen is not None else self._start_host(group)

    def _can_grow(self) -> bool:
        if time.monotonic() < self._full_until or any(host.waits_since is not None for host in self._hosts.values()):
            return False
        return self._processes.has_free_slot()

    def _start_host(self, group: str) -> _Host:
        work = HostAssignment(
            f"{self._worker_id}-{uuid.uuid4().hex[:8]}", self._worker, self._worker_id, self._status_store.positions()
        )
        log.info("Starting task host %s", work.name)
        host = _Host(work, self._processes.launch(work), group, idle_since=time.monotonic())
        self._hosts[work.name] = host
        host.process.add_done_callback(lambda process: self._process_ended(host, process))
        return host

    def _order(self, assignment: TaskAssignment) -> HostedTask:
        spec, services = assignment.spec, assignment.services
        if not isinstance(services, KafkaTaskServices):
            raise ConnectError(f"Task {spec.id} cannot share a process, because its commands do not come from Kafka.")
        return HostedTask(
            job=assignment.job,
            id=spec.id,
            generation=spec.generation,
            version=spec.version,
            sink=spec.sink,
            bounded=spec.bounded,
            config_offset=self._config_store.snapshot().offset,
            config_digest=config_digest(spec.config),
            positions={
                place.partition: offset for place, offset in services.positions if place.topic != self._worker.config_topic
            },
        )

    def _host_of(self, assignment: TaskAssignment) -> _Host | None:
        return self._hosts.get(self._place.get(assignment.job, ""))

    # What hosts report. On the thread of the status topic's reader, and on the thread that waits for a host's process.

    def _read(self, key: bytes, value: bytes | None) -> None:
        name = reporting_host(key)
        with self._lock:
            host = self._hosts.get(name) if name is not None else None
            if host is None or value is None:
                return
            try:
                ended = self._take(host, decode_report(value))
            except DataError as error:
                log.warning("%s", error)
                return
        for hosted, result in ended:
            hosted.future.set_result(result)

    def _take(self, host: _Host, report: Report) -> list[tuple[_Hosted, TaskResult]]:
        """Take a report in; return the tasks that have ended."""
        host.reported = True
        for job, share in report.running.items():
            if job in host.tasks and is_busy(share, len(host.tasks) - 1):
                self._busy.add(host.tasks[job].assignment.id)
        ended = [(self._forget(host, job), result) for job, result in report.ended.items() if job in host.tasks]
        if ended:
            host.unwritten = True
            self._wake.set()
        return ended

    def _forget(self, host: _Host, job: str) -> _Hosted:
        self._place.pop(job, None)
        host.idle_since = time.monotonic()
        return host.tasks.pop(job)

    def _process_ended(self, host: _Host, process: Future[TaskResult]) -> None:
        """Give up the tasks of a host whose process has ended."""
        error = process.exception()
        by_itself = isinstance(error, TaskLostError) and error.crashed and not host.ending
        with self._lock:
            self._hosts.pop(host.work.name, None)
            lost = [self._forget(host, job) for job in list(host.tasks)]
            alone = len(lost) == 1
            if by_itself:
                self._suspects.crashed([hosted.assignment.id for hosted in lost], time.monotonic())
        if lost:
            log.warning("Task host %s with %d task(s) has ended: %s", host.work.name, len(lost), error)
        for hosted in lost:
            if hosted.canceled_at is not None:
                hosted.future.set_exception(TaskLostError("it was canceled, and its process was ended", crashed=False))
                continue
            reason = f"the process that it shares with {len(lost) - 1} other task(s) has ended: {error or 'it was told to'}"
            hosted.future.set_exception(TaskLostError(reason, crashed=by_itself and alone))
        self._write_tombstones(host)

    # The thread that writes orders.

    def _run(self) -> None:
        while not (self._closing and not self._hosts):
            self._wake.wait(_CHECK_SECONDS)
            self._wake.clear()
            with self._lock:
                hosts = list(self._hosts.values())
            for host in hosts:
                self._check(host)
                if host.unwritten:
                    self._write_orders(host)
            waiting = [host for host in hosts if host.waits_since is not None]
            self._advice = self._processes.slots_advice() if waiting else ""
            if len(waiting) < len(hosts):
                self._give_up_waiting(waiting)
            if self._processes.has_ended():
                return

    def _check(self, host: _Host) -> None:
        now = time.monotonic()
        host.leaving = self._processes.must_move(host.work)
        if not host.reported:
            host.slot = self._processes.slot(host.work)
        waits = host.slot is Slot.NONE and not host.reported
        host.waits_since = (host.waits_since or now) if waits else None
        with self._lock:
            idle = not host.tasks and (self._closing or now - host.idle_since > _IDLE_SECONDS)
            if (idle or self._closing) and not host.ending:
                host.ending = host.unwritten = True
            times = [hosted.canceled_at for hosted in host.tasks.values() if hosted.canceled_at is not None]
            hangs = bool(times) and now - min(times) > _ABANDON_SECONDS
        if hangs and not host.ending:
            log.warning("Ending task host %s, because a canceled task does not end", host.work.name)
            host.ending = True
            self._processes.cancel(host.work)

    def _give_up_waiting(self, waiting: Sequence[_Host]) -> None:
        """End hosts that find no slot while others run; their tasks start again in those."""
        now = time.monotonic()
        for host in waiting:
            if not host.ending and host.waits_since is not None and now - host.waits_since > _SLOT_SECONDS:
                log.info("Task host %s finds no slot; its %d task(s) start in other hosts", host.work.name, len(host.tasks))
                self._full_until = now + _FULL_SECONDS
                host.ending = True
                self._processes.cancel(host.work)

    def _write_orders(self, host: _Host) -> None:
        with self._lock:
            host.unwritten = False
            tasks = {job: hosted.order for job, hosted in host.tasks.items() if hosted.canceled_at is None}
            orders = Orders(tasks, end=host.ending)
        try:
            self._status_store.put_message(orders_key(host.work.name), encode_orders(orders))
        except ConnectError as error:
            host.unwritten = True
            log.warning("Cannot write the orders of task host %s; trying again every second: %s", host.work.name, error)

    def _write_tombstones(self, host: _Host) -> None:
        try:
            for key in (orders_key(host.work.name), report_key(host.work.name), heartbeat_key(host.work.name)):
                self._status_store.put_message(key, None)
        except ConnectError as error:
            log.info("The messages of task host %s stay in the status topic: %s", host.work.name, error)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A host as a task's placement sees it. ``group`` are tasks that may have ended their process; "" is everybody else."""

    name: str
    tasks: int
    group: str = ""


def choose_host(hosts: Sequence[Candidate], group: str, *, can_grow: Callable[[], bool]) -> str | None:
    """Return the least loaded host for a task of a group, or None if a new host must be started for it.

    ``can_grow`` returns False if a new host would find no slot. Then any host is better than none.
    """
    own = [host for host in hosts if host.group == group]
    with_room = [host for host in own if host.tasks < MOST_TASKS]
    usable = with_room or ([] if can_grow() else own or hosts)
    return min(usable, key=lambda host: host.tasks).name if usable else None


@dataclass(slots=True)
class Suspects:
    """Tasks whose host's process has ended by itself. One of them may have ended it, and must not go on ending the others.

    The tasks of such a host start again together, apart from all others. If they lose that host too, each half of them gets a
    host of its own, and so on, until a task is alone. What lives for two minutes is above suspicion again.
    """

    _group: dict[TaskId, tuple[str, float]] = field(default_factory=dict)
    _count: int = 0

    def group(self, task: TaskId, now: float) -> str:
        group, since = self._group.get(task, ("", 0.0))
        if group and now - since > _SUSPECT_SECONDS:
            del self._group[task]
            return ""
        return group

    def crashed(self, tasks: Iterable[TaskId], now: float) -> None:
        """Note that the process of a host with these tasks has ended."""
        ordered = sorted(tasks, key=str)
        again = [bool(self.group(task, now)) for task in ordered]
        self._count += 1
        parts = 2 if all(again) and len(ordered) > 1 else 1
        for number, task in enumerate(ordered):
            self._group[task] = f"{self._count}-{number % parts}", now


def is_busy(share: float, neighbors: int) -> bool:
    """Return whether a task that uses this share of a core has to leave its neighbors alone."""
    return share > _ALONE_SHARE and neighbors > 0

"""Fences the exactly-once source tasks of earlier generations before new ones start (KIP-618). Runs on the driver."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from sluiceway.config.worker import WorkerConfig
from sluiceway.discovery import connector_class, is_sink
from sluiceway.errors import ConnectError, FencedError
from sluiceway.kafka.fenced_writer import FencedWriter
from sluiceway.runtime.source.exactly_once import exactly_once_enabled, transactional_id
from sluiceway.storage.interfaces import ConfigBackingStore
from sluiceway.storage.model import ConnectorEntry, TaskId

log = logging.getLogger(__name__)

_MAX_THREADS = 16
_ATTEMPTS = 3


def fence_earlier_tasks(worker: WorkerConfig, store: ConfigBackingStore, connector: str) -> None:
    """Fence all tasks that a source connector had before, unless that has been done for its current task configs.

    Call it while none of the connector's tasks runs and before any starts. Afterwards Kafka refuses the writes of every task
    of an earlier generation, wherever it still runs, and the config topic's task-count record states so. Does nothing for
    sinks and without exactly-once. Takes about 0.1 s for all transactional ids together, and 0.1 s for the record.

    Raises ConnectError if fencing fails; then no task may start, and a restart tries again.
    """
    entry = store.refresh().entry(connector)
    if entry is None or not needs_fencing(worker, entry):
        return
    tasks = len(entry.task_configs)
    # A connector with a single task before and after needs none: the task fences its own id when it starts.
    if entry.task_count and (entry.task_count, tasks) != (1, 1):
        fence_source_tasks(worker, connector, entry.task_count)
    store.put_task_count(connector, tasks)


def needs_fencing(worker: WorkerConfig, entry: ConnectorEntry) -> bool:
    """Return True if earlier tasks must be fenced before the connector's tasks may start. No I/O."""
    return entry.pending_fencing and exactly_once_enabled(worker) and not _is_sink(entry.config or {})


def fence_source_tasks(worker: WorkerConfig, connector: str, count: int) -> None:
    """Fence the transactional ids of a connector's tasks 0 to ``count`` - 1, several at a time.

    Raises ConnectError if that fails for one of them; the others may be fenced.
    """
    tasks = [TaskId(connector, number) for number in range(count)]
    _fence_all(worker, {f"task {task} of an earlier generation": transactional_id(worker, task) for task in tasks}, connector)
    log.info("[%s|worker] Fenced %d earlier tasks", connector, count)


def fence_slots(worker: WorkerConfig, task: TaskId, count: int) -> None:
    """Fence the transactional ids of slots 0 to ``count`` - 1 of a task that reads DataFrames.

    Raises ConnectError if that fails for one of them; the others may be fenced.
    """
    ids = {f"slot {slot} of task {task}": transactional_id(worker, task, slot) for slot in range(count)}
    _fence_all(worker, ids, task.connector)


def _fence_all(worker: WorkerConfig, ids: Mapping[str, str], connector: str) -> None:
    if not ids:
        return
    with ThreadPoolExecutor(max_workers=min(len(ids), _MAX_THREADS), thread_name_prefix="fencing") as pool:
        futures = {what: pool.submit(_fence, worker, identity) for what, identity in ids.items()}
    for what, future in futures.items():
        error = future.exception()
        if error is not None:
            raise ConnectError(
                f"Connector {connector}: cannot fence {what}, so no task was started: {error} "
                f"Allow this principal to use the transactional id {ids[what]}, then restart the tasks."
            ) from error


def _fence(worker: WorkerConfig, identity: str) -> None:
    writer = FencedWriter(worker, identity, f"{worker.group_id}-fencing-{identity}")
    try:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                writer.fence()
                return
            except FencedError:  # a task was starting at the same moment; that task must be fenced as well
                if attempt == _ATTEMPTS:
                    raise
    finally:
        writer.close()


def _is_sink(config: Mapping[str, str]) -> bool:
    return is_sink(connector_class(config["connector.class"]))

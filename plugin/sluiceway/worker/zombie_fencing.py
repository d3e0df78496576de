"""Shuts out the exactly-once tasks of earlier generations before those of a new one start. Driver."""

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

_AT_ONCE = 16
_ATTEMPTS = 3


def fence_earlier_tasks(worker: WorkerConfig, store: ConfigBackingStore, connector: str) -> None:
    """Fence whatever tasks a source connector has had, unless that was done since its task configs were committed.

    To be called when no task runs, before any starts: then every task of an earlier generation, wherever it hangs, is
    refused by Kafka itself. The task-count record that follows says so to whoever comes next. Does nothing for sinks and
    where exactly-once is not enabled. Takes about 0.1 s for the ids, all at once, and as long for the record.

    Raises ConnectError if it cannot be done; then no task may start, and a restart tries again.
    """
    entry = store.refresh().entry(connector)
    if entry is None or not needs_fencing(worker, entry):
        return
    tasks = len(entry.task_configs)
    # The one task of a connector with one task fences its own id when it starts.
    if entry.task_count and (entry.task_count, tasks) != (1, 1):
        fence_source_tasks(worker, connector, entry.task_count)
    store.put_task_count(connector, tasks)


def needs_fencing(worker: WorkerConfig, entry: ConnectorEntry) -> bool:
    """Whether the tasks of a connector may not start before earlier ones are fenced. Pure."""
    return entry.pending_fencing and exactly_once_enabled(worker) and not _is_sink(entry.config or {})


def fence_source_tasks(worker: WorkerConfig, connector: str, count: int) -> None:
    """Fence the transactional ids of a connector's tasks 0 to ``count`` - 1, many at a time.

    Raises ConnectError if that fails for one of them; the others may be fenced.
    """
    tasks = [TaskId(connector, number) for number in range(count)]
    if not tasks:
        return
    with ThreadPoolExecutor(max_workers=min(count, _AT_ONCE), thread_name_prefix="fencing") as pool:
        futures = [pool.submit(_fence, worker, task) for task in tasks]
    for task, future in zip(tasks, futures, strict=True):
        error = future.exception()
        if error is not None:
            raise ConnectError(
                f"Task {task} of an earlier generation could not be shut out, so no task of connector {connector} was started: "
                f"{error} Let this principal use the transactional id {transactional_id(worker, task)}, and restart the tasks."
            ) from error
    log.info("[%s|worker] Fenced %d earlier tasks", connector, count)


def _fence(worker: WorkerConfig, task: TaskId) -> None:
    writer = FencedWriter(worker, transactional_id(worker, task), f"{worker.group_id}-fencing-{task}")
    try:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                writer.fence()
                return
            except FencedError:  # by a task that was just starting: that one is to be fenced as well
                if attempt == _ATTEMPTS:
                    raise
    finally:
        writer.close()


def _is_sink(config: Mapping[str, str]) -> bool:
    return is_sink(connector_class(config["connector.class"]))

"""Task hosts of an application that has fewer slots than hosts were started, such as before its executors had registered."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest

from sluiceway.runtime.task import TaskResult, TaskSpec
from sluiceway.storage.factory import open_stores
from sluiceway.storage.model import TaskId
from sluiceway.worker.executor import TaskAssignment, Work
from sluiceway.worker.kafka_task_services import KafkaTaskServices
from sluiceway.worker.task_host import task_hosts
from sluiceway.worker.task_host.task_hosts import TaskHosts
from sluiceway.worker.task_launcher import TaskLostError, ThreadLauncher
from sluiceway.worker.task_watch import Slot
from support.driver import worker_of, worker_properties
from support.eventually import eventually

pytestmark = pytest.mark.kafka


class OneSlot(ThreadLauncher):
    """A ``ProcessLauncher`` whose first process has the only slot, and which does not know that yet."""

    def __init__(self) -> None:
        self.processes: dict[str, Future[TaskResult]] = {}

    def launch(self, work: Work) -> Future[TaskResult]:
        self.processes[work.job] = Future()
        return self.processes[work.job]

    def cancel(self, work: Work) -> None:
        self.processes[work.job].set_exception(TaskLostError("it was canceled", crashed=False))

    def slot(self, work: Work) -> Slot:
        return Slot.HELD if next(iter(self.processes)) == work.job else Slot.NONE


def test_tasks_of_a_host_that_finds_no_slot_start_in_one_that_runs(
    kafka_bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_hosts, "MOST_TASKS", 1)
    monkeypatch.setattr(task_hosts, "_SLOT_SECONDS", 0.5)
    worker = worker_of(worker_properties(kafka_bootstrap, tmp_path.name))
    processes = OneSlot()
    with open_stores(worker) as stores:
        hosts = TaskHosts(worker, "driver", stores, processes, shares=True)

        def assignment(number: int) -> TaskAssignment:
            spec = TaskSpec(TaskId("c", number), {}, worker, "driver", generation=1, sink=False)
            return TaskAssignment(spec, KafkaTaskServices((), paused=False))

        first = hosts.launch(assignment(0))
        second = assignment(1)
        waiting = hosts.launch(second)
        assert len(processes.processes) == 2, "each has room for one task"
        eventually(lambda: hosts.slot(second) is Slot.NONE, what="a host without a slot")
        hosts.launch(assignment(2))
        assert len(processes.processes) == 2, "none is started while another one waits"

        lost = waiting.exception(timeout=30)
        assert isinstance(lost, TaskLostError)
        assert not lost.crashed
        again = hosts.launch(assignment(1))
        assert len(processes.processes) == 2, "the application is known to be full"
        assert not first.done()
        assert not again.done()
        for process in processes.processes.values():
            if not process.done():
                process.set_result(TaskResult(TaskId("c", 0)))
        hosts.close()

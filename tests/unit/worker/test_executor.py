"""Runs a task in an executor's Python worker."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.runtime.task import TaskControl, TaskReporter, TaskResult, TaskServices, TaskSpec
from sluiceway.storage.model import State, TaskId
from sluiceway.worker import executor
from sluiceway.worker.executor import TaskAssignment, run_assignment, run_partition
from sluiceway.worker.start_gate import StartGate


def test_a_task_can_import_modules_from_plugin_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a_plugin_of_this_test.py").write_text("NAME = 'found'")
    worker = WorkerConfig.of({"plugin.path": str(tmp_path)})
    spec = TaskSpec(id=TaskId("c", 0), config={}, worker=worker, worker_id="me:1", generation=1, sink=False)

    def run(assignment: TaskAssignment) -> TaskResult:
        import a_plugin_of_this_test  # type: ignore[import-not-found]

        return TaskResult(assignment.spec.id, failed=False, trace=a_plugin_of_this_test.NAME)

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(executor, "log_to_stderr", lambda _prefix: None)
    monkeypatch.setattr(executor, "run_assignment", run)
    assignment = TaskAssignment(spec, services=None)  # type: ignore[arg-type]
    assert [result.trace for result in run_partition(iter([assignment]))] == ["found"]


@pytest.mark.parametrize("waits", [True, False])
def test_a_task_that_waits_for_the_cluster_lets_others_start(
    waits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = StartGate("task", limit=1, folder=tmp_path)
    monkeypatch.setattr(executor, "_starts", gate)
    spec = TaskSpec(id=TaskId("c", 0), config={}, worker=WorkerConfig.of({}), worker_id="me:1", generation=1, sink=False)
    found: list[bool] = []

    def run(spec: TaskSpec, services: TaskServices) -> TaskResult:
        if waits:
            services.let_others_start()
        answers = iter([False, True, True])
        other = gate.enter(gives_up=lambda: next(answers))
        found.append(other is not None)
        if other is not None:
            other.release()
        return TaskResult(spec.id)

    class Services:
        def open(self, spec: TaskSpec) -> TaskServices:
            return TaskServices(control=cast("TaskControl", None), reporter=cast("TaskReporter", None))

    run_assignment(TaskAssignment(spec, Services()), run)
    assert found == [waits]


def test_a_task_whose_reference_has_no_value_here_fails_before_it_runs() -> None:
    worker = WorkerConfig.of({"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"})
    config = {"file": "${env:CONNECTOR_THAT_IS_NOT_SET}"}
    spec = TaskSpec(id=TaskId("c", 0), config=config, worker=worker, worker_id="me:1", generation=1, sink=False)
    reported: list[State] = []

    class Reporter:
        def report(self, state: State, trace: str | None = None) -> None:
            reported.append(state)

    class Services:
        def open(self, spec: TaskSpec) -> TaskServices:
            return TaskServices(control=cast("TaskControl", None), reporter=cast("TaskReporter", Reporter()))

    result = run_assignment(TaskAssignment(spec, Services()), lambda *_: pytest.fail("it runs"))
    assert (result.failed, reported) == (True, [State.FAILED])
    assert "file: ${env:CONNECTOR_THAT_IS_NOT_SET} has no value where the connector runs." in str(result.trace)

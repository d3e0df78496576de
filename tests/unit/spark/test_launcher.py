"""The launcher on an executor, and its advice about slots."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.runtime.task import TaskResult, TaskSpec
from sluiceway.spark import launcher
from sluiceway.spark.launcher import SparkLauncher, run_first_attempt
from sluiceway.storage.model import TaskId
from sluiceway.worker.executor import TaskAssignment

SPEC = TaskSpec(id=TaskId("c", 0), config={}, worker=WorkerConfig.of({}), worker_id="me:1", generation=1, sink=False)
ASSIGNMENT = TaskAssignment(SPEC, services=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("attempt", [0, 1, 2])
def test_a_task_runs_at_most_once_for_each_launch(attempt: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[TaskAssignment] = []

    def run(assignments: Any) -> Any:
        ran.extend(assignments)
        yield TaskResult(SPEC.id, records=5)

    monkeypatch.setattr(launcher, "run_partition", run)
    monkeypatch.setattr(pyspark.TaskContext, "get", lambda: SimpleNamespace(attemptNumber=lambda: attempt))
    [result] = run_first_attempt(iter([ASSIGNMENT]))
    assert (len(ran), result.second_attempt, result.lost) == ((1, False, False) if attempt == 0 else (0, True, True))


def context(slots: int, in_use: int = 9, /, **conf: str) -> Any:
    executors = [SimpleNamespace(numRunningTasks=lambda: in_use)]
    java = SimpleNamespace(
        statusTracker=lambda: SimpleNamespace(getExecutorInfos=lambda: executors),
        maxNumConcurrentTasks=lambda _profile: slots,
        resourceProfileManager=lambda: SimpleNamespace(defaultResourceProfile=lambda: None),
    )
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    return SimpleNamespace(master="spark://h:7077", _jsc=SimpleNamespace(sc=lambda: java), getConf=lambda: settings)


@pytest.mark.parametrize(
    ("slots", "in_use", "said"),
    [
        (2, 2, "has 2 slot(s) on spark://h:7077, all in use"),
        (2, 1, "has 2 slot(s) on spark://h:7077, 1 in use, but Spark has not started the task"),
        (0, 0, "has no executors on spark://h:7077"),
    ],
)
def test_the_advice_names_the_slots(slots: int, in_use: int, said: str) -> None:
    assert said in SparkLauncher(context(slots, in_use)).slots_advice()


def test_the_advice_says_whether_spark_requests_more_executors() -> None:
    assert "more executors" not in SparkLauncher(context(2)).slots_advice()
    assert "has requested more executors" in SparkLauncher(context(2, spark_dynamicAllocation_enabled="true")).slots_advice()


@pytest.mark.parametrize(
    ("slots", "conf", "free"),
    [(0, {}, True), (1, {}, False), (2, {}, True), (1, {"spark_dynamicAllocation_enabled": "true"}, True)],
)
def test_a_slot_may_be_free_while_no_executor_has_registered(slots: int, conf: dict[str, str], free: bool) -> None:
    found = SparkLauncher(context(slots, **conf))
    found._usage.add("a host")
    assert found.has_free_slot() is free


def test_the_advice_survives_a_jvm_that_does_not_answer() -> None:
    assert "does not say" in SparkLauncher(SimpleNamespace(master="spark://h")).slots_advice()  # type: ignore[arg-type]

"""The reason of a lost task, from messages that Spark 4.0 gave on real clusters."""

from __future__ import annotations

import pytest

from sluiceway.spark.lost_task import lost_task

ABORTED = "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in stage 3.0 "
DRIVER = "\n\nDriver stacktrace:\n\tat org.apache.spark.scheduler.DAGScheduler.abortStage(DAGScheduler.scala:2935)"
CAUSED = "caused by one of the running tasks) Reason: "


def lost(where: str, cause: str) -> str:
    """Return the message of a job that failed with its task."""
    return f"{ABORTED}(TID 3) ({where}): {cause}{DRIVER}"


def executor_lost(cause: str) -> str:
    return f"ExecutorLostFailure (executor 5 exited {cause}"


KILLED = executor_lost(f"{CAUSED}Command exited with code 137")
TERMINATED = executor_lost(f"{CAUSED}Command exited with code 143")
WORKER = executor_lost("unrelated to the running tasks) Reason: worker lost: 10.0.0.7:4711 got disassociated")
CONTAINER = executor_lost(
    f"{CAUSED}Container from a bad node: container_1700000000000_0001_01_000004 on host: node-2. Exit status: 137. "
    "Diagnostics: [2025-01-01 10:00:00.000]Container killed on request. Exit code is 137"
)
MORE = "\n[2025-01-01 10:00:00.001]Container exited with a non-zero exit code 137. \nKilled by external signal\n."
PYTHON = "Python worker exited unexpectedly (crashed)"
REMOVED = "Master removed our application: KILLED"
STOPPED = "Cannot call methods on a stopped SparkContext."
CANCELED = "Job 4 cancelled because SparkContext was shut down"


@pytest.mark.parametrize(
    ("message", "reason", "crashed"),
    [
        (lost("127.0.0.1 executor 5", KILLED), f"{KILLED} (127.0.0.1 executor 5)", True),
        (lost("node-2 executor 5", CONTAINER + MORE), f"{CONTAINER} (node-2 executor 5)", True),
        (lost("127.0.0.1 executor 5", TERMINATED), f"{TERMINATED} (127.0.0.1 executor 5)", False),
        (lost("10.0.0.7 executor 5", WORKER), f"{WORKER} (10.0.0.7 executor 5)", False),
        (lost("host executor driver", f"org.apache.spark.SparkException: {PYTHON}"), f"{PYTHON} (host executor driver)", True),
        (f"Job aborted due to stage failure: {REMOVED}{DRIVER}", REMOVED, False),
        (f"{STOPPED}\nThis stopped SparkContext was created at:\n", STOPPED, False),
        (f"java.lang.IllegalStateException: {STOPPED}\nThis stopped ...", STOPPED, False),
        (CANCELED, CANCELED, False),
        ("", "Spark gave no reason", False),
    ],
    ids=["killed", "container", "SIGTERM", "worker", "Python worker", "removed", "stopped", "with class", "shut down", "empty"],
)
def test_the_reason_names_the_cause_and_whether_the_task_crashed(message: str, reason: str, crashed: bool) -> None:
    found = lost_task(message)
    assert (str(found), found.crashed) == (reason, crashed)


@pytest.mark.parametrize(
    ("reason", "crashed"),
    [
        ("Container container_1 on host: node-1 was preempted.", False),
        ("Container marked as failed: container_1 on host: n. Exit status: -100. Diagnostics: released on a *lost* node.", False),
        ("Executor decommission: worker decommissioned", False),
        ("Worker shutting down", False),
        ("Container killed by YARN for exceeding physical memory limits. Exit status: -104.", True),
        ("Command exited with code 1", True),
        ("Remote RPC client disassociated. Likely due to containers exceeding thresholds, or network issues.", True),
    ],
)
def test_a_loss_with_the_host_is_not_a_crash(reason: str, crashed: bool) -> None:
    assert lost_task(lost("n executor 5", executor_lost(f"{CAUSED}{reason}"))).crashed is crashed


def test_a_very_long_reason_is_cut() -> None:
    assert len(str(lost_task("x" * 10_000))) < 600

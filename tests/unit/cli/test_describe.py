"""``sluiceway describe``."""

from __future__ import annotations

import pytest

from sluiceway.cli.main import main
from sluiceway.rest.client import RestError
from unit.cli.pretend_client import STATUS, PretendClient, out


def test_describe_shows_everything_and_leaves_out_what_the_server_cannot_tell(
    api: PretendClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["describe", "connector", "a"]) == 0
    printed = out(capsys)
    wanted = [
        "State  RUNNING",
        "Spark application  small (the worker has a default)",
        "Config",
        "file             /f",
        "Tasks",
        "a-0   FAILED   h:1",
        "TASK  AS COLUMNS  RECORD BY RECORD",
        "0     0           3 task",
        "1     12          1 few-records, 2 value",
        "Topics",
        "filename=/f  position=7",
    ]
    assert [line for line in [*wanted, "Error of task 0", "Error: boom"] if line not in printed] == []
    api.failures = {name: RestError(404, "none") for name in ("topics", "offsets", "application", "metrics")}
    assert main(["describe", "connector", "a"]) == 0
    printed = out(capsys)
    assert "Topics" not in printed
    assert "Offsets" not in printed
    assert "Batches" not in printed
    assert not any("application" in line for line in printed), "the server is Kafka Connect"
    api.failures = {"topics": RestError(0, "away")}
    assert main(["describe", "connector", "a"]) == 5


def test_what_a_running_task_waits_for_is_no_error(api: PretendClient, capsys: pytest.CaptureFixture[str]) -> None:
    wait = "Waiting since noon, next try within 10 s. db: refused"
    tasks = [{"id": 0, "state": "RUNNING", "worker_id": "h:1", "trace": wait}]
    api.answer_status = lambda _name: {**STATUS, "tasks": tasks}  # type: ignore[method-assign]
    assert main(["describe", "connector", "a"]) == 0
    assert out(capsys)[-2:] == ["Status of task 0", wait]
    assert main(["get", "status", "a"]) == 0
    assert out(capsys)[-1] == f"a-0: {wait}"
    api.answer_statuses = lambda: {"a": {**STATUS, "tasks": tasks}}  # type: ignore[method-assign]
    assert main(["get", "connectors"]) == 0
    assert "1 RUNNING (1 waiting)" in out(capsys)[1]

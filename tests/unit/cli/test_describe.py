"""``sluiceway describe``."""

from __future__ import annotations

import pytest

from sluiceway.cli.main import main
from sluiceway.rest.client import RestError
from unit.cli.pretend_client import PretendClient, out


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

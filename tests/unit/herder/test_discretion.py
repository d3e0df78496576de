"""What a user sees of errors who may not edit the connector: classes and stack frames."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.errors import ConnectError, DataError, trace_of
from sluiceway.herder.discretion import NOTE, discreet_info, discreet_status, discreet_tasks, discreet_trace
from sluiceway.herder.model import ConnectorInfo, ConnectorStatus, TaskInfo
from sluiceway.storage.model import State, Status, TaskId

JAVA = """org.apache.kafka.connect.errors.ConnectException: Tolerance exceeded for hunter2
hunter2: on a line of its own
\tat org.apache.kafka.connect.runtime.Worker.run(Worker.java:12)
\tat java.base/java.lang.Thread.run(Thread.java:840)
\tSuppressed: java.io.IOException: hunter2
\t\t... 3 more
Caused by: org.apache.kafka.connect.errors.DataException: Cannot convert hunter2
\t... 2 more"""


def failed(value: str) -> str:
    """Return the trace of a task that failed by a record with this value."""

    def convert(text: str) -> None:
        raise ValueError(f"not a number: {text}")

    try:
        try:
            try:
                convert(value)
            except ValueError as error:
                raise DataError(f"Cannot convert {value}") from error
        except DataError as error:
            raise ConnectError(f"Tolerance exceeded: {error}") from error
    except ConnectError as last:
        found = trace_of(last)
    return found


def test_a_java_trace_keeps_classes_and_frames() -> None:
    assert discreet_trace(JAVA).splitlines() == [
        "org.apache.kafka.connect.errors.ConnectException",
        "\tat org.apache.kafka.connect.runtime.Worker.run(Worker.java:12)",
        "\tat java.base/java.lang.Thread.run(Thread.java:840)",
        "\tSuppressed: java.io.IOException",
        "\t\t... 3 more",
        "Caused by: org.apache.kafka.connect.errors.DataException",
        "\t... 2 more",
        NOTE,
    ]


def test_a_python_trace_keeps_classes_and_frames() -> None:
    text = discreet_trace(failed("hunter2"))
    assert "hunter2" not in text
    lines = text.splitlines()
    assert lines[0] == "sluiceway.errors.ConnectError"
    assert {"ValueError", "sluiceway.errors.DataError", "sluiceway.errors.ConnectError"} <= set(lines)
    assert any("in convert" in line for line in lines)
    assert lines[-1] == NOTE


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"])))
def test_no_text_of_a_record_is_in_it(value: str) -> None:
    assert discreet_trace(failed(value)) == discreet_trace(failed("other"))


@pytest.mark.parametrize(
    "line", ["hunter2", "hunter2: x", "a.hunter2: x", " hunter2", "    hunter2", "\thunter2", "File hunter2"]
)
def test_lines_of_a_message_are_left_out(line: str) -> None:
    assert "hunter2" not in discreet_trace(failed(f"x\n{line}\n"))


def test_configs_and_statuses_of_all_parts_are_concerned() -> None:
    config = {
        "connector.class": "JdbcSink",
        "connection.password": "hunter2",
        "connection.url": "jdbc:x://u:hunter2@h/d",
        "a": "b",
    }
    info = ConnectorInfo("c", config, (TaskId("c", 0),), "sink")
    assert discreet_info(info).config == {**config, "connection.password": "[hidden]", "connection.url": "jdbc:x://[hidden]@h/d"}
    assert "hunter2" not in str(discreet_tasks(info, [TaskInfo(TaskId("c", 0), config)]))
    trace = Status(State.FAILED, "w", 1, trace="x.Error: hunter2")
    status = discreet_status(ConnectorStatus("c", trace, {0: trace, 1: Status(State.RUNNING, "w", 1)}, "sink"))
    assert "hunter2" not in str(status)
    assert status.tasks[1].trace is None

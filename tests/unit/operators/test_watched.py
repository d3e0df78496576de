"""Tests of operators that watch their connector's progress, and of the example DAG for it."""

from __future__ import annotations

import importlib
import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import BaseNotifier

from sluiceway.operators import SinkConnectorOperator
from sluiceway.provider.compat import AirflowException, AirflowFailException, TaskDeferred
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from support.eventually import LIMIT, eventually
from unit.operators.test_connector import SOURCE as SOURCE_CONFIG
from unit.operators.test_connector import Kafka, Stage, worker_file  # noqa: F401 (the fixture is used by its name)

STUCK = ConnectorProgress(count=10, lag=5)


class Notifier(BaseNotifier):
    """A notifier as of Airflow's providers, with a template."""

    template_fields = ("text",)

    def __init__(self, sent: list[str], done: threading.Event) -> None:
        super().__init__()
        self.text = "{{ reason }}"
        self.sent = sent
        self.done = done

    def notify(self, context: Any) -> None:
        self.sent.append(self.text)
        self.done.set()


def run_until(done: threading.Event, *progress: ConnectorProgress, **arguments: Any) -> Stage:
    """Run an operator whose driver ends once ``done`` is set."""
    kafka = Kafka({"name": "c", "connector.class": "FileStreamSink", "topics": "t", "file": "/nowhere"})
    kafka.positions = list(progress)

    def drive() -> int:
        return 0 if done.wait(LIMIT) else 1

    stage = Stage(kafka, drive, kind=SinkConnectorOperator, mode="micro-batch", **arguments)
    stage.run()
    return stage


def test_notifiers_are_called_once_when_the_connector_stands_still() -> None:
    sent: list[str] = []
    done = threading.Event()
    run_until(done, STUCK, no_progress_after=timedelta(milliseconds=50), on_no_progress_callback=Notifier(sent, done))
    (text,) = sent
    assert text.startswith("Connector c: no progress for ")
    assert text.endswith("no record committed, 5 are waiting")


def test_a_callback_that_fails_does_not_keep_the_others_from_running(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    def fails(_context: Any) -> None:
        raise OSError("no mail server")

    run_until(done, STUCK, no_progress_after=0.05, on_no_progress_callback=[fails, lambda _context: done.set()])
    assert done.is_set()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on_no_progress_callback": print}, "on_no_progress_callback needs no_progress_after"),
        ({"no_progress_after": timedelta(0)}, "must be a positive time"),
    ],
)
def test_arguments_that_cannot_work_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SinkConnectorOperator(task_id="t", connector="c", **arguments)


def test_the_example_has_callbacks_and_a_deadline() -> None:
    callbacks = pytest.importorskip("airflow.sdk.definitions.callback", reason="the example's deadline alert needs Airflow 3.2")
    from sluiceway.dags import example_watch_progress as example

    importlib.reload(example)
    [operator] = example.dag.tasks
    assert isinstance(operator, SinkConnectorOperator)
    assert (operator.no_progress_after, len(operator.on_no_progress_callback)) == (600, 1)
    assert example.watching.deadline
    alerts = example.watching.deadline
    [alert] = alerts if isinstance(alerts, list) else [alerts]
    assert alert.interval == timedelta(minutes=10)
    assert isinstance(alert.callback, callbacks.AsyncCallback)
    assert alert.callback.path == "sluiceway.dags.example_watch_progress.tell_late"


# Tasks of the connector that have FAILED.

FAILED = ("task 1: org.apache.kafka.connect.errors.ConnectException: no table",)


def with_failed(drive: Any, **arguments: Any) -> Stage:
    stage = Stage(Kafka(SOURCE_CONFIG), drive, mode="micro-batch", **arguments)
    stage.kafka.failures = FAILED
    settings = replace(stage.operator._settings(), progress_interval=0.01)
    stage.operator._settings = lambda: settings  # type: ignore[method-assign]
    return stage


def test_failed_tasks_are_told_once_to_callbacks_and_again_when_others_fail() -> None:
    said: list[str] = []
    second = threading.Event()

    def tell(context: Any) -> None:
        said.append(context["reason"])
        stage.kafka.failures = (*FAILED, "task 2: E: other")
        if len(said) == 2:
            second.set()

    def drive() -> int:
        assert second.wait(LIMIT)
        return 0

    stage = with_failed(drive, on_failed_tasks="callback", on_failed_tasks_callback=tell)
    stage.run()
    assert said == [f"Connector c: FAILED: {FAILED[0]}", f"Connector c: FAILED: {FAILED[0]}; task 2: E: other"]


def test_failed_tasks_may_fail_the_airflow_task_which_airflow_retries() -> None:
    ended: list[bool] = []
    told_twice = threading.Event()

    class Processes:
        def refresh(self) -> None: ...

        def drain(self) -> bool:
            ended.append(False)
            return True

        def kill(self) -> int:
            ended.append(True)
            told_twice.set()
            return 1

    def drive() -> int:
        stage.operator._processes = processes
        stage.kafka.failures = FAILED
        return 0 if told_twice.wait(LIMIT) else 1

    stage = with_failed(drive, on_failed_tasks="fail")
    processes: Any = Processes()
    stage.kafka.failures = ()
    with pytest.raises(AirflowException, match=r"Connector c: FAILED: task 1: .* no table\. Its driver was ended") as raised:
        stage.run()
    assert not isinstance(raised.value, AirflowFailException)
    assert ended[:2] == [False, True]


def test_in_cluster_mode_failed_tasks_end_the_driver_through_the_cluster() -> None:
    stage = with_failed(
        lambda: 0 if eventually(lambda: stage.hook.killed, what="its end") else 1, on_failed_tasks="fail", durable=False
    )
    stage.hook.is_client_mode = False
    with pytest.raises(AirflowException, match="no table"):
        stage.run()


def test_by_default_failed_tasks_leave_the_driver_and_the_airflow_task_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING"):
        stage = with_failed(lambda: 0 if eventually(lambda: FAILED[0] in caplog.text, what="a warning") else 1)
        stage.run()
    assert not stage.hook.killed


def test_what_cannot_be_watched_in_the_triggerer_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    stage = Stage(Kafka({**SOURCE_CONFIG, "sluiceway.application": "a"}), on_failed_tasks="fail", no_progress_after=60)
    with pytest.raises(TaskDeferred):
        stage.run()
    assert "no_progress_after, on_failed_tasks: no effect while the task waits in the triggerer" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on_failed_tasks": "kill"}, "must be 'keep', 'fail' or 'callback', not 'kill'"),
        ({"on_failed_tasks": "callback"}, "need each other"),
        ({"on_failed_tasks_callback": print}, "need each other"),
        ({"on_failed_tasks": "fail", "on_failed_tasks_callback": print}, "need each other"),
    ],
)
def test_arguments_about_failed_tasks_that_cannot_work_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SinkConnectorOperator(task_id="t", connector="c", **arguments)

"""Tests of operators that watch their connector's progress, and of the example DAG for it."""

from __future__ import annotations

import importlib
import threading
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import BaseNotifier

from sluiceway.operators import SinkConnectorOperator
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from support.eventually import LIMIT
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

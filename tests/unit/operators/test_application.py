"""Tests of the operator of a shared application with a fake spark-submit."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.errors import ConnectError
from sluiceway.operators import ApplicationOperator
from sluiceway.provider.compat import AirflowException, AirflowRescheduleException
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.settings import Settings


class _Submit:
    """A fake hook; ``drive`` runs instead of the driver and returns its exit code."""

    submit_pid = tracker = ui_url = None

    def __init__(self, drive: Any, *, client: bool = True) -> None:
        self.is_client_mode = client
        self.exit_code: int | None = None
        self.last_error: str | None = None
        self._drive = drive

    def submit(self, application: str) -> None:
        self.exit_code = self._drive()


class _Topics:
    """The internal topics; ``traces`` are those of hosted connectors, ``answers`` whether Kafka does."""

    def __init__(self, *, answers: bool = True) -> None:
        self.traces: list[tuple[str, str]] = []
        self.answers = answers

    def spark_settings(self, application: str) -> dict[str, str]:
        if not self.answers:
            raise ConnectError("no broker")
        return {"spark.db.password": f"s3cret of {application}"}

    def mark_hosted_unassigned(self, application: str, trace: str) -> None:
        if not self.answers:
            raise ConnectError("no broker")
        self.traces.append((application, trace))


def _run(tmp_path: Path, hook: _Submit, dag: SimpleNamespace, topics: _Topics | None = None) -> ApplicationOperator:
    path = tmp_path / "w.properties"
    path.write_text("bootstrap.servers=nowhere:1\n")

    class Staged(ApplicationOperator):
        def _settings(self) -> Settings:
            return Settings(worker_properties=path, pause_poll_interval=0.01, settle_time=1)

        def _internal_topics(self, worker: object) -> Any:
            return topics or _Topics()

        def _hook_for(self, submission: Submission, conn_id: str) -> Any:
            return hook

    operator = Staged(task_id="run", application_name="small")
    ti = SimpleNamespace(dag_id="d", get_dag=lambda _: dag, xcom_push=lambda **_: None)
    operator.execute({"ti": ti})  # type: ignore[typeddict-item]
    return operator


def test_it_submits_one_driver_for_the_application(tmp_path: Path) -> None:
    operator = _run(tmp_path, _Submit(lambda: 0), SimpleNamespace(is_paused=False))
    assert operator._submission is not None
    arguments = operator._submission.arguments(1)
    assert arguments[2:4] == ["--application", "small"]
    assert operator._submission.local_slots == 256


def test_a_pause_reschedules_the_task(tmp_path: Path) -> None:
    dag = SimpleNamespace(is_paused=True)
    with pytest.raises(AirflowRescheduleException):
        _run(tmp_path, _Submit(lambda: pytest.fail("a driver")), dag)


@pytest.mark.parametrize("answers", [True, False])
def test_a_driver_that_dies_is_started_again_by_the_same_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    topics = _Topics()
    slept: list[float] = []
    clock = iter(range(10**6))
    monkeypatch.setattr("sluiceway.operators.application.time.sleep", slept.append)
    monkeypatch.setattr("sluiceway.operators.application.time.monotonic", lambda: float(next(clock)))
    exit_codes = iter((137, 0))

    def drive() -> int:
        topics.answers = answers
        return next(exit_codes)

    operator = _run(tmp_path, _Submit(drive), SimpleNamespace(is_paused=False), topics)
    assert operator._submission is not None
    assert operator._submission.conf(None) == {"spark.db.password": "s3cret of small"}
    assert next(exit_codes, None) is None
    assert [name for name, trace in topics.traces if "died with exit code 137" in trace] == ["small"] * answers


def test_a_pause_after_the_death_of_the_driver_reschedules_the_task(tmp_path: Path) -> None:
    dag = SimpleNamespace(is_paused=False)

    def drive() -> int:
        dag.is_paused = True
        return 137

    with pytest.raises(AirflowRescheduleException):
        _run(tmp_path, _Submit(drive), dag, _Topics())


def test_cluster_mode_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(AirflowException, match="client mode only"):
        _run(tmp_path, _Submit(lambda: 0, client=False), SimpleNamespace(is_paused=False))

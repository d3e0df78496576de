"""Tests of the connector operators' micro-batches in a shared application, with a fake task instance and Kafka."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.config.application import Applications
from sluiceway.operators import ConnectorOperator
from sluiceway.provider.compat import AirflowException, AirflowFailException, AirflowRescheduleException, TaskDeferred
from sluiceway.provider.driver.interval_connector import IntervalConnector, Outcome, WantedInterval
from sluiceway.provider.driver.warm_batch import BatchSeen, RequestedBatch
from sluiceway.provider.progress.cluster_view import DriverSeen
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.settings import Settings
from sluiceway.storage.intervals import IntervalEntry
from sluiceway.storage.model import ConnectorEntry, TargetState
from sluiceway.worker.batch_messages import BatchReport, BatchState
from support.fake_intervals import FakeIntervals

WARM = {
    "name": "c",
    "connector.class": "FileStreamSource",
    "topic": "t",
    "airflow.mode": "micro-batch",
    "sluiceway.application": "warm",
}
BEFORE, AFTER = ({"p": 1}, {"o": 1}), ({"p": 1}, {"o": 5})
MOVED = {"records": 4, "seconds": 2.0, "offsets": [{"partition": {"p": 1}, "from": {"o": 1}, "to": {"o": 5}}]}


class Kafka:
    """Fake internal topics with one connector. ``on_wait`` runs while a task waits in its slot, and says if the batch ends."""

    def __init__(self, config: dict[str, str] | None = None, state: BatchState | None = BatchState.DONE) -> None:
        self.config: dict[str, str] | None = config or WARM
        self.target = TargetState.STARTED
        self.report = BatchReport("", state, [BEFORE], 4, 2.0, "a trace") if state is not None else None
        self.superseded = False
        self.on_wait: Callable[[], bool] = lambda: True
        self.calls: list[str] = []
        self.batch = RequestedBatch("", "", "")

    def entry(self, name: str) -> ConnectorEntry | None:
        if self.config is None:
            return None
        return ConnectorEntry(name, self.config, self.target, application=Applications().application(self.config))

    def topics(self, name: str) -> list[str]:
        return ["t"]

    def driver(self, name: str) -> DriverSeen:
        return DriverSeen(True, 1)  # the application's

    def intervals(self) -> Any:
        return self

    def begin(self, wanted: WantedInterval) -> Outcome:
        made = FakeIntervals().begin(wanted)
        assert isinstance(made, IntervalConnector)
        self.calls.append(f"create {made.name}")
        return made

    def end(self, name: str, _records: int | None) -> IntervalEntry:
        self.calls.append(f"delete {name}")
        return FakeIntervals().end(name, None)

    def warm_batch(self, batch: RequestedBatch) -> Any:
        self.batch = batch
        waits = SimpleNamespace(
            request=lambda: self.calls.append("request"),
            cancel=lambda: self.calls.append("cancel"),
            await_end=lambda seconds, interrupted: self.on_wait(),
        )
        return contextlib.nullcontext(waits)

    def batch_seen(self, batch: RequestedBatch) -> BatchSeen:
        report = None if self.report is None else replace(self.report, id=batch.id)
        return BatchSeen(report, self.superseded, ConnectorProgress([AFTER]))

    def cancel_batch(self, batch: RequestedBatch) -> None:
        self.calls.append("cancel")


class Events(dict[Any, Any]):
    """Fake outlet events; counts the assets."""

    def __getitem__(self, alias: Any) -> Any:
        return SimpleNamespace(add=lambda asset, extra: self.setdefault(alias.name, []).append(asset.uri))


@pytest.fixture
def worker_file(tmp_path: Path) -> Path:
    path = tmp_path / "worker.properties"
    path.write_text(
        "bootstrap.servers=nowhere:1\nconfig.providers=airflow\nconfig.providers.airflow.class=AirflowConfigProvider\n"
    )
    return path


Make = Callable[..., tuple[ConnectorOperator, dict[str, Any]]]


@pytest.fixture
def make(worker_file: Path) -> Make:
    """Return an operator and the context of its task."""

    def made(kafka: Kafka, run: Any = None, **kwargs: Any) -> tuple[ConnectorOperator, dict[str, Any]]:
        class Staged(ConnectorOperator):
            def _settings(self) -> Settings:
                return Settings(worker_properties=worker_file, settle_time=4)

            def _internal_topics(self, worker: object) -> Any:
                return kafka

            def _hook_for(self, submission: object, conn_id: str) -> Any:
                raise NotImplementedError("a driver of its own")

        started = datetime(2024, 1, 1, tzinfo=timezone.utc)
        ti: Any = SimpleNamespace(dag_id="c", run_id="r", task_id="run", map_index=-1, start_date=started)
        ti.xcom_push = lambda key, value: None
        ti.get_dag = lambda dag_id: SimpleNamespace(is_paused=False)
        return Staged(task_id="run", connector="c", **kwargs), {"ti": ti, "outlet_events": Events(), "dag_run": run}

    return made


def _deferred(make: Make, kafka: Kafka, **kwargs: Any) -> tuple[ConnectorOperator, Any, TaskDeferred]:
    kafka.on_wait = lambda: False
    operator, context = make(kafka, **kwargs)
    with pytest.raises(TaskDeferred) as raised:
        operator.execute(context)  # type: ignore[arg-type]
    return operator, context, raised.value


def _resume(operator: ConnectorOperator, context: Any, deferred: TaskDeferred, *, failed: bool = False) -> Any:
    event = {"met": not failed, "failed": failed, "seen": "what was seen"}
    return getattr(operator, deferred.method_name)(context, event, **(deferred.kwargs or {}))


def test_a_batch_that_ends_soon_needs_no_deferral(make: Make) -> None:
    kafka = Kafka()
    operator, context = make(kafka)
    assert operator.execute(context) == MOVED  # type: ignore[arg-type]
    assert kafka.calls == ["request"]
    assert (kafka.batch.connector, kafka.batch.application) == ("c", "warm")
    assert list(context["outlet_events"].values()), "the asset events of a micro-batch"


def test_a_longer_batch_is_awaited_in_the_triggerer(make: Make) -> None:
    kafka = Kafka()
    operator, context, deferred = _deferred(make, kafka)
    condition = deferred.trigger.condition
    assert (condition["kind"], condition["batch"], condition.get("deadline")) == ("batch", kafka.batch.id, None)
    assert deferred.trigger.interval == 1
    assert _resume(operator, context, deferred) == MOVED
    assert kafka.calls == ["request"]


def test_an_execution_timeout_holds_while_the_task_is_deferred(make: Make) -> None:
    _, context, deferred = _deferred(make, Kafka(), execution_timeout=timedelta(minutes=1))
    assert deferred.trigger.condition["deadline"] == context["ti"].start_date.timestamp() + 60


def test_ids_of_batches_sort_by_the_time_of_their_request(make: Make) -> None:
    kafka = Kafka()
    operator, context = make(kafka)
    ids = []
    for _ in range(2):
        operator.execute(context)  # type: ignore[arg-type]
        ids.append(kafka.batch.id)
        time.sleep(0.002)
    assert ids == sorted(set(ids))


@pytest.mark.parametrize("deferred", [True, False])
@pytest.mark.parametrize(
    ("state", "message"), [(BatchState.FAILED, "in application warm failed(.|\n)*a trace"), (BatchState.FENCED, "taken over")]
)
def test_a_failed_batch_fails_the_task_with_its_trace(make: Make, state: BatchState, message: str, deferred: bool) -> None:
    kafka = Kafka(state=state)
    if deferred:
        operator, context, raised = _deferred(make, kafka)
        with pytest.raises(AirflowException, match=message):
            _resume(operator, context, raised)
    else:
        operator, context = make(kafka)
        with pytest.raises(AirflowException, match=message):
            operator.execute(context)  # type: ignore[arg-type]


def test_a_wait_that_fails_cancels_the_batch_and_fails_the_task(make: Make) -> None:
    kafka = Kafka(state=BatchState.RUNNING)
    operator, context, deferred = _deferred(make, kafka)
    with pytest.raises(AirflowException, match="Connector c: what was seen"):
        _resume(operator, context, deferred, failed=True)
    assert kafka.calls == ["request", "cancel"]


def test_a_batch_that_another_task_requested_meanwhile_fails_the_first_task(make: Make) -> None:
    kafka = Kafka(state=None)
    kafka.superseded = True
    operator, context, deferred = _deferred(make, kafka)
    with pytest.raises(AirflowException, match="another driver has taken over"):
        _resume(operator, context, deferred)


def test_a_pause_cancels_the_batch_and_the_task_waits_for_the_resume(make: Make) -> None:
    kafka = Kafka(state=None)
    operator, context, deferred = _deferred(make, kafka)
    kafka.target = TargetState.PAUSED
    with pytest.raises(AirflowRescheduleException):
        _resume(operator, context, deferred)
    assert kafka.calls == ["request", "cancel"]


def test_after_a_short_pause_the_task_requests_another_batch(make: Make) -> None:
    kafka = Kafka(state=None)
    operator, context, deferred = _deferred(make, kafka)
    with pytest.raises(TaskDeferred):
        _resume(operator, context, deferred)
    assert kafka.calls == ["request", "cancel", "request"]


def test_the_deletion_of_the_connector_ends_the_task(make: Make) -> None:
    kafka = Kafka(state=None)
    operator, context, deferred = _deferred(make, kafka)
    kafka.config = None
    assert _resume(operator, context, deferred)["records"] is None


def test_a_task_that_airflow_ends_cancels_its_batch(make: Make) -> None:
    kafka = Kafka()
    operator, context = make(kafka)

    def kill() -> bool:
        operator.on_kill()
        return False

    kafka.on_wait = kill
    with pytest.raises(AirflowException, match="Airflow ended the task"):
        operator.execute(context)  # type: ignore[arg-type]
    assert kafka.calls == ["request", "cancel"]


def test_a_timeout_in_the_slot_cancels_the_batch(make: Make) -> None:
    kafka = Kafka()
    operator, context = make(kafka)

    def timeout() -> bool:
        raise TimeoutError

    kafka.on_wait = timeout
    with pytest.raises(TimeoutError):
        operator.execute(context)  # type: ignore[arg-type]
    assert kafka.calls == ["request", "cancel"]


@pytest.mark.parametrize("value", ["${airflow:run:run_id}", "${airflow:run:ds}"])
def test_a_config_with_values_from_airflow_starts_a_driver_of_its_own(make: Make, value: str) -> None:
    kafka = Kafka({**WARM, "topic": value})
    operator, context = make(kafka)
    with pytest.raises(NotImplementedError, match="a driver of its own"):
        operator.execute(context | {"dag_run": None})  # type: ignore[arg-type]
    assert kafka.calls == []


def test_a_mode_that_contradicts_the_config_is_refused(make: Make) -> None:
    long_running = Kafka({key: value for key, value in WARM.items() if key != "airflow.mode"})
    operator, context = make(long_running, mode="micro-batch")
    with pytest.raises(AirflowFailException, match=r"airflow\.mode=micro-batch in the config"):
        operator.execute(context)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["micro-batch", "long-running"])
def test_a_sinks_backfill_runs_in_the_application_and_is_deleted_afterwards(make: Make, mode: str) -> None:
    config = {
        "name": "c",
        "connector.class": "FileStreamSink",
        "topics": "t",
        "airflow.mode": mode,
        "sluiceway.application": "warm",
    }
    interval = {
        "data_interval_start": datetime(2024, 1, 1, tzinfo=timezone.utc),
        "data_interval_end": datetime(2024, 1, 2, tzinfo=timezone.utc),
    }
    run = SimpleNamespace(run_type="backfill", run_id="r", dag_id="c", logical_date=None, **interval)
    kafka = Kafka(config)
    operator, context = make(kafka, run)
    operator.execute(context)  # type: ignore[arg-type]
    name = "c.interval.1704067200000"
    assert kafka.batch.connector == name
    assert kafka.calls == [f"create {name}", "request", f"delete {name}"]

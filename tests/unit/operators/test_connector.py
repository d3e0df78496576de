"""Tests of the connector operators with a fake spark-submit, task instance and Kafka."""

from __future__ import annotations

import itertools
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG

from sluiceway.config.application import Applications
from sluiceway.config.intervals import Interval
from sluiceway.errors import InvalidConfigError
from sluiceway.operators import ConnectorOperator, SinkConnectorOperator, SourceConnectorOperator
from sluiceway.provider.compat import AirflowException, AirflowFailException, AirflowRescheduleException, TaskDeferred
from sluiceway.provider.driver.cluster_trackers import DriverState
from sluiceway.provider.driver.interval_connector import MovedBefore, NotClosed
from sluiceway.provider.driver.submission import Submission
from sluiceway.provider.links import ConnectorRestLink
from sluiceway.provider.progress.cluster_view import DriverSeen
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.settings import Settings
from sluiceway.provider.triggers.conditions import DriverEndedCondition, from_dict
from sluiceway.storage.intervals import IntervalEntry, IntervalState
from sluiceway.storage.model import ConnectorEntry, LeaseOwner, TargetState
from support.eventually import LIMIT
from support.fake_intervals import FakeIntervals

SOURCE = {"name": "c", "connector.class": "FileStreamSource", "topic": "t"}


class Kafka:
    """Fake internal topics with one connector."""

    def __init__(self, config: Mapping[str, str] | None = None, target: TargetState = TargetState.STARTED) -> None:
        self.config = dict(config) if config is not None else None
        self.target = target
        self.default_application: str | None = None
        self.toggled_at = 0
        self.written: list[dict[str, str]] = []
        self.dead: list[tuple[str, str | None]] = []
        self.delays: list[float] = []
        self.during_delay: Callable[[], object] = lambda: None
        self.refuses = False
        self.opened = 0
        self.positions = [ConnectorProgress()]
        self.looked = threading.Event()
        self.seen = DriverSeen(False)
        self.failures: tuple[str, ...] = ()
        self.interval_runs = FakeIntervals()
        self.ended: list[str] = []
        self.on_watch: Callable[[], object] = lambda: None

    def entry(self, name: str) -> ConnectorEntry | None:
        if self.config is None:
            return None
        application = Applications(self.default_application).application(self.config)
        return ConnectorEntry(name, self.config, self.target, target_state_at=self.toggled_at, application=application)

    @contextmanager
    def watched_entry(self, name: str) -> Iterator[Callable[[], ConnectorEntry | None]]:
        self.opened += 1
        self.on_watch()
        yield lambda: self.entry(name)

    def ensure_config(self, name: str, config: Mapping[str, str]) -> None:
        if self.refuses:
            raise InvalidConfigError(['Missing required configuration "topic" which has no default value.'])
        self.written.append(dict(config))
        self.config = dict(config)

    def ensure_paused(self, name: str, still_wanted: Callable[[], bool]) -> bool:
        if self.target is not TargetState.STARTED or not still_wanted():
            return False
        self.target = TargetState.PAUSED
        return True

    def mark_unassigned(self, name: str, trace: str | None = None) -> None:
        self.dead.append((name, trace))

    def await_change(self, name: str, seconds: float, interrupted: Callable[[], bool]) -> None:
        self.delays.append(seconds)
        self.during_delay()
        interrupted()

    def progress(self, name: str) -> ConnectorProgress | None:
        self.looked.set()
        return self.positions.pop(0) if len(self.positions) > 1 else self.positions[0]

    def progress_reader(self, name: str) -> Callable[[], ConnectorProgress]:
        return lambda: self.positions[0]

    def failed(self, name: str, since: float) -> tuple[str, ...]:
        return self.failures

    def topics(self, name: str) -> list[str]:
        return ["t"]

    def driver(self, name: str) -> DriverSeen:
        return self.seen

    def end_driver(self, name: str) -> bool:
        self.ended.append(name)
        return True

    def intervals(self) -> FakeIntervals:
        return self.interval_runs


class SparkSubmit:
    """A fake hook; ``drive`` runs instead of the driver and returns its exit code."""

    is_client_mode = True
    submit_pid = ui_url = None
    tracker: Any = None

    def __init__(self, drive: Callable[[], int]) -> None:
        self._drive = drive
        self.exit_code: int | None = None
        self.last_error: str | None = None
        self.on_interrupt: Callable[[Callable[[], object]], None] = lambda await_end: None
        self.application = ""
        self.killed = self.left = False
        self.awaited: list[str] = []
        self.identifier: str | None = None

    def submit(self, application: str) -> str | None:
        self.application = application
        self.exit_code = self._drive()
        if self.exit_code:
            raise AirflowException(f"Cannot execute: spark-submit. Error code is: {self.exit_code}.")
        return self.identifier

    def await_end(self, driver_id: str) -> None:
        self.awaited.append(driver_id)

    def detach_from_driver(self) -> None:
        self.left = True

    def on_kill(self) -> None:
        self.killed = True


class Airflow:
    """A fake task instance with its DAG's paused flag and the task state store."""

    run_id, task_id, map_index = "r1", "run", -1

    def __init__(self, dag_id: str = "c") -> None:
        self.dag_id = dag_id
        self.task_states: dict[str, Any] = {}
        self.dag = DAG(dag_id)
        self.is_paused = False
        self.deleted_keys: list[str] = []
        self.xcoms: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcoms[key] = value

    def get_dag(self, dag_id: str) -> Any:
        assert dag_id == self.dag_id
        return SimpleNamespace(is_paused=self.is_paused)

    def get_task_states(self, dag_id: str, run_ids: list[str], task_ids: list[str], map_index: int | None) -> dict[str, Any]:
        return {run: self.task_states[run] for run in run_ids if run in self.task_states}

    def delete(self, key: str) -> None:
        self.deleted_keys.append(key)

    def context(self) -> Any:
        return {"ti": self, "task_state_store": self, "dag": self.dag}


class Stage:
    """An operator with its fakes; ``run`` executes it once."""

    def __init__(
        self,
        kafka: Kafka,
        drive: Callable[[], int] = lambda: 0,
        kind: type[ConnectorOperator] = SourceConnectorOperator,
        **kwargs: Any,
    ) -> None:
        self.kafka = kafka
        self.airflow = Airflow()
        self.hook = SparkSubmit(drive)
        stage = self

        class Staged(kind):  # type: ignore[valid-type]
            def _settings(self) -> Settings:
                return Settings(
                    worker_properties=stage.worker,
                    pause_poll_interval=0.01,
                    drain_timeout=30,
                    settle_time=stage.settle_time,
                    pause_linger=stage.linger,
                )

            def _internal_topics(self, worker: object) -> Kafka:
                return stage.kafka

            def _hook_for(self, submission: object, conn_id: str) -> SparkSubmit:
                stage.started = True
                return stage.hook

        self.started = False
        self.linger = 0.0
        self.settle_time = 4.0
        self.operator = Staged(task_id="run", **({"connector": "c"} | kwargs))
        self.worker = Path("/nowhere")

    def run(self) -> None:
        self.operator.execute(self.airflow.context())


@pytest.fixture(autouse=True)
def worker_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "worker.properties"
    path.write_text("bootstrap.servers=nowhere:1\n")
    original = Stage.__init__

    def with_file(self: Stage, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.worker = path

    monkeypatch.setattr(Stage, "__init__", with_file)


def _delay(error: AirflowRescheduleException, began: datetime) -> tuple[float, float]:
    """Return the seconds from a time before the task's end until it shall run again, and from now."""
    return (error.reschedule_date - began).total_seconds(), (error.reschedule_date - datetime.now(timezone.utc)).total_seconds()


# A connector that another task runs.

_BATCH = {**SOURCE, "airflow.mode": "micro-batch"}
OTHER_DAG, OTHER_RUN = LeaseOwner("other", "r7", "go"), LeaseOwner("c", "r0", "run")
OTHER_TASK, OTHER_INDEX = LeaseOwner("c", "r1", "go"), LeaseOwner("c", "r1", "run", 3)


def _held_by(owner: LeaseOwner | None, *, lives: bool = True) -> Kafka:
    kafka = Kafka(SOURCE)
    kafka.seen = DriverSeen(lives, 4, owner=owner)
    return kafka


@pytest.mark.parametrize("owner", [OTHER_DAG, OTHER_TASK], ids=str)
@pytest.mark.parametrize("config", [None, {**SOURCE, "topic": "mine"}])
def test_a_connector_that_another_dag_runs_fails_the_task_without_a_retry_and_stays_as_it_is(
    owner: LeaseOwner, config: dict[str, str] | None
) -> None:
    stage = Stage(_held_by(owner), config=config)
    with pytest.raises(AirflowFailException, match=f"DAG {owner.dag}, run {owner.run}, task {owner.task} runs it"):
        stage.run()
    assert not stage.started
    assert stage.kafka.written == []


@pytest.mark.parametrize("owner", [OTHER_RUN, OTHER_INDEX], ids=str)
def test_another_run_of_the_task_is_awaited_and_then_runs_itself(owner: LeaseOwner) -> None:
    stage = Stage(_held_by(owner), kind=ConnectorOperator)
    stage.kafka.config = _BATCH
    with pytest.raises(TaskDeferred) as deferred:
        stage.run()
    assert (stage.started, deferred.value.trigger.condition) == (
        False,
        {"kind": "rest", "connector": "c", "generation": 3, "patience": 0.0, "hosted": False},
    )
    stage.kafka.seen = DriverSeen(False, 4, owner=owner)
    getattr(stage.operator, deferred.value.method_name)(stage.airflow.context(), {"seen": "the driver has ended"})
    assert stage.started


@pytest.mark.parametrize("state", ["success", "failed", "skipped", "upstream_failed", "removed"])
@pytest.mark.parametrize("owner", [OTHER_DAG, OTHER_RUN], ids=str)
def test_the_driver_of_a_task_that_has_ended_counts_as_dead(owner: LeaseOwner, state: str) -> None:
    stage = Stage(_held_by(owner))
    stage.kafka.config = _BATCH
    stage.settle_time = 0.05
    stage.airflow.task_states = {owner.run: {owner.task: state}}
    stage.run()
    assert stage.started


def test_the_driver_of_a_task_that_was_just_marked_drains_before_the_next_one_starts() -> None:
    looks = iter([True, True, True, False])

    def drive() -> int:
        assert next(looks, None) is None, "the driver before has ended"
        return 0

    stage = Stage(_held_by(OTHER_RUN), drive)
    stage.kafka.config = _BATCH
    stage.kafka.driver = lambda name: DriverSeen(next(looks), 4, owner=OTHER_RUN)  # type: ignore[method-assign]
    stage.settle_time = LIMIT
    stage.airflow.task_states = {OTHER_RUN.run: {OTHER_RUN.task: "failed"}}
    stage.run()
    assert stage.started


@pytest.mark.parametrize("state", ["running", "deferred", "restarting", "up_for_retry", "up_for_reschedule", "queued", None])
def test_a_task_that_has_not_ended_keeps_its_connector(state: str | None) -> None:
    stage = Stage(_held_by(OTHER_DAG))
    stage.airflow.task_states = {"r7": {"go": state}}
    with pytest.raises(AirflowFailException):
        stage.run()


def test_while_airflow_does_not_answer_heartbeats_decide() -> None:
    stage = Stage(_held_by(OTHER_DAG))
    stage.airflow.get_task_states = None  # type: ignore[method-assign, assignment]
    with pytest.raises(AirflowFailException):
        stage.run()


@pytest.mark.parametrize("kafka", [_held_by(LeaseOwner("c", "r1", "run")), _held_by(None), _held_by(OTHER_DAG, lives=False)])
def test_a_task_takes_at_once_its_own_connector_that_of_no_task_and_that_of_a_dead_driver(kafka: Kafka) -> None:
    kafka.config = _BATCH
    stage = Stage(kafka)
    stage.run()
    assert stage.started


def test_a_driver_that_another_dags_driver_has_fenced_is_not_started_again() -> None:
    def drive() -> int:
        stage.kafka.seen = DriverSeen(True, 5, owner=OTHER_DAG)
        return 3

    stage = Stage(Kafka(SOURCE), drive)
    with pytest.raises(AirflowFailException, match="DAG other, run r7, task go runs it"):
        stage.run()


@pytest.mark.parametrize("given", [{"mode": "long-running"}, {"config": SOURCE}])
@pytest.mark.parametrize(("runs", "warned"), [(1, 0), (2, 1), (None, 1)])
def test_a_long_running_connector_in_a_dag_of_several_runs_is_warned_about(
    given: dict[str, Any], runs: int | None, warned: int, recwarn: pytest.WarningsRecorder
) -> None:
    with DAG("d", schedule=None) if runs is None else DAG("d", schedule=None, max_active_runs=runs):
        ConnectorOperator(task_id="t", connector="c", **given)
        ConnectorOperator(task_id="batch", connector="c", mode="micro-batch")
        ConnectorOperator(task_id="unknown", connector="c")
    seen = [str(each.message) for each in recwarn if "Set max_active_runs=1" in str(each.message)]
    assert len(seen) == warned
    assert all("DAG d, task t:" in each for each in seen)


# Before the driver.


def test_a_task_queued_before_the_pause_starts_no_driver() -> None:
    stage = Stage(Kafka(SOURCE))
    stage.airflow.is_paused = True
    with pytest.raises(AirflowRescheduleException):
        stage.run()
    assert not stage.started


@pytest.mark.parametrize("target", [TargetState.PAUSED, TargetState.STOPPED])
def test_a_paused_or_stopped_connector_reschedules_the_task(target: TargetState) -> None:
    stage, began = Stage(Kafka(SOURCE, target)), datetime.now(timezone.utc)
    with pytest.raises(AirflowRescheduleException) as raised:
        stage.run()
    assert not stage.started
    from_the_beginning, from_now = _delay(raised.value, began)
    assert from_the_beginning > 0
    assert from_now < 10


class AirflowBefore32(Airflow):
    """A fake task instance that does not tell whether its DAG is paused."""

    @property
    def get_dag(self) -> Any:
        raise AttributeError("get_dag")


@pytest.mark.parametrize(("target", "started"), [(TargetState.STARTED, True), (TargetState.PAUSED, False)])
def test_before_airflow_3_2_the_target_state_alone_says_whether_the_connector_runs(target: TargetState, started: bool) -> None:
    """The pause sync copies the DAG's flag to it."""
    stage = Stage(Kafka(BATCH, target))
    stage.airflow = AirflowBefore32()
    context = stage.airflow.context() | {"outlet_events": Events()}
    with nullcontext() if started else pytest.raises(AirflowRescheduleException):
        stage.operator.execute(context)
    assert stage.started is started


def test_the_task_waits_in_the_triggerer_for_a_connector_that_does_not_exist_yet() -> None:
    kafka = Kafka(None)
    stage = Stage(kafka)
    with pytest.raises(TaskDeferred) as raised:
        stage.run()
    assert not stage.started
    assert raised.value.trigger.condition == {"kind": "created", "connector": "c"}
    kafka.config = {**SOURCE, "airflow.mode": "micro-batch"}
    context = stage.airflow.context() | {"outlet_events": Events()}
    getattr(stage.operator, raised.value.method_name)(context, {"seen": "the connector exists"}, **(raised.value.kwargs or {}))
    assert stage.started


def test_a_config_in_the_dag_is_stored_with_the_dag_that_runs_it() -> None:
    stage = Stage(Kafka(None), lambda: 3, connector=None, config=SOURCE)
    stage.airflow.dag_id = "mine"
    with pytest.raises(AirflowException, match="another driver"):
        stage.run()
    assert stage.kafka.written == [{**SOURCE, "airflow.dag": "mine", "airflow.config.task": "run"}]
    assert stage.started


@pytest.mark.parametrize("dag", ["mine", "c"])  # the latter has the id that a generated DAG would have
def test_a_config_that_the_dag_no_longer_has_is_left_to_others(dag: str) -> None:
    stage = Stage(Kafka({**SOURCE, "airflow.dag": dag, "airflow.config.task": "run"}), lambda: 3)
    stage.airflow.dag_id = dag
    with pytest.raises(AirflowException, match="another driver"):
        stage.run()
    assert stage.kafka.written == [{**SOURCE, "airflow.dag": dag}]
    with pytest.raises(AirflowException, match="another driver"):
        stage.run()
    assert len(stage.kafka.written) == 1


def test_an_invalid_config_fails_with_the_reason_and_without_a_driver() -> None:
    stage = Stage(Kafka(None), config=SOURCE)
    stage.kafka.refuses = True
    with pytest.raises(AirflowException, match=r"Connector c: .*\n.*Missing required configuration"):
        stage.run()
    assert not stage.started


def test_a_hand_written_dag_takes_over_the_connector_from_the_generated_one() -> None:
    stage = Stage(Kafka(SOURCE), lambda: 3)
    stage.airflow.dag_id = "mine"
    with pytest.raises(AirflowException, match="another driver"):
        stage.run()
    assert stage.kafka.written == [{**SOURCE, "airflow.dag": "mine"}]


def test_the_generated_dag_does_not_take_over_from_a_hand_written_one() -> None:
    stage = Stage(Kafka({**SOURCE, "airflow.dag": "mine"}))
    with pytest.raises(AirflowFailException, match="DAG mine runs it"):
        stage.run()
    assert (stage.started, stage.kafka.written) == (False, [])


def test_an_operator_of_the_other_kind_fails_and_names_the_right_one() -> None:
    with pytest.raises(AirflowException, match="use SourceConnectorOperator"):
        Stage(Kafka(SOURCE), kind=SinkConnectorOperator).run()
    with pytest.raises(AirflowException, match=r"available connectors are: .*\. Did you mean FileStreamSource\?$"):
        Stage(Kafka({**SOURCE, "connector.class": "FileStreemSource"})).run()


def test_an_operator_without_a_name_raises_when_the_dag_is_parsed() -> None:
    with pytest.raises(ValueError, match="needs the connector's name"):
        SourceConnectorOperator(task_id="t", config={"topic": "t"})


# After the driver.


def test_a_pause_sets_the_target_state_and_keeps_the_run() -> None:
    kafka, drained = Kafka(SOURCE), threading.Event()

    def drive() -> int:
        stage.airflow.is_paused = True
        while kafka.target is TargetState.STARTED and not drained.wait(0.01):
            pass
        return 0

    stage, began = Stage(kafka, drive), datetime.now(timezone.utc)
    with pytest.raises(AirflowRescheduleException) as raised:
        stage.run()
    assert kafka.target is TargetState.PAUSED
    from_the_beginning, from_now = _delay(raised.value, began)
    assert from_now <= 4 <= from_the_beginning, "settle_time, and not longer"
    assert kafka.dead == []
    assert stage.airflow.deleted_keys == ["spark_job_id"]


def test_a_resume_within_pause_linger_starts_the_next_driver_in_the_same_try() -> None:
    kafka, drives = Kafka(SOURCE), itertools.count()

    def drive() -> int:
        if next(drives) == 0:
            kafka.target = TargetState.PAUSED
        else:
            assert kafka.target is TargetState.STARTED
            kafka.config = None
        return 0

    stage = Stage(kafka, drive)
    kafka.on_watch = lambda: threading.Timer(0.2, setattr, (kafka, "target", TargetState.STARTED)).start()
    stage.linger = 60.0
    stage.run()
    assert next(drives) == 2
    assert kafka.opened == 1, "the wait has polled more than once"
    assert stage.airflow.deleted_keys == ["spark_job_id"], "otherwise a durable task in cluster mode takes itself for done"


def test_a_resume_during_the_drain_starts_the_next_driver_in_the_same_try() -> None:
    kafka, drives = Kafka(SOURCE), itertools.count()

    def drive() -> int:
        if next(drives) == 0:
            kafka.toggled_at += 2  # paused and resumed
        else:
            kafka.config = None
        return 0

    stage = Stage(kafka, drive)
    stage.run()
    assert next(drives) == 2
    assert kafka.delays == []


def test_a_task_killed_while_it_waits_for_a_resume_ends_immediately() -> None:
    stage = Stage(Kafka(SOURCE, TargetState.STARTED), lambda: 0)

    def drive() -> int:
        stage.kafka.target = TargetState.PAUSED
        threading.Timer(0.2, stage.operator.on_kill).start()
        return 0

    stage.hook = SparkSubmit(drive)
    stage.linger = 60.0
    with pytest.raises(AirflowException, match="Airflow ended the task"):
        stage.run()


def test_an_outage_of_airflow_during_a_pause_reschedules_the_task() -> None:
    stage = Stage(Kafka(SOURCE))

    def drive() -> int:
        stage.kafka.target = TargetState.PAUSED
        stage.airflow.get_dag = lambda _dag_id: 1 / 0  # type: ignore[method-assign, assignment]
        return 0

    stage.hook = SparkSubmit(drive)
    stage.linger = 60.0
    with pytest.raises(AirflowRescheduleException):
        stage.run()


def test_a_stop_by_rest_keeps_the_run_too() -> None:
    kafka = Kafka(SOURCE)

    def drive() -> int:
        kafka.target = TargetState.STOPPED
        return 0

    with pytest.raises(AirflowRescheduleException):
        Stage(kafka, drive).run()


def test_a_deleted_connector_ends_the_task_with_success() -> None:
    kafka = Kafka(SOURCE)

    def drive() -> int:
        kafka.config = None
        return 0

    Stage(kafka, drive).run()


def test_a_connector_deleted_while_the_task_waits_for_a_resume_ends_it_with_success() -> None:
    kafka = Kafka(SOURCE)

    def drive() -> int:
        kafka.target = TargetState.PAUSED
        threading.Timer(0.2, setattr, (kafka, "config", None)).start()
        return 0

    stage = Stage(kafka, drive)
    stage.linger = 60.0
    stage.run()


def test_a_driver_that_dies_is_started_again_by_the_same_task() -> None:
    kafka, drives = Kafka(SOURCE), itertools.count(1)

    def drive() -> int:
        if next(drives) < 9:
            return 137
        kafka.config = None
        return 0

    stage = Stage(kafka, drive)
    stage.hook.last_error = "ModuleNotFoundError: No module named 'foo'"
    stage.run()
    assert kafka.delays == [1, 2, 4, 8, 16, 32, 60, 60]
    assert [name for name, _ in kafka.dead] == ["c"] * 8
    assert kafka.dead[1][1] == (
        "The driver died with exit code 137 (ModuleNotFoundError: No module named 'foo'); see its last lines in the log of its "
        "Airflow task, which starts it again in 2 s (restart 2 since it last ran for ten minutes)."
    )


@pytest.mark.parametrize("exit_code", [0, 10, -9])
def test_a_driver_that_ends_without_a_request_is_started_again(exit_code: int) -> None:
    kafka, drives = Kafka(SOURCE), itertools.count()

    def drive() -> int:
        if next(drives):
            kafka.config = None
        return exit_code if kafka.config else 0

    Stage(kafka, drive).run()
    assert next(drives) == 2
    assert kafka.delays == [1]


@pytest.mark.parametrize("how", ["resumed within pause_linger", "resumed while it drains"])
def test_a_resume_resets_the_delays(how: str) -> None:
    kafka, drives = Kafka(SOURCE), itertools.count(1)

    def drive() -> int:
        number = next(drives)
        if number == 3:
            kafka.toggled_at += 2
            if how == "resumed within pause_linger":
                kafka.target = TargetState.PAUSED
                threading.Timer(0.2, setattr, (kafka, "target", TargetState.STARTED)).start()
        if number == 5:
            kafka.config = None
        return 137 if number in (1, 2, 4) else 0

    stage = Stage(kafka, drive)
    stage.linger = 60.0
    stage.run()
    assert kafka.delays == [1, 2, 1]


def test_a_pause_or_a_deletion_during_the_delay_ends_it() -> None:
    kafka = Kafka(SOURCE)
    stage = Stage(kafka, lambda: 137)
    kafka.during_delay = lambda: setattr(stage.airflow, "is_paused", True)
    with pytest.raises(AirflowRescheduleException):
        stage.run()
    stage.airflow.is_paused = False
    kafka.during_delay = lambda: setattr(kafka, "config", None)
    stage.run()


def test_a_task_killed_during_the_delay_ends_immediately() -> None:
    stage = Stage(Kafka(SOURCE), lambda: 137)
    stage.kafka.during_delay = stage.operator.on_kill
    with pytest.raises(AirflowException, match="Airflow ended the task"):
        stage.run()


def test_an_outage_of_airflow_during_the_delay_does_not_end_the_task() -> None:
    kafka, drives = Kafka(SOURCE), itertools.count()
    stage = Stage(kafka, lambda: 137)
    get_dag = stage.airflow.get_dag

    def drive() -> int:
        if next(drives):
            kafka.config = None
            return 0
        return 137

    def await_change(name: str, seconds: float, interrupted: Callable[[], bool]) -> None:
        stage.airflow.get_dag = lambda _: 1 / 0  # type: ignore[method-assign, assignment]
        assert not interrupted()
        stage.airflow.get_dag = get_dag  # type: ignore[method-assign]

    stage.hook = SparkSubmit(drive)
    kafka.await_change = await_change  # type: ignore[method-assign]
    stage.run()
    assert next(drives) == 2


def test_a_fatal_error_of_the_task_can_be_pickled() -> None:
    with pytest.raises(AirflowException, match="died with exit code 137") as raised:
        Stage(Kafka({**SOURCE, "airflow.mode": "micro-batch"}), lambda: 137).run()
    assert not isinstance(raised.value, (AirflowFailException, AirflowRescheduleException))
    assert isinstance(pickle.loads(pickle.dumps(raised.value)), AirflowException)  # noqa: S301


def test_a_fenced_driver_fails_the_task_and_keeps_the_new_drivers_status() -> None:
    stage = Stage(Kafka(SOURCE), lambda: 3)
    with pytest.raises(AirflowException, match="another driver has taken over"):
        stage.run()
    assert stage.kafka.dead == []


def test_a_micro_batch_succeeds_or_fails_with_its_driver() -> None:
    batch = {**SOURCE, "airflow.mode": "micro-batch"}
    Stage(Kafka(batch), lambda: 0).run()
    with pytest.raises(AirflowException, match="died"):
        Stage(Kafka(batch), lambda: 1).run()


def test_an_outage_of_airflow_does_not_end_the_driver() -> None:
    asked = threading.Event()

    def drive() -> int:
        def down(dag_id: str) -> Any:
            asked.set()
            raise ConnectionError("no API server")

        stage.airflow.get_dag = down  # type: ignore[method-assign]
        assert asked.wait(LIMIT)
        kafka.config = None
        return 0

    kafka = Kafka(SOURCE)
    stage = Stage(kafka, drive)
    stage.run()


def test_a_killed_task_ends_spark_submit_and_fails() -> None:
    stage = Stage(Kafka(SOURCE))

    def drive() -> int:
        stage.operator.on_kill()
        return 143

    stage.hook._drive = drive
    with pytest.raises(AirflowException, match="Airflow ended the task"):
        stage.run()
    assert stage.hook.killed
    assert stage.kafka.dead == []


class _TimeoutOfAirflow(BaseException):
    """As AirflowTaskTimeout, whose module differs between versions."""


@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_an_execution_timeout_drains_the_driver_before_the_task_fails(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    """Airflow raises an exception in the main thread, which blocks in spark-submit, and calls on_kill after execute."""
    stage, calls = Stage(Kafka(SOURCE)), []

    class Processes:
        def refresh(self) -> None: ...

        def drain_within(self, seconds: float, await_end: Callable[[], object]) -> None:
            calls.append((seconds, await_end()))

    def drive() -> int:
        stage.hook.on_interrupt(lambda: "ended")
        raise _TimeoutOfAirflow

    stage.hook._drive = drive
    stage.hook.is_client_mode = mode == "client"
    stage.airflow.get = lambda key: None  # type: ignore[attr-defined]
    monkeypatch.setattr(stage.operator, "_driver_processes", lambda hook: Processes() if hook.is_client_mode else None)
    with pytest.raises(_TimeoutOfAirflow):
        stage.run()
    assert calls == ([(30, "ended")] if mode == "client" else [])
    assert not stage.hook.killed


def test_a_task_killed_before_it_has_a_driver_does_nothing() -> None:
    stage = Stage(Kafka(SOURCE))
    stage.operator.on_kill()
    assert not stage.started


# Summary, asset events, and the source of the config.

BATCH = {**SOURCE, "airflow.mode": "micro-batch"}


class Events(dict[Any, list[tuple[str, Any]]]):
    """Fake outlet events; records the added assets by the alias's name, because aliases of older Airflows cannot be hashed."""

    def __missing__(self, alias: Any) -> Any:
        added = self.setdefault(alias.name, [])
        return SimpleNamespace(add=lambda asset, extra: added.append((asset.uri, extra)))

    def __getitem__(self, alias: Any) -> Any:
        return self.__missing__(alias)

    def all(self) -> list[tuple[str, Any]]:
        return [each for added in self.values() for each in added]


def _moving(kafka: Kafka) -> Callable[[], int]:
    def drive() -> int:
        assert kafka.looked.wait(LIMIT), "the first measurement is before the driver moves records"
        kafka.positions = [ConnectorProgress([({"filename": "f"}, {"position": 14})], count=3)]
        return 0

    return drive


def test_a_micro_batch_returns_a_summary_and_emits_asset_events() -> None:
    kafka = Kafka(BATCH)
    stage = Stage(kafka, _moving(kafka))
    events = Events()
    moved = stage.operator.execute(stage.airflow.context() | {"outlet_events": events})
    assert moved["offsets"] == [{"partition": {"filename": "f"}, "from": None, "to": {"position": 14}}]
    assert moved["seconds"] >= 0
    assert events.all() == [("sluiceway://connectors/c", moved), ("kafka://nowhere:1/t", moved)]


def test_a_micro_batch_without_records_emits_no_asset_event() -> None:
    stage = Stage(Kafka(BATCH), lambda: 0)
    events = Events()
    assert stage.operator.execute(stage.airflow.context() | {"outlet_events": events})["offsets"] == []
    assert events.all() == []


def test_a_config_may_be_a_file_on_the_worker(tmp_path: Path) -> None:
    path = tmp_path / "c.properties"
    path.write_text("\n".join(f"{key}={value}" for key, value in SOURCE.items()))
    stage = Stage(Kafka(None), lambda: 3, connector=None, config=str(path))
    with pytest.raises(AirflowException, match="another driver"):
        stage.run()
    assert stage.kafka.written == [{**SOURCE, "airflow.dag": "c", "airflow.config.task": "run"}]


def test_a_file_with_several_connectors_needs_a_name(tmp_path: Path) -> None:
    path = tmp_path / "two.json"
    path.write_text('[{"name": "c", "topic": "t"}, {"name": "d", "topic": "t"}]')
    stage = Stage(Kafka(None), connector=None, config=str(path))
    with pytest.raises(AirflowException, match=r"holds 2 connectors \(c, d\)\. Select one"):
        stage.run()
    assert not stage.started


def test_the_argument_mode_overrides_the_config() -> None:
    Stage(Kafka(SOURCE), lambda: 0, mode="micro-batch").operator.execute(
        Stage(Kafka(SOURCE)).airflow.context() | {"outlet_events": Events()}
    )
    with pytest.raises(ValueError, match="mode must be 'long-running' or 'micro-batch'"):
        Stage(Kafka(SOURCE), mode="streaming")


# Backfills.

_RUN = SimpleNamespace(
    run_type="backfill",
    run_id="r",
    dag_id="c",
    logical_date=None,
    data_interval_start=datetime(2024, 1, 1, tzinfo=timezone.utc),
    data_interval_end=datetime(2024, 1, 2, tzinfo=timezone.utc),
)


def test_a_backfill_runs_a_temporary_connector_and_deletes_it() -> None:
    kafka = Kafka({**BATCH, "topic": "${airflow:run:ds}"})
    stage = Stage(kafka, lambda: 0)
    stage.operator.execute(stage.airflow.context() | {"dag_run": _RUN, "outlet_events": Events()})
    assert kafka.interval_runs.calls == [("begin", "c.interval.1704067200000"), ("end", "c.interval.1704067200000")]
    submission = stage.operator._submission
    assert submission is not None
    assert (submission.connector, submission.mode) == ("c.interval.1704067200000", "micro-batch")


def test_a_failed_backfill_keeps_its_connector_for_the_retry() -> None:
    kafka = Kafka({**BATCH, "topic": "${airflow:run:ds}"})
    stage = Stage(kafka, lambda: 1)
    with pytest.raises(AirflowException, match="died"):
        stage.operator.execute(stage.airflow.context() | {"dag_run": _RUN})
    assert kafka.interval_runs.calls == [("begin", "c.interval.1704067200000"), ("fail", "c.interval.1704067200000")]
    assert [name for name, _ in kafka.dead] == ["c.interval.1704067200000"], "the live connector's status is unchanged"


def test_a_source_without_references_to_the_run_is_not_backfilled() -> None:
    stage = Stage(Kafka(BATCH))
    with pytest.raises(AirflowFailException, match="has no time by which it could read an interval"):
        stage.operator.execute(stage.airflow.context() | {"dag_run": _RUN})
    assert not stage.started


# Exact intervals.

SINK = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", "airflow.mode": "micro-batch"}
_HOUR = _RUN.__dict__ | {"run_type": "scheduled"}
_NAME = "c.interval.1704067200000"


def _exact(kafka: Kafka, *, catchup: bool = False, kind: type[ConnectorOperator] = SinkConnectorOperator, **more: Any) -> Any:
    """Run an operator in a scheduled run of a day; return its XCom."""
    stage = Stage(kafka, kind=kind, **more)
    stage.airflow.dag = DAG("c", schedule="@daily", start_date=datetime(2024, 1, 1, tzinfo=timezone.utc), catchup=catchup)
    return stage.operator.execute(stage.airflow.context() | {"dag_run": SimpleNamespace(**_HOUR), "outlet_events": Events()})


@pytest.mark.parametrize(
    ("key", "argument", "catchup", "is_exact"),
    [
        (None, None, False, False),
        (None, None, True, True),
        ("exact", None, False, True),
        ("available", None, True, False),
        ("available", "exact", False, True),
        ("exact", "available", True, False),
    ],
)
def test_a_run_is_exact_by_the_operator_else_the_config_else_catchup(
    key: str | None, argument: str | None, catchup: bool, is_exact: bool
) -> None:
    kafka = Kafka({**SINK, **({"airflow.interval": key} if key else {})})
    moved = _exact(kafka, catchup=catchup, interval=argument)
    assert kafka.interval_runs.calls == ([("begin", _NAME), ("end", _NAME)] if is_exact else [])
    assert ("interval" in moved) is is_exact


def test_an_exact_run_returns_its_interval_and_how_many_records_were_late() -> None:
    kafka = Kafka({**SINK, "airflow.interval": "exact"})
    kafka.interval_runs.late = 3
    assert _exact(kafka)["interval"] == {
        "start": "1970-01-01T00:00:00Z",
        "end": "1970-01-01T00:00:00.001000Z",
        "attempt": 1,
        "late": 3,
        "at_least": False,
    }


def test_an_interval_that_was_moved_before_is_not_moved_into_a_target_that_keeps_both() -> None:
    kafka = Kafka({**SINK, "airflow.interval": "exact"})
    kafka.interval_runs.outcomes = [MovedBefore(IntervalEntry(Interval(0, 1), IntervalState.DONE, 1, runs=("r0",), records=5))]
    moved = _exact(kafka)
    assert moved["records"] == 0
    assert kafka.interval_runs.calls == []


def test_what_the_last_try_has_moved_is_told_by_this_one() -> None:
    kafka = Kafka({**SINK, "airflow.interval": "exact"})
    done = IntervalEntry(Interval(0, 1), IntervalState.DONE, 1, runs=("r",), records=5)
    kafka.interval_runs.outcomes = [MovedBefore(done, by_last_try=True)]
    assert _exact(kafka)["records"] == 5


def test_an_interval_that_is_not_complete_fails_the_task() -> None:
    kafka = Kafka({**SINK, "airflow.interval": "exact"})
    kafka.interval_runs.incomplete = "t-0 is committed up to offset 3 of 5"
    with pytest.raises(AirflowException, match="up to offset 3 of 5") as raised:
        _exact(kafka)
    assert not isinstance(raised.value, AirflowFailException), "the next try continues"
    assert kafka.interval_runs.calls == [("begin", _NAME), ("fail", _NAME)]


def test_a_run_waits_until_no_more_records_of_its_interval_may_come() -> None:
    kafka = Kafka({**SINK, "airflow.interval": "exact"})
    soon, late = time.time() + 0.2, time.time() + 3600
    kafka.interval_runs.outcomes = [NotClosed(Interval(0, 1), int(soon * 1000)), NotClosed(Interval(0, 1), int(late * 1000))]
    with pytest.raises(AirflowRescheduleException) as raised:
        _exact(kafka)
    assert int(time.time() * 1000) >= int(soon * 1000), "it waits in its slot for seconds, and gives the slot up for hours"
    assert raised.value.reschedule_date.timestamp() == pytest.approx(late, abs=1)
    assert [wanted.run_id for wanted in kafka.interval_runs.wanted] == ["r", "r"]


LOG = {
    "name": "c",
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "airflow.mode": "micro-batch",
    "airflow.interval": "exact",
}


def test_the_live_connector_moves_the_intervals_of_a_log() -> None:
    kafka = Kafka(LOG)
    assert _exact(kafka, kind=SourceConnectorOperator)["interval"]["attempt"] == 1
    assert kafka.interval_runs.calls == [("begin", "c"), ("end", "c")]
    failing = Kafka(LOG)
    failing.interval_runs.incomplete = "why"
    with pytest.raises(AirflowException, match="why"):
        _exact(failing, kind=SourceConnectorOperator)
    assert failing.interval_runs.calls == [("begin", "c"), ("fail", "c")]


def test_a_run_of_a_log_that_is_not_exact_leaves_the_interval_of_a_dead_run() -> None:
    kafka = Kafka({**LOG, "airflow.interval": "available"})
    assert "interval" not in _exact(kafka, kind=SourceConnectorOperator)
    assert kafka.interval_runs.calls == [("leave", "c")], "its driver would end there"


def test_a_run_of_a_log_gives_up_its_slot_while_another_one_begins() -> None:
    kafka = Kafka(LOG)
    soon = int(time.time() * 1000) + 500
    kafka.interval_runs.outcomes = [NotClosed(Interval(0, 1), soon, by="another")]
    with pytest.raises(AirflowRescheduleException):
        _exact(kafka, kind=SourceConnectorOperator)
    assert kafka.interval_runs.calls == [], "its next start sees whether the other's driver lives"


def test_a_backfill_of_a_log_that_is_read_all_the_time_is_refused() -> None:
    stage = Stage(Kafka({**LOG, "airflow.mode": "long-running"}), kind=SourceConnectorOperator)
    run = SimpleNamespace(**(_HOUR | {"run_type": "backfill"}))
    with pytest.raises(AirflowFailException, match="it reads once"):
        stage.operator.execute(stage.airflow.context() | {"dag_run": run, "outlet_events": Events()})


def test_a_source_without_a_time_cannot_be_exact_and_moves_what_is_available_where_the_dag_catches_up() -> None:
    kafka = Kafka(BATCH)
    assert "interval" not in _exact(kafka, catchup=True, kind=SourceConnectorOperator)
    with pytest.raises(AirflowFailException, match=r"FileStreamSource.* has no time"):
        _exact(Kafka({**BATCH, "airflow.interval": "exact"}), kind=SourceConnectorOperator)
    with pytest.raises(AirflowFailException, match="runs all the time has no intervals"):
        _exact(Kafka(SOURCE), kind=SourceConnectorOperator, interval="exact")
    with pytest.raises(AirflowFailException, match="runs all the time has no intervals"):
        _exact(Kafka({**SINK, "airflow.interval": "exact"}), mode="long-running")
    with pytest.raises(ValueError, match="interval must be"):
        SinkConnectorOperator(task_id="run", connector="c", interval="hourly")


# Drivers in a cluster or in a shared application.


def _deferred(stage: Stage, **settings: Any) -> TaskDeferred:
    stage.hook.is_client_mode = False
    stage.airflow.get = lambda key: None  # type: ignore[attr-defined]
    with pytest.raises(TaskDeferred) as raised:
        stage.run()
    return raised.value


def test_in_cluster_mode_the_task_waits_for_a_running_driver_and_submits_no_second_one() -> None:
    kafka = Kafka(SOURCE)
    kafka.seen = DriverSeen(True, 4)
    stage = Stage(kafka, lambda: pytest.fail("a second driver"))
    deferred = _deferred(stage)
    assert deferred.method_name == "after_wait"
    assert deferred.trigger.condition["generation"] == 3, "the task waits for the running driver"


@pytest.mark.parametrize("how", ["submitted", "runs already", "of another run", "hosted"])
def test_an_execution_timeout_holds_while_the_task_is_deferred(how: str) -> None:
    kafka = Kafka({**SOURCE, "sluiceway.application": "a"} if how == "hosted" else SOURCE)
    if how in ("runs already", "of another run"):
        kafka.seen = DriverSeen(True, 4, owner=OTHER_RUN if how == "of another run" else None)
    stage = Stage(kafka, deferrable=True, durable=False, execution_timeout=timedelta(minutes=3))
    stage.hook.is_client_mode = False
    stage.airflow.start_date = datetime(2024, 1, 1, tzinfo=timezone.utc)  # type: ignore[attr-defined]
    with pytest.raises(TaskDeferred) as deferred:
        stage.run()
    assert deferred.value.trigger.condition["deadline"] == datetime(2024, 1, 1, 0, 3, tzinfo=timezone.utc).timestamp()
    event = {"met": False, "failed": True, "seen": "not ended within the task's execution_timeout"}
    with pytest.raises(AirflowException, match="Connector c: not ended within the task's execution_timeout"):
        getattr(stage.operator, deferred.value.method_name)(stage.airflow.context(), event, **(deferred.value.kwargs or {}))
    own = how in ("submitted", "runs already")
    assert kafka.ended == (["c"] if own else [])
    condition = from_dict(deferred.value.trigger.condition)
    assert isinstance(condition, DriverEndedCondition)
    assert condition.own is own


@pytest.mark.parametrize(
    ("given", "executor", "level"),
    [
        (True, "LocalExecutor", "warning"),
        (True, "CeleryExecutor", "warning"),
        (None, "LocalExecutor", None),
        (None, "CeleryExecutor", "info"),
        (False, "CeleryExecutor", None),
    ],
)
def test_a_task_that_cannot_be_deferred_in_client_mode_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: bool | None, executor: str, level: str | None
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    stage = Stage(Kafka({**SOURCE, "airflow.mode": "micro-batch"}), deferrable=given)
    stage.run()
    lines = [line for line in capsys.readouterr().out.splitlines() if "Not deferred: Spark runs in client mode" in line]
    assert [level in line for line in lines if level] == ([True] if level else [])
    assert bool(lines) is (level is not None)


EXECUTORS = [
    ("LocalExecutor", None, False),
    ("CeleryExecutor", None, True),
    ("airflow.providers.cncf.kubernetes.executors.kubernetes_executor.KubernetesExecutor", None, True),
    ("airflow.executors.local_executor.LocalExecutor", None, False),
    ("LocalExecutor, CeleryExecutor", None, False),
    ("LocalExecutor,CeleryExecutor", "CeleryExecutor", True),
    ("CeleryExecutor,LocalExecutor", "LocalExecutor", False),
    ("LocalExecutor,pods:our.package.PodExecutor", "pods", True),
    ("LocalExecutor,pods:our.package.PodExecutor", "our.package.PodExecutor", True),
    ("CeleryExecutor,near:airflow.executors.local_executor.LocalExecutor", "near", False),
]


@pytest.mark.parametrize(("configured", "executor", "deferred"), EXECUTORS)
def test_a_task_is_deferrable_by_default_if_its_worker_may_be_on_another_machine(
    monkeypatch: pytest.MonkeyPatch, configured: str, executor: str | None, deferred: bool
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", configured)
    assert ConnectorOperator(task_id="t", connector="c", executor=executor).deferrable is deferred
    assert not ConnectorOperator(task_id="t", connector="c", executor=executor, deferrable=False).deferrable
    assert not ConnectorOperator(task_id="t", connector="c", executor=executor, on_failed_tasks="fail").deferrable
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
    assert ConnectorOperator(task_id="t", connector="c", executor=executor).deferrable


def test_in_cluster_mode_a_deferrable_task_submits_and_waits_in_the_triggerer() -> None:
    stage = Stage(Kafka(SOURCE), deferrable=True)
    deferred = _deferred(stage)
    assert deferred.trigger.condition["kind"] == "rest"
    assert stage.hook.left, "spark-submit does not wait for the driver's end"


def test_a_deferred_task_stores_the_connections_id_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = {"admin.sasl.jaas.config": "s3cret"}
    monkeypatch.setattr("sluiceway.operators.driver_operator.kafka_overrides", lambda conn_id: secret)
    stage = Stage(Kafka(SOURCE), deferrable=True, kafka_conn_id="broker")
    deferred = _deferred(stage)
    stored = repr((deferred.trigger.serialize(), deferred.kwargs))
    assert "'kafka_conn_id': 'broker'" in stored
    assert "s3cret" not in stored


def test_a_driver_that_never_started_fails_the_task() -> None:
    kafka = Kafka(BATCH)
    kafka.seen = DriverSeen(False, 4)  # of the previous run, which ended normally
    stage = Stage(kafka, deferrable=True)
    deferred = _deferred(stage)
    event = {"met": True, "failed": False, "seen": "the driver has ended"}
    with pytest.raises(AirflowException, match="died") as raised:
        stage.operator.after_wait(stage.airflow.context(), event, **(deferred.kwargs or {}))
    assert "No driver started" in str(raised.value.__cause__)
    kafka.seen = DriverSeen(False, 5)
    context = stage.airflow.context() | {"outlet_events": Events()}
    assert stage.operator.after_wait(context, event, **(deferred.kwargs or {}))["records"] is None


def test_a_backfill_in_cluster_mode_waits_for_the_temporary_connector_and_deletes_it() -> None:
    kafka = Kafka({**BATCH, "topic": "${airflow:run:ds}"})
    stage = Stage(kafka, deferrable=True)
    stage.hook.is_client_mode = False
    stage.airflow.get = lambda key: None  # type: ignore[attr-defined]
    with pytest.raises(TaskDeferred) as raised:
        stage.operator.execute(stage.airflow.context() | {"dag_run": _RUN})
    name = "c.interval.1704067200000"
    assert raised.value.trigger.condition["connector"] == name
    kafka.seen = DriverSeen(False, 1)
    context = stage.airflow.context() | {"dag_run": _RUN, "outlet_events": Events()}
    event = {"met": True, "failed": False, "seen": "the driver has ended"}
    stage.operator.after_wait(context, event, **(raised.value.kwargs or {}))
    assert kafka.interval_runs.calls == [("begin", name), ("end", name)]


def test_on_yarn_a_task_needs_no_rest_api_of_the_resource_manager() -> None:
    stage = Stage(Kafka(BATCH))
    stage.hook.is_client_mode = False
    stage.airflow.get = lambda key: None  # type: ignore[attr-defined]
    stage.operator.execute(stage.airflow.context() | {"outlet_events": Events()})
    assert stage.started


class _Cluster:
    """A cluster manager that knows one driver."""

    interval = 0.0

    def __init__(self, state: DriverState) -> None:
        self._state = state

    def state(self, identifier: str) -> DriverState:
        return self._state


@pytest.mark.parametrize(
    ("known", "state", "awaited", "stored"),
    [
        (None, None, ["driver-2"], ["driver-2"]),
        ("driver-1", DriverState("RUNNING", True), ["driver-1"], []),
        ("driver-1", DriverState("FINISHED", False, True), [], []),
        ("driver-1", DriverState("KILLED", False), ["driver-2"], ["driver-2"]),
    ],
)
@pytest.mark.parametrize("durable", [True, False])
def test_a_retry_waits_for_the_driver_of_an_earlier_try_if_the_cluster_still_runs_it(
    known: str | None, state: DriverState | None, awaited: list[str], stored: list[str], durable: bool
) -> None:
    stage = Stage(Kafka(BATCH), durable=durable)
    stage.hook.is_client_mode = False
    stage.hook.tracker = _Cluster(state or DriverState("RUNNING", True))
    stage.hook.identifier = "driver-2"
    kept = {"spark_job_id": known} if known else {}
    written: list[str] = []
    stage.airflow.get = kept.get  # type: ignore[attr-defined]
    stage.airflow.set = lambda key, value: written.append(value)  # type: ignore[attr-defined]
    stage.operator.execute(stage.airflow.context() | {"outlet_events": Events()})
    assert (stage.hook.awaited, written) == ((awaited, stored) if durable else (["driver-2"], []))


def test_airflow_without_a_store_for_tasks_submits_and_waits() -> None:
    stage = Stage(Kafka(BATCH))
    stage.hook.is_client_mode = False
    stage.hook.tracker = _Cluster(DriverState("RUNNING", True))
    stage.hook.identifier = "driver-2"
    context = stage.airflow.context() | {"outlet_events": Events()}
    del context["task_state_store"]  # before Airflow 3.3
    stage.operator.execute(context)
    assert stage.hook.awaited == ["driver-2"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("executor_cores", 3), ("deploy_mode", "cluster"), ("yarn_queue", "q"), ("files", "/f"), ("post_submit_commands", ["true"])],
)
def test_options_of_airflows_operator_reach_spark_submit_from_the_operator_and_from_default_args(name: str, value: Any) -> None:
    with DAG("d", default_args={name: value}):
        by_default = SourceConnectorOperator(task_id="t", connector="c")
    own = SourceConnectorOperator(task_id="t", connector="c", **{name: value})
    for operator in (by_default, own):
        hook = operator._hook_for(Submission("c", Path("/w.properties"), "long-running", {}), "missing")
        assert getattr(hook.options, name) == (tuple(value) if isinstance(value, list) else value)


def test_a_connector_of_a_shared_application_submits_no_driver() -> None:
    stage = Stage(Kafka({**SOURCE, "sluiceway.application": "small"}), lambda: pytest.fail("a driver"))
    with pytest.raises(TaskDeferred) as raised:
        stage.run()
    assert raised.value.trigger.condition["hosted"] is True
    assert stage.airflow.xcoms[ConnectorRestLink().xcom_key].endswith("/status"), "the link is stored before the wait"


def _after_wait(kafka: Kafka, **began: Any) -> tuple[Stage, Any]:
    """Continue a task after its wait; return what it does next."""
    stage = Stage(kafka, deferrable=True)
    stage.hook.is_client_mode = False
    stage.airflow.get = lambda key: None  # type: ignore[attr-defined]
    context = stage.airflow.context() | {"outlet_events": Events()}
    event = {"met": True, "failed": False, "seen": "the driver has ended"}
    try:
        return stage, stage.operator.after_wait(context, event, **began)
    except (AirflowException, TaskDeferred) as error:
        return stage, error


@pytest.mark.parametrize(
    ("config", "target", "clean", "outcome"),
    [
        (SOURCE, TargetState.PAUSED, True, AirflowRescheduleException),
        (SOURCE, TargetState.STARTED, True, TaskDeferred),
        (SOURCE, TargetState.STARTED, False, TaskDeferred),
        (BATCH, TargetState.STARTED, False, AirflowException),
        (BATCH, TargetState.STARTED, True, dict),
        (None, TargetState.STARTED, True, dict),
    ],
)
def test_after_the_wait_the_task_continues_as_after_its_own_driver(
    config: dict[str, str] | None, target: TargetState, clean: bool, outcome: type
) -> None:
    kafka = Kafka(config, target)
    kafka.seen = DriverSeen(False, 5, clean)
    assert type(_after_wait(kafka)[1]) is outcome


def test_in_cluster_mode_restarts_are_counted_over_the_waits() -> None:
    kafka = Kafka(SOURCE)
    kafka.seen = DriverSeen(False, 5, clean=False)
    _, first = _after_wait(kafka)
    _, second = _after_wait(kafka, **first.kwargs)
    assert second.kwargs["began"]["restarts"] == 2
    stage, third = _after_wait(kafka, began=second.kwargs["began"] | {"generation": 4, "time": time.time() - 601})
    assert third.kwargs["began"]["restarts"] == 1, "the driver ran for ten minutes"
    assert kafka.delays == [1, 2, 1]
    assert stage.airflow.deleted_keys == ["spark_job_id"], "otherwise the next try takes the dead driver for its own"


def test_in_cluster_mode_a_resume_while_the_driver_drains_resets_the_delays() -> None:
    kafka = Kafka(SOURCE)
    kafka.seen = DriverSeen(False, 5, clean=False)
    _, first = _after_wait(kafka)
    kafka.toggled_at += 2
    kafka.seen = DriverSeen(False, 6, clean=True)
    _, second = _after_wait(kafka, **first.kwargs)
    assert second.kwargs["began"]["restarts"] == 0
    assert kafka.delays == [1], "the driver that drained has not died"


def test_a_hosted_connector_that_was_resumed_waits_again_without_a_delay() -> None:
    kafka = Kafka({**SOURCE, "sluiceway.application": "small"})
    kafka.toggled_at = 7
    _, outcome = _after_wait(kafka)
    assert outcome.trigger.condition["hosted"] is True
    assert kafka.delays == []


def test_a_connector_that_is_moved_into_a_shared_application_is_left_to_it_after_its_driver_has_drained() -> None:
    kafka = Kafka(SOURCE)
    stage = Stage(kafka, lambda: setattr(kafka, "default_application", "small") or 0)
    with pytest.raises(TaskDeferred) as raised:
        stage.run()
    assert raised.value.trigger.condition["hosted"] is True
    assert raised.value.kwargs == {"hosted": True}
    assert (kafka.dead, kafka.delays) == ([], []), "the shared driver's statuses stay"


def test_a_connector_that_leaves_a_shared_application_gets_a_driver_of_its_own_without_a_delay() -> None:
    kafka = Kafka({**SOURCE, "spark.driver.memory": "2g"})
    kafka.default_application = "small"
    stage, outcome = _after_wait(kafka, hosted=True)
    assert stage.started
    assert outcome.trigger.condition["hosted"] is False
    assert kafka.delays == []


def test_a_hand_written_dag_runs_its_connector_although_there_is_a_default_application() -> None:
    kafka = Kafka(SOURCE)
    kafka.default_application = "small"
    stage = Stage(kafka, lambda: setattr(kafka, "config", None) or 0)
    stage.airflow.dag_id = "mine"
    stage.run()
    assert stage.started
    assert kafka.written[0]["airflow.dag"] == "mine"

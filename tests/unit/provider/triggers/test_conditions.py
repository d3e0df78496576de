"""Tests of the conditions of sensors and triggers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.config.intervals import Interval
from sluiceway.errors import NotFoundError
from sluiceway.provider.progress.cluster_view import DriverSeen
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.triggers import conditions
from sluiceway.provider.triggers.conditions import (
    BatchEndedCondition,
    Condition,
    CreatedCondition,
    DriverEndedCondition,
    IntervalCondition,
    LagCondition,
    OffsetsCondition,
    RecordsCondition,
    StateCondition,
    from_dict,
    to_dict,
)
from sluiceway.provider.triggers.lag_trigger import LagGate
from sluiceway.storage.intervals import IntervalEntry, IntervalState, Ledger
from sluiceway.storage.model import ConnectorEntry, TargetState
from sluiceway.worker.batch_messages import BatchReport, BatchState

NOW, SOON, PAST = 1_800_000_000.0, 1_800_001_000.0, 0.0


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it be NOW: a test may run any time after its parameters were made."""
    monkeypatch.setattr(conditions, "time", SimpleNamespace(time=lambda: NOW))


class View:
    """A cluster with one connector, c."""

    def __init__(
        self,
        position: ConnectorProgress | None = None,
        driver: DriverSeen | None = None,
        target: str | None = "STARTED",
        application: str | None = "small",
        config: Mapping[str, str] | None = None,
    ) -> None:
        self._application = application
        self._config = config or {}
        self._position = position
        self._driver = driver or DriverSeen(False)
        self._target = target
        self.messages: tuple[str | None, BatchReport | None] = (None, None)
        self.ledger = Ledger()

    def batch(self, name: str) -> tuple[str | None, BatchReport | None]:
        return self.messages

    def entry(self, name: str) -> ConnectorEntry | None:
        return (
            None
            if self._target is None
            else ConnectorEntry(name, self._config, TargetState(self._target), application=self._application)
        )

    def driver(self, name: str) -> DriverSeen:
        return self._driver

    def progress(self, name: str) -> ConnectorProgress:
        if self._position is None:
            raise NotFoundError("Connector c not found")
        return self._position

    def records_since(self, topic: str, milliseconds: int, until: int | None = None) -> int | None:
        return {"t": 5 if milliseconds < 1000 and until in (None, 2000) else 0}.get(topic)

    def intervals(self, name: str) -> Ledger:
        return self.ledger


def _met(condition: Condition, view: View) -> bool:
    answer = from_dict(json.loads(json.dumps(to_dict(condition)))).check(view)  # type: ignore[arg-type]
    assert not answer.failed
    return answer.met


def test_a_condition_on_the_creation_is_met_once_the_connector_exists() -> None:
    assert _met(CreatedCondition("c"), View(target="PAUSED"))
    assert not _met(CreatedCondition("c"), View(target=None))


def test_a_lag_condition_is_met_at_its_limit_and_fails_for_a_source() -> None:
    assert _met(LagCondition("c", 10), View(ConnectorProgress(lag=10)))
    assert not _met(LagCondition("c", 10), View(ConnectorProgress(lag=11)))
    assert not _met(LagCondition("c", 10), View(None)), "the connector does not exist yet"
    assert LagCondition("c", 10).check(View(ConnectorProgress(lag=None))).failed  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ({"kafka_offset": 100}, True),
        ({"kafka_offset": 99}, True),
        ({"kafka_offset": 101}, False),
        ({"kafka_offset": "x"}, False),
        ({"other": 1}, False),
        ({"kafka_offset": 100, "other": 1}, False),
    ],
)
def test_offsets_are_reached_if_each_named_field_is(wanted: dict[str, Any], there: bool) -> None:
    partition = {"kafka_topic": "t", "kafka_partition": 0}
    view = View(
        ConnectorProgress([({"kafka_partition": 0, "kafka_topic": "t"}, {"kafka_offset": 100}), ({"kafka_partition": 1}, None)])
    )
    assert _met(OffsetsCondition("c", [{"partition": partition, "offset": wanted}]), view) is there


def test_a_partition_without_an_offset_is_not_reached() -> None:
    condition = OffsetsCondition("c", [{"partition": {"p": 1}, "offset": {"o": 0}}])
    assert not _met(condition, View(ConnectorProgress()))
    assert not _met(condition, View(None))


def test_records_count_from_a_timestamp() -> None:
    assert _met(RecordsCondition("t", 999, 5), View())
    assert not _met(RecordsCondition("t", 999, 6), View())
    assert not _met(RecordsCondition("t", 1000), View())
    assert not _met(RecordsCondition("not there", 0), View())
    assert _met(RecordsCondition("t", 999, 5, until=2000), View())
    assert not _met(RecordsCondition("t", 999, 5, until=1000), View())


_DONE, _RUNNING, _FAILED = IntervalState.DONE, IntervalState.RUNNING, IntervalState.FAILED


@pytest.mark.parametrize(
    ("moved", "is_met", "is_met_by_a_log"),
    [
        ([(10, 20, _DONE)], True, True),
        ([(10, 15, _DONE), (15, 20, _DONE)], True, True),
        ([(0, 30, _DONE)], True, True),
        ([(5, 12, _DONE), (12, 25, _DONE)], True, True),
        ([(10, 20, _RUNNING)], False, False),
        ([(10, 20, _FAILED)], False, False),
        ([(10, 15, _DONE)], False, False),
        ([(10, 15, _DONE), (16, 20, _DONE)], False, True),
        ([(20, 30, _DONE)], False, True),
        ([], False, False),
    ],
)
def test_an_interval_is_moved_if_runs_have_moved_all_of_it(
    moved: list[tuple[int, int, IntervalState]], is_met: bool, is_met_by_a_log: bool
) -> None:
    condition = IntervalCondition("c", 10, 20)
    log = {"connector.class": "io.debezium.connector.postgresql.PostgresConnector"}
    for config, expected in ({"connector.class": "FileStreamSink"}, is_met), (log, is_met_by_a_log):
        view = View(config=config)
        view.ledger = Ledger({start: IntervalEntry(Interval(start, end), state) for start, end, state in moved})
        assert _met(condition, view) is expected, config
    assert not _met(condition, View(target=None)), "the connector does not exist yet"


@pytest.mark.parametrize(
    ("condition", "driver", "target", "ended"),
    [
        (DriverEndedCondition("c", 3, SOON), DriverSeen(False, 3), "STARTED", False),  # submitted, not started yet
        (DriverEndedCondition("c", 3, PAST), DriverSeen(False, 3), "STARTED", True),  # it never started
        (DriverEndedCondition("c", 3, SOON), DriverSeen(True, 4), "STARTED", False),
        (DriverEndedCondition("c", 3, SOON), DriverSeen(False, 4), "STARTED", True),  # started and ended
        (DriverEndedCondition("c", 3, SOON, deadline=SOON), DriverSeen(False, 4), "STARTED", True),
        (DriverEndedCondition("c", 3, SOON), DriverSeen(True, 4), "PAUSED", False),  # still draining
        (DriverEndedCondition("c", 3, SOON), DriverSeen(False, 4), "PAUSED", True),
        (DriverEndedCondition("c", 3, SOON), DriverSeen(False, 3), None, True),  # deleted
        (DriverEndedCondition("c", hosted=True), DriverSeen(False, 4), "STARTED", False),  # its application restarts it
        (DriverEndedCondition("c", hosted=True), DriverSeen(False, 4), "STOPPED", True),
    ],
)
def test_the_condition_is_met_when_the_driver_has_ended(
    condition: DriverEndedCondition, driver: DriverSeen, target: str | None, ended: bool
) -> None:
    assert _met(condition, View(driver=driver, target=target)) is ended


def test_the_task_of_a_connector_that_is_stopped_while_it_moves_waits() -> None:
    moving = View(driver=DriverSeen(False, 4), target="STOPPED", config={"sluiceway.migrate.state": "RUNNING"})
    assert not _met(DriverEndedCondition("c", 3, PAST), moving)


@pytest.mark.parametrize("hosted", [False, True])
@pytest.mark.parametrize("lives", [False, True])
def test_the_wait_for_a_driver_fails_when_the_tasks_time_is_over(lives: bool, hosted: bool) -> None:
    for deadline, failed in ((1.0, True), (SOON, False), (None, False)):
        condition = DriverEndedCondition("c", 4, SOON, hosted=hosted, deadline=deadline)
        view: Any = View(driver=DriverSeen(lives, 4), target="STARTED")
        result = condition.check(view)
        assert (result.met, result.failed) == (False, failed)
        assert from_dict(to_dict(condition)) == condition
    deleted: Any = View(driver=DriverSeen(False), target=None)
    assert not DriverEndedCondition("c", deadline=1.0).check(deleted).failed


def _batch(since: float = PAST, deadline: float | None = None) -> BatchEndedCondition:
    return BatchEndedCondition("c", "warm", "2", since, 60, deadline)


@pytest.mark.parametrize(
    ("condition", "driver", "target", "requested", "report", "met", "failed"),
    [
        (_batch(), DriverSeen(False), "STARTED", "2", BatchReport("2", BatchState.DONE), True, False),
        (_batch(), DriverSeen(True), "STARTED", "2", BatchReport("2", BatchState.RUNNING), False, False),
        (_batch(), DriverSeen(True), "STARTED", "1", BatchReport("1", BatchState.DONE), False, False),  # of the run before
        (_batch(), DriverSeen(True), "STARTED", "3", None, True, False),  # of another task
        (_batch(), DriverSeen(True), None, "2", None, True, False),  # deleted
        (_batch(), DriverSeen(True), "PAUSED", "2", None, False, False),  # still draining
        (_batch(), DriverSeen(False), "PAUSED", "2", None, True, False),
        (_batch(deadline=SOON), DriverSeen(True), "STARTED", "2", None, False, False),
        (_batch(deadline=1.0), DriverSeen(True), "STARTED", "2", None, False, True),
        (_batch(), DriverSeen(False), "STARTED", "2", None, False, True),  # the application does not run
        (_batch(since=SOON), DriverSeen(False), "STARTED", None, None, False, False),
        (_batch(), DriverSeen(False, at=SOON), "STARTED", "2", None, False, False),  # its driver has just died
    ],
)
def test_the_wait_for_a_micro_batch(
    condition: BatchEndedCondition,
    driver: DriverSeen,
    target: str | None,
    requested: str | None,
    report: BatchReport | None,
    met: bool,
    failed: bool,
) -> None:
    view = View(driver=driver, target=target)
    view.messages = requested, report
    result = from_dict(json.loads(json.dumps(to_dict(condition)))).check(view)  # type: ignore[arg-type]
    assert (result.met, result.failed) == (met, failed), result.seen


@pytest.mark.parametrize(("lives", "met"), [(True, False), (False, True)])
def test_a_connector_that_leaves_its_shared_application_is_drained_first(lives: bool, met: bool) -> None:
    view = View(driver=DriverSeen(lives, 4), target="STARTED", application=None)
    assert _met(DriverEndedCondition("c", hosted=True), view) is met


def test_a_condition_is_unchanged_after_serialization() -> None:
    condition = StateCondition("c", ("PAUSED", "STOPPED"), tasks=False, fail_on=("FAILED",))
    assert to_dict(from_dict(to_dict(condition))) == to_dict(condition)


def test_an_unchanged_lag_opens_the_gate_again_after_a_commit_or_a_timeout() -> None:
    now = 0.0
    gate = LagGate(10, patience=60, clock=lambda: now)
    assert not gate.opens(9, 100, running=False)
    assert not gate.opens(10, 100, running=True), "a driver runs"
    assert gate.opens(10, 100, running=False)
    assert not gate.opens(11, 100, running=False)
    assert gate.opens(12, 103, running=False), "something was committed"
    now = 61.0
    assert gate.opens(12, 103, running=False)
    assert not gate.opens(None, None, running=False)

"""Tests of the connector state sensor."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.errors import KafkaClientError, NotFoundError
from sluiceway.provider.compat import AirflowFailException, AirflowRescheduleException, TaskDeferred
from sluiceway.provider.progress.cluster_view import ConnectorStates
from sluiceway.provider.settings import Settings
from sluiceway.provider.triggers.conditions import Condition, ConditionResult
from sluiceway.sensors import ConnectorStateSensor, base
from sluiceway.storage.model import State

RUNNING, FAILED, PAUSED, UNASSIGNED = State.RUNNING, State.FAILED, State.PAUSED, State.UNASSIGNED


class View:
    """A fake cluster with one connector, c."""

    def __init__(self, seen: ConnectorStates | Callable[[], ConnectorStates]) -> None:
        self._seen = seen

    def states(self, name: str) -> ConnectorStates:
        assert name == "c"
        return self._seen() if callable(self._seen) else self._seen


def _poke(seen: ConnectorStates | Callable[[], ConnectorStates], **kwargs: Any) -> bool:
    class Staged(ConnectorStateSensor):
        def _check(self, condition: Condition) -> ConditionResult:
            view: Any = View(seen)  # the sensor reads only states
            return condition.check(view)

    return Staged(task_id="s", connector="c", **kwargs).poke({})


@pytest.mark.parametrize(
    ("connector", "tasks", "there"),
    [
        (RUNNING, {0: RUNNING, 1: RUNNING}, True),
        (RUNNING, {0: RUNNING, 1: UNASSIGNED}, False),
        (RUNNING, {0: FAILED}, False),
        (RUNNING, {}, False),
        (UNASSIGNED, {0: RUNNING}, False),
    ],
)
def test_by_default_it_waits_until_the_connector_and_all_its_tasks_run(
    connector: State, tasks: dict[int, State], there: bool
) -> None:
    assert _poke(ConnectorStates(connector, tasks)) is there


def test_tasks_false_checks_the_connector_alone() -> None:
    assert _poke(ConnectorStates(RUNNING, {0: FAILED}), tasks=False)


def test_it_waits_for_any_of_the_given_states() -> None:
    stopped = ConnectorStates(State.STOPPED, {})
    assert _poke(stopped, states=("PAUSED", "STOPPED"))
    assert not _poke(stopped, states=("PAUSED",))


def test_a_state_in_fail_on_fails_the_sensor() -> None:
    seen = ConnectorStates(RUNNING, {0: RUNNING, 1: FAILED})
    assert not _poke(seen)
    with pytest.raises(AirflowFailException, match="connector RUNNING, task 0 RUNNING, task 1 FAILED"):
        _poke(seen, fail_on=("FAILED",))


def test_a_failed_task_fails_the_sensor_of_the_connector_alone_with_fail_on() -> None:
    with pytest.raises(AirflowFailException, match="connector RUNNING, task 0 FAILED"):
        _poke(ConnectorStates(RUNNING, {0: FAILED}), tasks=False, fail_on=("FAILED",))


def test_it_waits_for_a_connector_that_does_not_exist_yet() -> None:
    def missing() -> ConnectorStates:
        raise NotFoundError("No status found for connector c")

    assert not _poke(missing)


def test_the_default_mode_holds_no_slot_between_pokes() -> None:
    assert ConnectorStateSensor(task_id="s", connector="c").mode == "reschedule"
    assert ConnectorStateSensor(task_id="s", connector="c", mode="poke").mode == "poke"


def test_an_unknown_state_raises_when_the_dag_is_parsed() -> None:
    with pytest.raises(ValueError, match="RUNING"):
        ConnectorStateSensor(task_id="s", connector="c", states=("RUNING",))


@pytest.mark.parametrize(("poke_interval", "next_poke"), [(1, 8), (60, 60)])
def test_a_rescheduled_poke_waits_at_least_for_settle_time(
    monkeypatch: pytest.MonkeyPatch, poke_interval: float, next_poke: float
) -> None:
    monkeypatch.setenv("AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL", "3")
    monkeypatch.setattr(ConnectorStateSensor, "poke", lambda self, context: False)
    sensor = ConnectorStateSensor(task_id="s", connector="c", poke_interval=poke_interval)
    ti = SimpleNamespace(get_first_reschedule_date=lambda context: None)
    before = datetime.now(timezone.utc)
    with pytest.raises(AirflowRescheduleException) as raised:
        sensor.execute({"ti": ti})  # type: ignore[typeddict-item]
    waits = raised.value.reschedule_date - before
    assert timedelta(seconds=next_poke) <= waits <= datetime.now(timezone.utc) - before + timedelta(seconds=next_poke)


def test_it_defers_even_if_kafka_does_not_answer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Staged(ConnectorStateSensor):
        def _check(self, condition: Condition) -> ConditionResult:
            raise KafkaClientError("no broker", "_TRANSPORT")

    monkeypatch.setattr(base, "read_settings", lambda: Settings(worker_properties=tmp_path / "w"))
    with pytest.raises(TaskDeferred) as raised:
        Staged(task_id="s", connector="c", deferrable=True, kafka_conn_id="broker").execute({})
    assert raised.value.trigger.kafka_conn_id == "broker", "only the connection's id is stored"
    with pytest.raises(KafkaClientError):
        Staged(task_id="t", connector="c", deferrable=False, mode="poke").execute({})

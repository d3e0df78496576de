"""What sensors and triggers wait for."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from sluiceway.errors import NotFoundError
from sluiceway.provider.progress.cluster_view import DriverSeen
from sluiceway.provider.progress.connector_progress import ConnectorProgress
from sluiceway.provider.triggers.conditions import (
    Condition,
    DriverEndedCondition,
    LagCondition,
    OffsetsCondition,
    RecordsCondition,
    StateCondition,
    from_dict,
    to_dict,
)
from sluiceway.provider.triggers.lag_trigger import LagGate
from sluiceway.storage.model import ConnectorEntry, TargetState


class View:
    """A cluster with one connector, c."""

    def __init__(
        self, position: ConnectorProgress | None = None, driver: DriverSeen | None = None, target: str | None = "STARTED"
    ) -> None:
        self._position = position
        self._driver = driver or DriverSeen(False)
        self._target = target

    def entry(self, name: str) -> ConnectorEntry | None:
        return None if self._target is None else ConnectorEntry(name, {}, TargetState(self._target))

    def driver(self, name: str) -> DriverSeen:
        return self._driver

    def progress(self, name: str) -> ConnectorProgress:
        if self._position is None:
            raise NotFoundError("Connector c not found")
        return self._position

    def records_since(self, topic: str, milliseconds: int) -> int | None:
        return {"t": 5 if milliseconds < 1000 else 0}.get(topic)


def _met(condition: Condition, view: View) -> bool:
    answer = from_dict(json.loads(json.dumps(to_dict(condition)))).check(view)  # type: ignore[arg-type]
    assert not answer.failed
    return answer.met


def test_a_lag_is_waited_for_and_a_source_has_none() -> None:
    assert _met(LagCondition("c", 10), View(ConnectorProgress(lag=10)))
    assert not _met(LagCondition("c", 10), View(ConnectorProgress(lag=11)))
    assert not _met(LagCondition("c", 10), View(None)), "one that does not exist yet"
    assert LagCondition("c", 10).check(View(ConnectorProgress(lag=None))).failed  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "there"),
    [
        ({"kafka_offset": 100}, True),
        ({"kafka_offset": 99}, True),
        ({"kafka_offset": 101}, False),
        ({"kafka_offset": "x"}, False),
        ({"other": 1}, False),
    ],
)
def test_offsets_are_there_once_each_named_field_has_reached_its_value(wanted: dict[str, Any], there: bool) -> None:
    partition = {"kafka_topic": "t", "kafka_partition": 0}
    view = View(
        ConnectorProgress([({"kafka_partition": 0, "kafka_topic": "t"}, {"kafka_offset": 100}), ({"kafka_partition": 1}, None)])
    )
    assert _met(OffsetsCondition("c", [{"partition": partition, "offset": wanted}]), view) is there


def test_a_partition_without_an_offset_is_waited_for() -> None:
    condition = OffsetsCondition("c", [{"partition": {"p": 1}, "offset": {"o": 0}}])
    assert not _met(condition, View(ConnectorProgress()))
    assert not _met(condition, View(None))


def test_a_topics_records_are_counted_from_a_time_on() -> None:
    assert _met(RecordsCondition("t", 999, 5), View())
    assert not _met(RecordsCondition("t", 999, 6), View())
    assert not _met(RecordsCondition("t", 1000), View())
    assert not _met(RecordsCondition("not there", 0), View())


SOON, PAST = time.time() + 1000, 0.0


@pytest.mark.parametrize(
    ("condition", "driver", "target", "rests"),
    [
        (DriverEndedCondition("c", 3, SOON), DriverSeen(False, 3), "STARTED", False),  # submitted, not there yet
        (DriverEndedCondition("c", 3, PAST), DriverSeen(False, 3), "STARTED", True),  # it never came
        (DriverEndedCondition("c", 3, SOON), DriverSeen(True, 4), "STARTED", False),
        (DriverEndedCondition("c", 3, SOON), DriverSeen(False, 4), "STARTED", True),  # came and went
        (DriverEndedCondition("c", 3, SOON), DriverSeen(True, 4), "PAUSED", False),  # drains
        (DriverEndedCondition("c", 3, SOON), DriverSeen(False, 4), "PAUSED", True),
        (DriverEndedCondition("c", 3, SOON), DriverSeen(False, 3), None, True),  # deleted
        (DriverEndedCondition("c", hosted=True), DriverSeen(False, 4), "STARTED", False),  # others start it again
        (DriverEndedCondition("c", hosted=True), DriverSeen(False, 4), "STOPPED", True),
    ],
)
def test_a_driver_elsewhere_is_waited_for(
    condition: DriverEndedCondition, driver: DriverSeen, target: str | None, rests: bool
) -> None:
    assert _met(condition, View(driver=driver, target=target)) is rests


def test_a_state_condition_survives_the_way_to_the_triggerer() -> None:
    condition = StateCondition("c", ("PAUSED", "STOPPED"), tasks=False, fail_on=("FAILED",))
    assert to_dict(from_dict(to_dict(condition))) == to_dict(condition)


def test_a_lag_that_stays_is_a_reason_once_and_again_after_a_commit_or_a_while() -> None:
    now = 0.0
    gate = LagGate(10, patience=60, clock=lambda: now)
    assert not gate.opens(9, 100, running=False)
    assert not gate.opens(10, 100, running=True), "somebody is at it"
    assert gate.opens(10, 100, running=False)
    assert not gate.opens(11, 100, running=False)
    assert gate.opens(12, 103, running=False), "something was committed"
    now = 61.0
    assert gate.opens(12, 103, running=False)
    assert not gate.opens(None, None, running=False)

"""Tests of which numbered application runs a connector."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from sluiceway.config.application import Applications
from sluiceway.herder.application_plan import alive, gone, members, plan_placement
from sluiceway.herder.states import Clock
from sluiceway.storage.model import ClusterState, ConnectorEntry, ConnectorStatuses, State, Status, TargetState

NOW = 1_000_000
CLOCK = Clock(NOW, 25_000)


def entry(name: str, placed: str | None = None, **config: str) -> ConnectorEntry:
    application = Applications("a").application(config, placed)
    return ConnectorEntry(name, config, placed=placed, application=application)


def status(state: State, age: int = 0) -> ConnectorStatuses:
    return ConnectorStatuses(Status(state, "host:1", 1, timestamp=NOW - age))


def test_members_are_those_whose_config_or_the_default_names_the_application() -> None:
    entries = [entry("b"), entry("a"), entry("own", **{"spark.x": "1"}), entry("other", **{"sluiceway.application": "o"})]
    state = ClusterState({each.name: each for each in [*entries, ConnectorEntry("deleted")]})
    assert [each.name for each in members(state, Applications("a"), "a")] == ["a", "b"]
    assert [each.name for each in members(state, Applications("a"), "o")] == ["other"]


def test_connectors_fill_one_application_after_the_other() -> None:
    plan = plan_placement([entry(str(number)) for number in range(5)], "a", 2, ())
    assert list(plan.values()) == ["a", "a", "a-2", "a-2", "a-3"]


def test_a_new_connector_goes_where_the_fewest_tasks_are_and_the_others_stay() -> None:
    there = [entry("x", "a"), entry("y", "a"), entry("z", "a-3")]
    assert plan_placement([*there, entry("new")], "a", 3, ()) == {"new": "a-3"}
    assert plan_placement(there, "a", 1, ()) == {}, "a lower limit moves nothing"


@pytest.mark.parametrize(
    ("new", "application"),
    [
        (entry("new", **{"tasks.max": "2"}), "a-2"),
        (entry("new", **{"tasks.max": "9"}), "a-2"),
        (entry("new", **{"tasks.max": "many"}), "a"),
        (replace(entry("new", **{"tasks.max": "9"}), task_configs=({},), applied_config={}), "a"),
    ],
)
def test_a_connector_counts_with_its_tasks(new: ConnectorEntry, application: str) -> None:
    assert plan_placement([entry("x", "a", **{"tasks.max": "2"}), new], "a", 3, ()) == {"new": application}


def test_the_connectors_of_an_application_that_is_gone_move_and_no_others() -> None:
    there = [entry("x", "a"), entry("y", "a-2"), entry("z", "a-3")]
    assert plan_placement(there, "a", 2, {"a-2"}) == {"y": "a"}
    assert plan_placement(there, "a", 1, {"a-2"}) == {"y": "a-4"}
    assert plan_placement(there, "a", 2, {"a"}) == {"x": "a-2"}


def test_a_stored_application_of_another_name_does_not_count() -> None:
    assert plan_placement([entry("x", "b-2")], "a", 2, ()) == {"x": "a"}


def test_any_history_of_creations_and_deletions_keeps_the_limit_and_moves_nothing() -> None:
    chosen = random.Random(16)  # noqa: S311 (not a secret)
    there: dict[str, ConnectorEntry] = {}
    for number in range(300):
        if there and chosen.random() < 0.4:
            del there[chosen.choice(sorted(there))]
        there[str(number)] = entry(str(number), **{"tasks.max": str(chosen.randint(1, 4))})
        plan = plan_placement(list(there.values()), "a", 6, ())
        assert set(plan) == {str(number)}
        there[str(number)] = entry(str(number), plan[str(number)], **there[str(number)].config or {})
        loads = {each.placed: 0 for each in there.values()}
        for each in there.values():
            loads[each.placed] += int((each.config or {})["tasks.max"])
        assert max(loads.values()) <= 6


@pytest.mark.parametrize(
    ("statuses", "target", "is_gone"),
    [
        (status(State.RUNNING), TargetState.STARTED, False),
        (status(State.RUNNING, 40_000), TargetState.STARTED, False),
        (status(State.RUNNING, 60_000), TargetState.STARTED, True),
        (status(State.UNASSIGNED, 60_000), TargetState.STARTED, False),
        (status(State.RUNNING, 60_000), TargetState.PAUSED, False),
        (ConnectorStatuses(), TargetState.STARTED, False),
    ],
)
def test_an_application_is_gone_if_nobody_has_taken_note_of_its_drivers_death(
    statuses: ConnectorStatuses, target: TargetState, is_gone: bool
) -> None:
    there = [replace(entry("x", "a-2"), target_state=target)]
    assert gone(there, {"x": statuses}, CLOCK) == ({"a-2"} if is_gone else set())


def test_an_application_with_one_fresh_heartbeat_is_alive() -> None:
    there = [entry("x", "a-2"), entry("y", "a-2"), entry("z")]
    statuses = {"x": status(State.RUNNING, 60_000), "y": status(State.RUNNING)}
    assert alive(there, statuses, CLOCK) == {"a-2"}
    assert gone(there, statuses, CLOCK) == set()

"""Tests of how paused flags and target states follow each other."""

from __future__ import annotations

import itertools

import pytest

from sluiceway.provider.pause_sync.rules import (
    ConnectorTasks,
    Decision,
    Toggle,
    changed,
    decide,
    generated,
    is_newer,
    moved_away,
    moving,
    targets_by_dag,
)
from sluiceway.storage.memory import MemoryConfigBackingStore
from sluiceway.storage.model import ClusterState, ConnectorEntry, TargetState

STARTED, PAUSED, STOPPED = TargetState.STARTED, TargetState.PAUSED, TargetState.STOPPED

# agreed, paused, target -> set_paused, put_target: every case of a DAG with one connector.
ONE_CONNECTOR = [
    # Nothing was agreed yet (startup, or a new DAG or connector): the topic wins.
    (None, False, STARTED, None, None),
    (None, False, PAUSED, True, None),
    (None, False, STOPPED, True, None),
    (None, True, STARTED, False, None),
    (None, True, PAUSED, None, None),
    (None, True, STOPPED, None, None),
    # Both were active: the side that differs has changed.
    (False, False, STARTED, None, None),
    (False, False, PAUSED, True, None),
    (False, False, STOPPED, True, None),
    (False, True, STARTED, None, PAUSED),
    (False, True, PAUSED, None, None),
    (False, True, STOPPED, None, None),
    # Both were paused.
    (True, False, STARTED, None, None),
    (True, False, PAUSED, None, STARTED),
    (True, False, STOPPED, None, STARTED),
    (True, True, STARTED, False, None),
    (True, True, PAUSED, None, None),
    (True, True, STOPPED, None, None),
]


def test_the_table_has_every_case() -> None:
    cases = {row[:3] for row in ONE_CONNECTOR}
    assert cases == set(itertools.product((None, False, True), (False, True), TargetState))


@pytest.mark.parametrize(("agreed", "paused", "target", "set_paused", "put"), ONE_CONNECTOR)
def test_one_connector(
    agreed: bool | None, paused: bool, target: TargetState, set_paused: bool | None, put: TargetState | None
) -> None:
    decision = decide(agreed, paused, {"c": target})
    assert decision.set_paused is set_paused
    assert dict(decision.put_target) == ({} if put is None else {"c": put})


@pytest.mark.parametrize("targets", [c for n in (1, 2, 3) for c in itertools.product(TargetState, repeat=n)])
@pytest.mark.parametrize(("agreed", "paused"), list(itertools.product((None, False, True), (False, True))))
def test_one_decision_makes_both_sides_equal_and_the_next_changes_nothing(
    agreed: bool | None, paused: bool, targets: tuple[TargetState, ...]
) -> None:
    named = {str(number): target for number, target in enumerate(targets)}
    first = decide(agreed, paused, named)
    paused = paused if first.set_paused is None else first.set_paused
    named |= first.put_target
    assert decide(first.agreed, paused, named) == Decision(agreed=paused)
    assert {target is not STARTED for target in named.values()} == {paused}


@pytest.mark.parametrize("targets", list(itertools.product(TargetState, repeat=2)))
@pytest.mark.parametrize(("agreed", "paused"), list(itertools.product((None, False, True), (False, True))))
def test_a_decision_that_failed_is_made_again(agreed: bool | None, paused: bool, targets: tuple[TargetState, ...]) -> None:
    named = {str(number): target for number, target in enumerate(targets)}
    first = decide(agreed, paused, named)
    assert decide(first.agreed, paused, named) == first


@pytest.mark.parametrize("agreed", [None, False, True])
@pytest.mark.parametrize("newer", [False, True])
def test_no_flag_starts_a_connector_that_has_moved(agreed: bool | None, newer: bool) -> None:
    stopped = {"c": TargetState.STOPPED}
    assert decide(agreed, False, stopped, flag_is_newer=newer, moved={"c"}) == Decision(True, set_paused=True)
    assert decide(agreed, True, stopped, flag_is_newer=newer, moved={"c"}) == Decision(True)
    others = {**stopped, "d": TargetState.STARTED}
    assert decide(agreed, False, others, flag_is_newer=newer, moved={"c"}) == Decision(False)


@pytest.mark.parametrize("agreed", [None, False, True])
@pytest.mark.parametrize("newer", [False, True])
@pytest.mark.parametrize("other", [{}, {"d": TargetState.STOPPED}, {"d": TargetState.STARTED}])
def test_the_dag_of_a_moving_connector_runs_and_changes_nothing(
    agreed: bool | None, newer: bool, other: dict[str, TargetState]
) -> None:
    targets = {"c": TargetState.STOPPED, **other}
    assert decide(agreed, True, targets, flag_is_newer=newer, moving={"c"}) == Decision(False, set_paused=False)
    assert decide(agreed, False, targets, flag_is_newer=newer, moving={"c"}) == Decision(False)


@pytest.mark.parametrize(
    ("mark", "target", "expected"),
    [
        ("RUNNING", TargetState.STOPPED, {"c"}),
        ("FAILED", TargetState.STOPPED, {"c"}),
        ("PAUSED", TargetState.STOPPED, set()),
        ("STOPPED", TargetState.STOPPED, set()),
        ("RUNNING", TargetState.STARTED, set()),
    ],
)
def test_only_a_connector_that_a_move_has_stopped_and_will_start_is_moving(
    mark: str, target: TargetState, expected: set[str]
) -> None:
    store = MemoryConfigBackingStore()
    store.put_connector("c", {"name": "c", "sluiceway.migrate.state": mark}, target)
    store.put_connector("e", {"name": "e", "sluiceway.migrate.state": mark, "airflow.mode": "micro-batch"}, target)
    store.put_connector("d", {"name": "d"}, TargetState.STOPPED)
    assert moving(store.snapshot()) == expected
    resting = {"c", "e"} if target is TargetState.STOPPED else set()
    assert moved_away(store.snapshot()) == resting - expected, "no flag starts one that rests while it moves"


def test_pausing_a_dag_of_two_connectors_pauses_both_and_leaves_a_stopped_one() -> None:
    assert decide(False, True, {"a": STARTED, "b": STOPPED}).put_target == {"a": PAUSED}


def test_pausing_one_connector_of_a_dag_pauses_the_dag_and_the_other() -> None:
    assert decide(False, False, {"a": PAUSED, "b": STARTED}) == Decision(False, True, {"b": PAUSED})


def test_at_the_start_one_paused_connector_pauses_a_dag_of_two() -> None:
    assert decide(None, False, {"a": PAUSED, "b": STARTED}) == Decision(None, True, {"b": PAUSED})


def test_resuming_a_dag_resumes_a_stopped_connector() -> None:
    assert decide(True, False, {"a": STOPPED}).put_target == {"a": STARTED}


def test_a_dag_without_connectors_is_not_changed_and_not_remembered() -> None:
    assert decide(True, False, {}) == Decision(None)


def _state(*entries: ConnectorEntry) -> ClusterState:
    return ClusterState({entry.name: entry for entry in entries})


def test_connectors_are_grouped_by_the_dag_that_runs_them() -> None:
    state = _state(
        ConnectorEntry("a b", {}, STOPPED),
        ConnectorEntry("c", {"airflow.dag": "mine"}),
        ConnectorEntry("d", {"airflow.dag": "mine"}, PAUSED),
        ConnectorEntry("gone", None, PAUSED),
        ConnectorEntry("x" * 300, {}),
    )
    assert targets_by_dag(state) == {"a_x20b": {"a b": STOPPED}, "mine": {"c": STARTED, "d": PAUSED}}


@pytest.mark.parametrize(
    ("task", "index", "rendered", "cleared"),
    [
        ("a", -1, {"connector": "asked", "config": None}, True),
        ("a", 2, {"connector": "asked"}, True),
        ("a", 2, {"connector": "other"}, False),
        ("a", -1, {"connector": None, "config": {"name": "asked"}}, True),
        ("a", -1, {"connector": "other", "config": {"name": "asked"}}, False),  # the argument wins
        ("setter", -1, {"connector": "other"}, False),
        ("setter", -1, {"connector": None, "config": "/etc/asked.json"}, True),
        ("setter", 2, {"connector": None, "config": "/etc/asked.json"}, False),  # each index has a file of its own
        ("a", -1, {"connector": None, "config": "/etc/asked.json"}, False),
        ("check", -1, {"sql": "select 1"}, False),
        ("check", -1, {}, False),
        ("setter", -1, None, True),
        ("a", -1, None, False),
    ],
)
def test_the_task_of_a_connector_is_found_by_what_airflow_has_rendered(
    task: str, index: int, rendered: dict[str, object] | None, cleared: bool
) -> None:
    tasks = ConnectorTasks({"asked": "setter"}, is_only=False)
    assert tasks.include(task, index, rendered) is cleared
    assert ConnectorTasks({"asked": "setter"}, is_only=True).include(task, index, rendered) is (cleared or rendered is None)


def test_a_dag_has_changed_only_if_a_key_it_depends_on_has() -> None:
    tagged = {"airflow.tags": "t"}
    before = generated(
        _state(ConnectorEntry("a", {"db.password": "1", **tagged}), ConnectorEntry("b", {}), ConnectorEntry("c", {}))
    )
    now = generated(
        _state(
            ConnectorEntry("a", {"db.password": "2", **tagged}),
            ConnectorEntry("c", {"airflow.tags": "u"}),
            ConnectorEntry("d", {}),
            ConnectorEntry("e", {"airflow.dag": "mine"}),
        )
    )
    assert changed(before, now) == {"b", "c", "d"}


@pytest.mark.parametrize(
    ("toggle", "newer"),
    [
        (None, False),
        (Toggle(paused=True, at=5), False),
        (Toggle(paused=True, at=15), False),
        (Toggle(paused=True, at=20), False),
        (Toggle(paused=True, at=25), True),
        (Toggle(paused=False, at=25), False),  # does not explain the flag
    ],
)
def test_a_toggle_is_newer_if_it_came_after_the_target_states_of_all_connectors(toggle: Toggle | None, newer: bool) -> None:
    entries = {name: ConnectorEntry(name, {}, PAUSED, target_state_at=at) for name, at in (("a", 10), ("b", 20))}
    assert is_newer(toggle, True, ClusterState(entries), ["a", "b", "gone"], 0) is newer
    for since in (None, 26):
        assert not is_newer(toggle, True, ClusterState(entries), ["a", "b", "gone"], since)

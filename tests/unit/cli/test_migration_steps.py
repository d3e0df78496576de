"""The next step of a move, for each state of both clusters."""

from __future__ import annotations

import pytest

from sluiceway.cli.migration_steps import (
    ConnectorView,
    MigrationError,
    Step,
    Tasks,
    final_state,
    next_step,
    offset_edits,
    too_old,
)
from sluiceway.config.connector import MOVING

CONFIG = {"connector.class": "C"}


def view(state: str, mark: str | None = None, config: dict[str, str] | None = None) -> ConnectorView:
    return ConnectorView(config or CONFIG, mark, state)


@pytest.mark.parametrize(
    ("source", "target", "same", "step"),
    [
        (view("RUNNING"), None, False, Step.PREPARE),
        (view("RUNNING"), view("STOPPED"), False, Step.PREPARE),
        (view("RUNNING"), view("STOPPED", "RUNNING", {"connector.class": "old"}), False, Step.PREPARE),
        (view("PAUSED"), view("STOPPED", "RUNNING"), False, Step.PREPARE),
        (view("RUNNING"), view("STOPPED", "RUNNING"), False, Step.STOP),
        (view("FAILED"), view("STOPPED", "RUNNING"), False, Step.PREPARE),
        (view("FAILED"), view("STOPPED", "FAILED"), False, Step.STOP),
        (view("CHANGING"), view("STOPPED", "PAUSED"), False, Step.STOP),
        (view("STOPPED"), view("STOPPED", "RUNNING"), False, Step.COPY_OFFSETS),
        (view("STOPPED"), view("STOPPED", "RUNNING"), True, Step.START),
        (view("STOPPED"), view("RUNNING", "RUNNING"), False, Step.LEAVE),
        (view("STOPPED"), view("STOPPED", "RUNNING", {"connector.class": "old"}), True, Step.PREPARE),
        (view("STOPPED"), view("STOPPED", "STOPPED"), False, Step.COPY_OFFSETS),
        (view("STOPPED"), view("STOPPED", "STOPPED"), True, Step.LEAVE),
        (view("RUNNING", "RUNNING"), None, False, Step.PREPARE),
        (view("RUNNING", "RUNNING"), view("STOPPED", None, {"connector.class": "old"}), False, Step.PREPARE),
        (view("PAUSED", "RUNNING"), view("STOPPED"), False, Step.PREPARE),
        (view("RUNNING", "RUNNING"), view("STOPPED"), False, Step.STOP),
        (view("STOPPED", "RUNNING"), view("STOPPED"), False, Step.COPY_OFFSETS),
        (view("STOPPED", "STOPPED"), view("STOPPED"), True, Step.LEAVE),
        (view("STOPPED", "RUNNING"), view("STOPPED"), True, Step.START),
        (view("STOPPED", "PAUSED"), view("CHANGING"), True, Step.START),
        (view("STOPPED", "PAUSED"), view("PAUSED"), True, Step.LEAVE),
        (view("STOPPED", "FAILED"), view("FAILED"), True, Step.LEAVE),
        (view("STOPPED", "FAILED"), view("RUNNING"), True, Step.LEAVE),
        (view("STOPPED", "RUNNING"), view("FAILED"), True, Step.START),
        (view("STOPPED"), view("RUNNING"), False, Step.DONE),
        (view("STOPPED"), view("STOPPED"), True, Step.DONE),
        (None, view("RUNNING"), False, Step.DONE),
    ],
)
def test_the_next_step_follows_from_both_clusters(
    source: ConnectorView | None, target: ConnectorView | None, same: bool, step: Step
) -> None:
    assert next_step("c", source, target, lambda: same) is step


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (view("RUNNING"), view("RUNNING"), "is RUNNING on the source and RUNNING on the target"),
        (view("RUNNING"), view("RUNNING", "RUNNING"), "has not reached that step"),
        (view("STOPPED"), view("STOPPED"), "nothing shows which is newer"),
        (None, None, "does not exist on the source"),
        (None, view("STOPPED", "RUNNING"), "does not exist on the source"),
    ],
)
def test_states_that_no_move_leads_to_are_refused(
    source: ConnectorView | None, target: ConnectorView | None, message: str
) -> None:
    with pytest.raises(MigrationError, match=message):
        next_step("c", source, target, lambda: False)


def test_the_final_state_is_the_one_before_the_move() -> None:
    assert final_state(view("PAUSED"), None) == "PAUSED"
    assert final_state(view("FAILED"), None) == "FAILED"
    assert final_state(view("STOPPED"), None) == "STOPPED"
    assert final_state(view("STOPPED"), view("STOPPED", "RUNNING")) == "RUNNING"
    assert final_state(view("STOPPED", "PAUSED"), view("STOPPED")) == "PAUSED"
    assert final_state(view("CHANGING", "PAUSED"), view("STOPPED")) == "PAUSED"


def test_a_view_separates_the_mark_and_sums_up_the_states() -> None:
    def state(connector: str, *tasks: str) -> str:
        return ConnectorView.of({}, {"connector": {"state": connector}, "tasks": [{"state": task} for task in tasks]}).state

    assert ConnectorView.of({**CONFIG, MOVING: "PAUSED"}, {}) == ConnectorView(CONFIG, "PAUSED", "CHANGING")
    assert state("RUNNING", "RUNNING", "RUNNING") == "RUNNING"
    assert state("RUNNING", "RUNNING", "FAILED") == "FAILED"
    assert state("RUNNING", "UNASSIGNED") == "CHANGING"
    assert state("PAUSED", "RUNNING") == "PAUSED"


def test_only_offsets_that_differ_are_changed_and_those_that_the_source_lacks_are_removed() -> None:
    def at(file: str, position: int | None) -> dict[str, object]:
        return {"partition": {"file": file, "n": 1}, "offset": None if position is None else {"position": position}}

    reordered = {"partition": {"n": 1, "file": "same"}, "offset": {"position": 1}}
    source = [at("same", 1), at("new", 2), at("changed", 3), at("removed", None)]
    target = [reordered, at("changed", 1), at("old", 9)]
    assert offset_edits(source, target) == [at("new", 2), at("changed", 3), at("old", None)]
    assert offset_edits(source[:1], [reordered]) == []


@pytest.mark.parametrize(
    ("version", "old"),
    [
        ("3.4.1", True),
        ("2.8.0", True),
        ("3.5.0", False),
        ("4.3.0", False),
        ("7.4.0-ccs", True),
        ("7.5.1-ce", False),
        ("?", False),
    ],
)
def test_versions_without_the_offsets_api_are_recognized(version: str, old: bool) -> None:
    assert too_old(version, (3, 5)) is old


def status(connector: str, *tasks: str) -> dict[str, object]:
    return {"connector": {"state": connector}, "tasks": [{"id": number, "state": state} for number, state in enumerate(tasks)]}


@pytest.mark.parametrize(
    ("given", "configured", "numbers", "starting"),
    [
        (status("RUNNING", "RUNNING"), [0], {0}, False),
        (status("RUNNING", "RUNNING", "FAILED"), [0, 1], {0, 1}, False),
        (status("RUNNING", "RUNNING"), [0, 1], {0, 1}, True),
        (status("RUNNING", "RUNNING", "UNASSIGNED"), [0, 1], {0, 1}, True),
        (status("RUNNING", "RUNNING"), [], {0}, False),
        (status("RUNNING"), [0], {0}, True),
        (status("RUNNING"), [], set(), True),
        ({}, [0], {0}, True),
        (status("PAUSED", "UNASSIGNED"), [0], {0}, False),
        (status("UNASSIGNED"), [0], {0}, False),
        (status("FAILED"), [], set(), False),
        (status("STOPPED"), [], set(), False),
    ],
)
def test_a_task_that_has_a_config_and_no_status_yet_is_starting(
    given: dict[str, object], configured: list[int], numbers: set[int], starting: bool
) -> None:
    assert Tasks.of(given, configured) == Tasks(frozenset(numbers), starting)

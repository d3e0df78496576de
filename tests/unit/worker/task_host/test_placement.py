"""The host of a task, and tasks that are kept apart."""

from __future__ import annotations

import pytest

from sluiceway.storage.model import TaskId
from sluiceway.worker.task_host.task_hosts import MOST_TASKS, Candidate, Suspects, choose_host, is_busy

TASKS = [TaskId(f"c{number}", 0) for number in range(4)]


@pytest.mark.parametrize(
    ("hosts", "group", "can_grow", "chosen"),
    [
        ([], "", True, None),
        ([], "", False, None),
        ([Candidate("a", 3), Candidate("b", 2)], "", True, "b"),
        ([Candidate("a", MOST_TASKS)], "", True, None),
        ([Candidate("a", MOST_TASKS), Candidate("b", MOST_TASKS + 1)], "", False, "a"),
        ([Candidate("a", 1), Candidate("b", 5, "1-0")], "1-0", True, "b"),
        ([Candidate("a", 1)], "1-0", True, None),
        ([Candidate("a", 1)], "1-0", False, "a"),
        ([Candidate("b", 1, "1-0")], "", True, None),
    ],
)
def test_a_task_goes_to_the_least_loaded_host_of_its_group(
    hosts: list[Candidate], group: str, can_grow: bool, chosen: str | None
) -> None:
    assert choose_host(hosts, group, can_grow=lambda: can_grow) == chosen


def test_after_a_crash_the_tasks_start_together_and_apart_from_others() -> None:
    suspects = Suspects()
    suspects.crashed(TASKS, 10.0)
    groups = {suspects.group(task, 11.0) for task in TASKS}
    assert len(groups) == 1
    assert "" not in groups
    assert suspects.group(TaskId("other", 0), 11.0) == ""


def test_each_further_crash_halves_the_suspects_until_one_is_alone() -> None:
    suspects = Suspects()
    suspects.crashed(TASKS, 10.0)
    suspects.crashed(TASKS, 20.0)
    first = [task for task in TASKS if suspects.group(task, 21.0) == suspects.group(TASKS[0], 21.0)]
    assert len(first) == 2
    suspects.crashed(first, 30.0)
    assert suspects.group(first[0], 31.0) != suspects.group(first[1], 31.0)


def test_two_minutes_without_a_crash_clear_a_suspect() -> None:
    suspects = Suspects()
    suspects.crashed(TASKS, 10.0)
    assert suspects.group(TASKS[0], 131.0) == ""
    suspects.crashed(TASKS, 200.0)
    assert len({suspects.group(task, 201.0) for task in TASKS}) == 1, "they start together again"


def test_only_a_task_with_neighbors_is_too_busy() -> None:
    assert is_busy(0.3, 1)
    assert not is_busy(0.25, 1)
    assert not is_busy(0.9, 0)

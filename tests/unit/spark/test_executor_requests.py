"""Requests for executors after a standalone master has been restarted."""

from __future__ import annotations

import pytest

from sluiceway.spark.elastic import DYNAMIC, INITIAL
from sluiceway.spark.executor_requests import ExecutorRequests, executors_for

ELASTIC = {DYNAMIC: "true"}
LEAST, MOST = "spark.dynamicAllocation.minExecutors", "spark.dynamicAllocation.maxExecutors"


def requested(conf: dict[str, str], *seen: tuple[float, int | None, int]) -> list[tuple[float, int]]:
    """Return the times and totals of the requests, for times, slots and tasks."""
    found: list[tuple[float, int]] = []
    now = 0.0
    requests = ExecutorRequests(lambda total: found.append((now, total)), conf, clock=lambda: now)
    for second, slots, tasks in seen:
        now = second
        requests.check(slots, tasks)
    return found


def test_executors_are_requested_while_tasks_have_too_few_slots_for_some_seconds() -> None:
    assert requested(ELASTIC, *((second, 1, 2) for second in range(10))) == [(4, 2), (8, 2)]


@pytest.mark.parametrize("between", [(2.0, 2, 2), (2.0, None, 2), (2.0, 1, 1)])
def test_the_time_starts_again_when_the_slots_suffice_or_are_unknown(between: tuple[float, int | None, int]) -> None:
    assert requested(ELASTIC, (0, 1, 2), between, (4, 1, 2), (7, 1, 2)) == []


def test_a_fixed_number_of_executors_is_not_requested_again() -> None:
    assert requested({}, (0, 0, 2), (100, 0, 2)) == []


@pytest.mark.parametrize(
    ("tasks", "conf", "expected"),
    [
        (3, {}, 3),
        (3, {"spark.executor.cores": "2"}, 2),
        (3, {"spark.executor.cores": "2", "spark.task.cpus": "2"}, 3),
        (3, {LEAST: "4"}, 4),
        (3, {INITIAL: "5"}, 5),
        (3, {MOST: "2"}, 2),
    ],
)
def test_the_number_is_that_of_sparks_allocation_manager(tasks: int, conf: dict[str, str], expected: int) -> None:
    assert executors_for(tasks, conf) == expected

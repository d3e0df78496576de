"""The tasks that a change of task configs stops and starts."""

from __future__ import annotations

from sluiceway.herder.task_plan import TaskPlan, plan_tasks

A, B, C = {"n": "a"}, {"n": "b"}, {"n": "c"}


def test_only_what_changed_is_stopped_and_started() -> None:
    assert plan_tasks({0: A, 1: B}, [A, C, B]) == TaskPlan(gone=(), changed=(1,), new=(2,))


def test_tasks_beyond_the_wanted_ones_are_stopped() -> None:
    assert plan_tasks({0: A, 1: B, 2: C}, [A]) == TaskPlan(gone=(1, 2), changed=(), new=())


def test_the_order_of_keys_does_not_matter() -> None:
    assert plan_tasks({0: {"x": "1", "y": "2"}}, [{"y": "2", "x": "1"}]) == TaskPlan((), (), ())


def test_a_missing_task_is_new() -> None:
    assert plan_tasks({1: B}, [A, B]) == TaskPlan(gone=(), changed=(), new=(0,))


def test_without_keep_unchanged_equal_tasks_are_restarted_too() -> None:
    assert plan_tasks({0: A, 1: B, 2: C}, [A, C], keep_unchanged=False) == TaskPlan(gone=(2,), changed=(0, 1), new=())

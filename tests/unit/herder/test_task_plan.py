"""Which tasks a change of task configs concerns."""

from __future__ import annotations

from sluiceway.herder.task_plan import TaskPlan, plan_tasks

A, B, C = {"n": "a"}, {"n": "b"}, {"n": "c"}


def test_only_what_changed_is_stopped_and_started() -> None:
    assert plan_tasks({0: A, 1: B}, [A, C, B]) == TaskPlan(gone=(), changed=(1,), new=(2,))


def test_tasks_beyond_the_wanted_ones_go() -> None:
    assert plan_tasks({0: A, 1: B, 2: C}, [A]) == TaskPlan(gone=(1, 2), changed=(), new=())


def test_equal_configs_change_nothing_in_whatever_order_their_keys_are() -> None:
    assert plan_tasks({0: {"x": "1", "y": "2"}}, [{"y": "2", "x": "1"}]) == TaskPlan((), (), ())


def test_a_task_that_is_missing_among_those_there_are_is_new() -> None:
    assert plan_tasks({1: B}, [A, B]) == TaskPlan(gone=(), changed=(), new=(0,))


def test_where_none_may_be_left_undisturbed_all_that_stay_are_started_anew() -> None:
    assert plan_tasks({0: A, 1: B, 2: C}, [A, C], keep_unchanged=False) == TaskPlan(gone=(2,), changed=(0, 1), new=())

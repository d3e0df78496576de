"""The limit of automatic restarts and their back-off."""

from __future__ import annotations

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError
from sluiceway.herder.restart_policy import CRASHED_PROCESS_POLICY, LOST_EXECUTOR_POLICY, RestartPolicy, TaskRestarts

POLICY = RestartPolicy(max_restarts=4, backoff_initial=1.0, backoff_max=5.0, reset_after=100.0)


def delays(policy: RestartPolicy, *ran_for: float) -> list[float | None]:
    """Return the back-off after each failure of a task with these run times, None if it is not restarted."""
    restarts, told = TaskRestarts(), []
    for seconds in ran_for:
        again = restarts.next(policy, seconds)
        told.append(None if again is None else again[1])
        restarts = restarts if again is None else again[0]
    return told


def test_the_back_off_doubles_up_to_its_maximum_and_the_restarts_are_limited() -> None:
    assert delays(POLICY, 0, 0, 0, 0, 0) == [1.0, 2.0, 4.0, 5.0, None]


def test_the_count_starts_again_after_a_long_run() -> None:
    assert delays(POLICY, 0, 0, 99.9, 100.0, 0) == [1.0, 2.0, 4.0, 1.0, 2.0]
    assert delays(POLICY, 0, 0, 0, 0, 100.0, 0) == [1.0, 2.0, 4.0, 5.0, 1.0, 2.0]


def test_failed_tasks_stay_failed_by_default_as_in_connect() -> None:
    assert delays(RestartPolicy.of({}, WorkerConfig.of({})), 0, 1e9) == [None, None]


def test_a_connectors_keys_win_over_the_workers() -> None:
    worker = WorkerConfig.of({"sluiceway.task.restart.policy": "on-failure", "sluiceway.task.restart.max.restarts": "3"})
    assert RestartPolicy.of({}, worker) == RestartPolicy(3, 1.0, 60.0, 600.0)
    own = {"sluiceway.task.restart.max.restarts": "7", "sluiceway.task.restart.backoff.initial.ms": "250"}
    assert RestartPolicy.of(own, worker) == RestartPolicy(7, 0.25, 60.0, 600.0)
    assert RestartPolicy.of({"sluiceway.task.restart.policy": "never"}, worker).max_restarts == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [("policy", "always"), ("max.restarts", "0"), ("backoff.initial.ms", "0"), ("backoff.max.ms", "x"), ("reset.after.ms", "-1")],
)
def test_invalid_values_are_refused(key: str, value: str) -> None:
    name = f"sluiceway.task.restart.{key}"
    with pytest.raises(ConfigError, match=name):
        RestartPolicy.of({name: value}, WorkerConfig.of({}))
    with pytest.raises(ConfigError, match=name):
        WorkerConfig.of({name: value})


def test_a_process_that_crashes_again_and_again_is_replaced_five_times() -> None:
    assert delays(CRASHED_PROCESS_POLICY, 0, 0, 0, 0, 0, 0) == [1.0, 2.0, 4.0, 8.0, 16.0, None]
    assert None not in delays(CRASHED_PROCESS_POLICY, *[20.0] * 20), "it ran for a while each time"


def test_a_lost_executor_is_replaced_without_limit() -> None:
    told = delays(LOST_EXECUTOR_POLICY, *[0.0] * 3000)
    assert told[:6] == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0]
    assert told[-1] == 15.0


def test_executors_lost_now_and_then_do_not_make_a_task_wait_longer_each_time() -> None:
    assert delays(LOST_EXECUTOR_POLICY, *[10.0] * 20) == [1.0] * 20

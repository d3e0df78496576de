"""Tests of the choice of a connector's application."""

from __future__ import annotations

import pytest

from sluiceway.config.application import Applications, number_of, numbered
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import ConfigError

WITH_DEFAULT = Applications("small")


@pytest.mark.parametrize(
    ("config", "application", "reason"),
    [
        ({}, "small", "the worker has sluiceway.application.default=small"),
        ({"sluiceway.application": "other"}, "other", "its config has sluiceway.application=other"),
        ({"sluiceway.application": "none"}, None, "its config has sluiceway.application=none"),
        ({"spark.executor.memory": "4g"}, None, "its config has spark.executor.memory"),
        ({"spark.x": "1", "sluiceway.application": "other"}, "other", "its config has sluiceway.application=other"),
        ({"airflow.dag": "mine"}, None, "the hand-written DAG mine runs it"),
        ({"airflow.mode": "micro-batch"}, None, "its config has airflow.mode=micro-batch"),
        ({"airflow.mode": "long-running"}, "small", "the worker has sluiceway.application.default=small"),
    ],
)
def test_the_default_application_is_for_connectors_that_choose_nothing(
    config: dict[str, str], application: str | None, reason: str
) -> None:
    assert WITH_DEFAULT.membership(config).application == application
    assert WITH_DEFAULT.membership(config).reason == reason


def test_without_a_default_each_connector_has_an_application_of_its_own_unless_it_chooses_one() -> None:
    assert Applications().membership({}).application is None
    assert Applications().membership({"sluiceway.application": "small"}).application == "small"


@pytest.mark.parametrize(
    ("properties", "applications"),
    [
        ({}, Applications()),
        ({"sluiceway.application.default": "small"}, Applications("small")),
        ({"sluiceway.application.default": "none", "sluiceway.application.max.tasks": "40"}, Applications(None, 40)),
    ],
)
def test_the_workers_keys(properties: dict[str, str], applications: Applications) -> None:
    assert WorkerConfig.of(properties).applications == applications


def test_a_limit_of_no_tasks_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"sluiceway\.application\.max\.tasks"):
        WorkerConfig.of({"sluiceway.application.max.tasks": "0"})


@pytest.mark.parametrize(
    ("config", "placed", "application"),
    [
        ({}, "small-2", "small-2"),
        ({}, "small", "small"),
        ({}, "small-1", "small"),
        ({}, "other-2", "small"),
        ({"sluiceway.application": "other"}, "other-2", "other-2"),
        ({"sluiceway.application": "none"}, "small-2", None),
    ],
)
def test_a_stored_application_counts_if_it_is_one_of_its_name(
    config: dict[str, str], placed: str, application: str | None
) -> None:
    assert WITH_DEFAULT.application(config, placed) == application


def test_applications_are_numbered_from_the_second_on() -> None:
    assert [numbered("a", number) for number in (1, 2, 10)] == ["a", "a-2", "a-10"]
    assert [number_of(each, "a") for each in ("a", "a-2", "a-10", "a-1", "a-02", "a-", "b-2", "a-2-2")] == [1, 2, 10, *[None] * 5]

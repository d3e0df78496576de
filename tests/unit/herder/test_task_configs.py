"""A config that an Airflow task sets is changed by that task alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError, ConflictError
from sluiceway.herder import Herder
from sluiceway.storage.history import Origin
from sluiceway.storage.memory import MemoryConfigBackingStore, MemoryStatusBackingStore

PLAIN = {"name": "a", "connector.class": "FileStreamSource", "file": "/f", "topic": "t"}
BY_TASK = {**PLAIN, "airflow.dag": "etl", "airflow.config.task": "load"}


@pytest.fixture
def herder() -> Herder:
    stores = MemoryConfigBackingStore(), MemoryStatusBackingStore()
    return Herder(WorkerConfig.of({}), *stores, None).acting_for(Origin(user="ann"))


CHANGES: dict[str, Callable[[Herder], object]] = {
    "put": lambda herder: herder.put_config("a", {**BY_TASK, "topic": "u"}),
    "put of a config without the DAG": lambda herder: herder.put_config("a", PLAIN),
    "put of another task": lambda herder: herder.put_config("a", {**BY_TASK, "airflow.config.task": "mine"}),
    "patch": lambda herder: herder.patch_config("a", {"topic": "u"}),
    "patch of the key": lambda herder: herder.patch_config("a", {"airflow.config.task": None}),
    "rollback": lambda herder: herder.put_config("a", herder.config_of_version("a", 1)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_other_changes_are_refused_and_name_the_dag(herder: Herder, change: Callable[[Herder], object]) -> None:
    herder.put_config("a", PLAIN)
    herder.put_config("a", BY_TASK, by_task=True)
    with pytest.raises(ConflictError, match="set by DAG etl, task load"):
        change(herder)
    assert herder.info("a").config == BY_TASK
    herder.put_config("a", {**BY_TASK, "topic": "v"}, by_task=True)
    assert herder.info("a").config["topic"] == "v"


def test_what_changes_nothing_is_accepted(herder: Herder) -> None:
    herder.put_config("a", BY_TASK, by_task=True)
    assert herder.put_config("a", BY_TASK)[0] is False
    assert herder.patch_config("a", {"topic": "t"}).config == BY_TASK


def test_a_connector_that_its_dag_has_left_may_be_changed_and_rolled_back(herder: Herder) -> None:
    herder.put_config("a", BY_TASK, by_task=True)
    herder.put_config("a", {**PLAIN, "airflow.dag": "etl"}, by_task=True)
    herder.put_config("a", {**PLAIN, "topic": "u"})
    herder.put_config("a", herder.config_of_version("a", 1))
    assert herder.info("a").config == {**PLAIN, "airflow.dag": "etl"}


PRETENSES: dict[str, Callable[[Herder], object]] = {
    "create": lambda herder: herder.create("b", {**BY_TASK, "name": "b"}),
    "put of a new one": lambda herder: herder.put_config("b", {**BY_TASK, "name": "b"}),
    "put": lambda herder: herder.put_config("a", BY_TASK),
    "patch": lambda herder: herder.patch_config("a", {"airflow.config.task": "load"}),
}


@pytest.mark.parametrize("change", PRETENSES.values(), ids=PRETENSES)
def test_nobody_else_says_that_a_task_sets_a_config(herder: Herder, change: Callable[[Herder], object]) -> None:
    herder.put_config("a", PLAIN)
    with pytest.raises(BadRequestError, match=r"only an Airflow task may set airflow\.config\.task"):
        change(herder)
    assert herder.connectors() == ["a"]
    assert herder.info("a").config == PLAIN

"""Settings for executors that follow the number of tasks."""

from __future__ import annotations

import pytest

from sluiceway.spark.elastic import elastic_conf

DRAINING = {"spark.decommission.enabled": "true", "spark.executor.decommission.forceKillTimeout": "2m"}
GROWING = {"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.shuffleTracking.enabled": "false"}
CLUSTERS = ("spark://host:7077", "yarn", "k8s://https://host:6443")


@pytest.mark.parametrize("master", ["local[4]", "local", "local-cluster[2,1,1024]", ""])
def test_a_local_master_gets_no_settings(master: str) -> None:
    assert elastic_conf(master, {}) == {}


@pytest.mark.parametrize("master", ["yarn", "yarn://host", "k8s://https://host:6443"])
def test_executors_follow_the_tasks_and_drain(master: str) -> None:
    assert elastic_conf(master, {}) == {**DRAINING, **GROWING}


def test_a_standalone_executor_does_not_take_its_whole_worker() -> None:
    assert elastic_conf("spark://host:7077", {})["spark.executor.cores"] == "1"
    assert elastic_conf("spark://host:7077", {"spark.task.cpus": "2"})["spark.executor.cores"] == "2"
    assert "spark.executor.cores" not in elastic_conf("spark://host:7077", {"spark.executor.cores": "4"})


@pytest.mark.parametrize("master", CLUSTERS)
@pytest.mark.parametrize("fixed", [{"spark.executor.instances": "3"}, {"spark.dynamicAllocation.enabled": "false"}])
def test_a_given_number_of_executors_stays(master: str, fixed: dict[str, str]) -> None:
    assert elastic_conf(master, fixed) == DRAINING


def test_given_dynamic_allocation_starts_with_the_given_instances() -> None:
    given = {"spark.dynamicAllocation.enabled": "true", "spark.executor.instances": "3"}
    assert elastic_conf("yarn", given) == {**DRAINING, "spark.dynamicAllocation.shuffleTracking.enabled": "false"}


def test_settings_that_are_given_stay() -> None:
    given = {"spark.executor.decommission.forceKillTimeout": "10s", "spark.dynamicAllocation.shuffleTracking.enabled": "true"}
    assert elastic_conf("yarn", given) == {"spark.decommission.enabled": "true", "spark.dynamicAllocation.enabled": "true"}


def test_without_decommissioning_spark_tracks_shuffles() -> None:
    """Spark refuses dynamic allocation that has neither."""
    chosen = elastic_conf("yarn", {"spark.decommission.enabled": "false"})
    assert chosen["spark.dynamicAllocation.enabled"] == "true"
    assert "spark.dynamicAllocation.shuffleTracking.enabled" not in chosen

"""Tests of the Spark settings that a driver on a cluster gets by default."""

from __future__ import annotations

import pytest

from sluiceway.provider.driver.cluster_conf import cluster_conf, uploads_spark_jars

INSTANCES, CORES, MAX = "spark.executor.instances", "spark.executor.cores", "spark.cores.max"
DYNAMIC, INITIAL = "spark.dynamicAllocation.enabled", "spark.dynamicAllocation.initialExecutors"
LEAST, MOST = "spark.dynamicAllocation.minExecutors", "spark.dynamicAllocation.maxExecutors"
FAILURES, INTERVAL = "spark.executor.maxNumFailures", "spark.executor.failuresValidityInterval"


SIZE = (INSTANCES, CORES, MAX, INITIAL, DYNAMIC)
FIXED = {DYNAMIC: "false"}


def size(master: str, tasks: int | None, given: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in cluster_conf(master, tasks, given).items() if key in SIZE}


@pytest.mark.parametrize("master", ["yarn", "k8s://https://api:6443"])
@pytest.mark.parametrize(
    ("tasks", "given", "expected"),
    [
        (1, {}, {INITIAL: "1", CORES: "1", DYNAMIC: "true"}),
        (5, {}, {INITIAL: "5", CORES: "1", DYNAMIC: "true"}),
        (5, {CORES: "2"}, {INITIAL: "3", DYNAMIC: "true"}),
        (5, {"spark.task.cpus": "2"}, {INITIAL: "5", CORES: "2", DYNAMIC: "true"}),
        (5, {"spark.task.cpus": "2", CORES: "4"}, {INITIAL: "3", DYNAMIC: "true"}),
        (5, {CORES: "two"}, {INITIAL: "5", DYNAMIC: "true"}),
        (5, {MOST: "2"}, {INITIAL: "2", CORES: "1", DYNAMIC: "true"}),
        (1, {LEAST: "2"}, {INITIAL: "2", CORES: "1", DYNAMIC: "true"}),
        (5, {INITIAL: "1"}, {CORES: "1", DYNAMIC: "true"}),
        (None, {}, {DYNAMIC: "true"}),
    ],
)
def test_the_first_executors_follow_from_the_tasks(
    master: str, tasks: int | None, given: dict[str, str], expected: dict[str, str]
) -> None:
    assert size(master, tasks, given) == expected


@pytest.mark.parametrize("master", ["yarn", "k8s://https://api:6443"])
@pytest.mark.parametrize(
    ("tasks", "given", "expected"),
    [
        (5, {INSTANCES: "2"}, {CORES: "3"}),
        (5, {INSTANCES: "2", CORES: "1"}, {}),
        (5, {"spark.task.cpus": "2", INSTANCES: "2"}, {CORES: "6"}),
        (5, FIXED, {INSTANCES: "5", CORES: "1"}),
        (5, {**FIXED, CORES: "2"}, {INSTANCES: "3"}),
        (None, FIXED, {}),
    ],
)
def test_a_fixed_size_has_a_slot_for_each_task(
    master: str, tasks: int | None, given: dict[str, str], expected: dict[str, str]
) -> None:
    assert size(master, tasks, given) == expected


@pytest.mark.parametrize(
    ("tasks", "given", "expected"),
    [
        (3, {}, {INITIAL: "3", CORES: "1", DYNAMIC: "true"}),
        (3, {CORES: "2"}, {INITIAL: "2", DYNAMIC: "true"}),
        (3, {MAX: "8"}, {INITIAL: "3", CORES: "1", DYNAMIC: "true"}),
        (None, {}, {CORES: "1", DYNAMIC: "true"}),
        (3, FIXED, {MAX: "3"}),
        (3, {**FIXED, CORES: "2"}, {MAX: "4"}),
        (3, {**FIXED, "spark.task.cpus": "2"}, {MAX: "6"}),
        (3, {**FIXED, MAX: "8"}, {}),
        (None, FIXED, {}),
    ],
)
def test_a_standalone_application_takes_only_the_cores_of_its_tasks(
    tasks: int | None, given: dict[str, str], expected: dict[str, str]
) -> None:
    assert size("spark://a:7077,b:7077", tasks, given) == expected


def test_twenty_executor_losses_in_ten_minutes_do_not_end_an_application() -> None:
    chosen = cluster_conf("yarn", 2, {})
    assert chosen[INTERVAL] == "10m"
    assert int(chosen[FAILURES]) > 20
    assert chosen["spark.yarn.am.attemptFailuresValidityInterval"] == "10m"
    assert int(cluster_conf("yarn", 100, {})[FAILURES]) == 400
    assert FAILURES in cluster_conf("k8s://https://api", None, {})
    assert "spark.yarn.am.attemptFailuresValidityInterval" not in cluster_conf("k8s://https://api", 1, {})


def test_given_settings_are_kept_under_their_former_names_too() -> None:
    given = {"spark.yarn.max.executor.failures": "7", "spark.yarn.executor.failuresValidityInterval": "1h"}
    assert not {FAILURES, INTERVAL} & cluster_conf("yarn", 2, given).keys()
    assert not {FAILURES, INTERVAL} & cluster_conf("yarn", 2, {FAILURES: "7", INTERVAL: "1h"}).keys()


def test_local_masters_get_no_settings() -> None:
    assert cluster_conf("local[4]", 3, {}) == {}


def test_only_yarn_without_an_archive_uploads_sparks_jars() -> None:
    assert uploads_spark_jars("yarn", {})
    assert not uploads_spark_jars("yarn", {"spark.yarn.jars": "local:/spark/jars/*"})
    assert not uploads_spark_jars("yarn", {"spark.yarn.archive": "hdfs:///jars.zip"})
    assert not uploads_spark_jars("spark://master:7077", {})


@pytest.mark.parametrize(
    ("master", "given", "expected"),
    [
        ("yarn", {}, {"executor": "784m", "driver": "784m"}),
        ("yarn", {CORES: "3", "spark.executor.memory": "8g"}, {"executor": f"{819 + 1200}m", "driver": "784m"}),
        ("k8s://https://api:6443", {"spark.executor.memory": "2048"}, {"executor": f"{819 + 400}m", "driver": f"{409 + 400}m"}),
        ("yarn", {"spark.executor.memoryOverhead": "1g"}, {"driver": "784m"}),
        ("yarn", {"spark.executor.memoryOverheadFactor": "0.5"}, {"driver": "784m"}),
        ("yarn", {"spark.executor.memory": "many"}, {"driver": "784m"}),
        ("spark://host:7077", {}, {}),
    ],
)
def test_java_processes_of_plugins_are_counted_as_overhead(master: str, given: dict[str, str], expected: dict[str, str]) -> None:
    conf = cluster_conf(master, 1, given, java_memory=400)
    assert {key: value for key, value in conf.items() if key.endswith(".memoryOverhead")} == {
        f"spark.{part}.memoryOverhead": value for part, value in expected.items()
    }
    in_client_mode = cluster_conf(master, 1, given, java_memory=400, client_mode=True)
    assert "spark.driver.memoryOverhead" not in in_client_mode
    assert not any("Overhead" in key for key in cluster_conf(master, 1, given))

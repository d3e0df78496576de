"""Tests of the Spark settings that a driver on a cluster gets by default."""

from __future__ import annotations

import pytest

from sluiceway.provider.driver.cluster_conf import cluster_conf, uploads_spark_jars

INSTANCES, CORES, MAX = "spark.executor.instances", "spark.executor.cores", "spark.cores.max"
FAILURES, INTERVAL = "spark.executor.maxNumFailures", "spark.executor.failuresValidityInterval"


@pytest.mark.parametrize("master", ["yarn", "k8s://https://api:6443"])
@pytest.mark.parametrize(
    ("tasks", "given", "expected"),
    [
        (1, {}, {INSTANCES: "1", CORES: "1"}),
        (5, {}, {INSTANCES: "5", CORES: "1"}),
        (5, {CORES: "2"}, {INSTANCES: "3"}),
        (5, {INSTANCES: "2"}, {CORES: "3"}),
        (5, {INSTANCES: "2", CORES: "1"}, {}),
        (5, {"spark.task.cpus": "2"}, {INSTANCES: "5", CORES: "2"}),
        (5, {"spark.task.cpus": "2", CORES: "4"}, {INSTANCES: "3"}),
        (5, {"spark.task.cpus": "2", INSTANCES: "2"}, {CORES: "6"}),
        (5, {CORES: "two"}, {INSTANCES: "5"}),
        (None, {}, {}),
    ],
)
def test_executors_follow_from_the_tasks(master: str, tasks: int | None, given: dict[str, str], expected: dict[str, str]) -> None:
    chosen = cluster_conf(master, tasks, given)
    assert {key: value for key, value in chosen.items() if key in (INSTANCES, CORES, MAX)} == expected


@pytest.mark.parametrize(
    ("tasks", "given", "expected"),
    [
        (3, {}, {MAX: "3"}),
        (3, {CORES: "2"}, {MAX: "4"}),
        (3, {"spark.task.cpus": "2"}, {MAX: "6"}),
        (3, {MAX: "8"}, {}),
        (None, {}, {}),
    ],
)
def test_a_standalone_application_takes_only_the_cores_of_its_tasks(
    tasks: int | None, given: dict[str, str], expected: dict[str, str]
) -> None:
    assert cluster_conf("spark://a:7077,b:7077", tasks, given) == expected


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

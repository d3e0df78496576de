"""A source on a Spark standalone cluster while parts of the cluster and of its application are killed."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from support.clusters.connector import on_cluster
from support.clusters.deployments import standalone
from support.clusters.kills import kills_of
from support.clusters.scenario import Result, run, strike
from support.clusters.standalone import SparkCluster

pytestmark = [pytest.mark.clusters, pytest.mark.kafka, pytest.mark.spark]


@pytest.mark.long
def test_after_the_loss_of_an_executor_and_of_a_worker_each_record_is_written_exactly_once(
    spark: SparkCluster, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, chance: random.Random
) -> None:
    with on_cluster(standalone(spark), kafka_bootstrap, tmp_path, unique("spark"), exactly_once=True) as source:
        for kill in kills_of(source):
            if kill.name in ("executor", "worker"):
                assert strike(source, kill, chance).judge() == ""
        source.pause()
        assert source.exits() == [0]


@pytest.mark.long
def test_a_master_that_was_started_again_replaces_a_lost_executor(
    spark: SparkCluster, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, chance: random.Random
) -> None:
    no_spare = standalone(spark, slots=2)
    with on_cluster(no_spare, kafka_bootstrap, tmp_path, unique("spark"), exactly_once=True) as source:
        kills = {each.name: each for each in kills_of(source)}
        for name in ("master, started again", "executor"):
            assert strike(source, kills[name], chance).judge() == ""


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("exactly_once", [False, True], ids=["at_least_once", "exactly_once"])
def test_each_kill(
    spark: SparkCluster,
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    tmp_path: Path,
    results: list[Result],
    *,
    exactly_once: bool,
) -> None:
    mine: list[Result] = []
    with on_cluster(standalone(spark), kafka_bootstrap, tmp_path, unique("spark"), exactly_once=exactly_once) as source:
        try:
            run(source, kills_of(source), mine)
        finally:
            results += mine
    assert [f"{each.kill}: {each.judge()}" for each in mine if each.judge()] == []

"""A source on YARN, in client and in cluster mode, while parts of the cluster and of its application are killed."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from support.clusters.connector import on_cluster
from support.clusters.deployments import yarn
from support.clusters.hadoop import Yarn
from support.clusters.kills import kills_of
from support.clusters.scenario import Result, run, strike

pytestmark = [pytest.mark.clusters, pytest.mark.kafka, pytest.mark.spark]

MODES = pytest.mark.parametrize("mode", ["client", "cluster"])


@pytest.mark.long
def test_in_client_mode_a_source_recovers_from_the_loss_of_an_executor(
    hadoop: Yarn, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, chance: random.Random
) -> None:
    with on_cluster(yarn(hadoop, "client"), kafka_bootstrap, tmp_path, unique("client"), exactly_once=True) as source:
        [executor] = [each for each in kills_of(source) if each.name == "executor"]
        assert strike(source, executor, chance).judge() == ""
        source.pause()
        assert source.exits() == [0]


@pytest.mark.long
def test_in_cluster_mode_a_source_runs_and_ends_when_it_is_paused(
    hadoop: Yarn, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    with on_cluster(yarn(hadoop, "cluster"), kafka_bootstrap, tmp_path, unique("cluster"), exactly_once=True) as source:
        source.pause()
        assert source.exits() == [0]
        assert source.missing() == 0
        assert source.doubled() == [0, 0]
        assert [each["finalStatus"] for each in hadoop.applications("FINISHED")][:1] == ["SUCCEEDED"]


@pytest.mark.long
@pytest.mark.timeout(7200)
@MODES
@pytest.mark.parametrize("exactly_once", [False, True], ids=["at_least_once", "exactly_once"])
def test_each_kill(
    hadoop: Yarn,
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    tmp_path: Path,
    results: list[Result],
    mode: str,
    *,
    exactly_once: bool,
) -> None:
    mine: list[Result] = []
    with on_cluster(yarn(hadoop, mode), kafka_bootstrap, tmp_path, unique(mode), exactly_once=exactly_once) as source:
        try:
            run(source, kills_of(source), mine)
        finally:
            results += mine
    assert [f"{each.kill}: {each.judge()}" for each in mine if each.judge()] == []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_twenty_lost_executors_within_ten_minutes_do_not_end_the_application(
    hadoop: Yarn,
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    tmp_path: Path,
    chance: random.Random,
    results: list[Result],
) -> None:
    with on_cluster(yarn(hadoop, "cluster"), kafka_bootstrap, tmp_path, unique("losses"), exactly_once=True) as source:
        application = source.deployment.application(source.name)
        [executor] = [each for each in kills_of(source) if each.name == "executor"]
        mine: list[Result] = []
        for _ in range(20):
            next_kill = time.monotonic() + 30
            mine.append(replace(strike(source, executor, chance), kill="executor, 20 in 10 minutes"))
            time.sleep(max(0.0, next_kill - time.monotonic()))
        results += mine
        assert source.deployment.application(source.name) == application
        assert source.exits() == []
        source.pause()
        assert [each.judge() for each in mine if each.judge()] == []

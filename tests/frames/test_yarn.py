"""Sinks to files and tables in HDFS, on YARN, whose parts are killed at random."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.clusters.deployments import sharing_yarn
from support.clusters.hadoop import Yarn
from support.frames.run import run
from support.frames.scenario import SinkResult

pytestmark = [pytest.mark.clusters, pytest.mark.kafka, pytest.mark.spark]


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_random_kills(
    hadoop: Yarn,
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    tmp_path: Path,
    results: list[SinkResult],
    mode: str,
) -> None:
    kills, name = int(os.environ.get("CLUSTER_KILLS", "50")), unique("sinks")
    wrong = run(sharing_yarn(hadoop, mode), kafka_bootstrap, tmp_path, name, results, kills=kills, url=hadoop.hdfs.url)
    assert wrong == []

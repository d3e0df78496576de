"""Sinks to files and tables on a Spark standalone cluster of two workers, whose parts are killed at random."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.clusters.deployments import sharing_standalone
from support.clusters.standalone import SparkCluster
from support.frames.run import run
from support.frames.scenario import SinkResult

pytestmark = [pytest.mark.clusters, pytest.mark.kafka, pytest.mark.spark]


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_random_kills(
    two_workers: SparkCluster,
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    tmp_path: Path,
    results: list[SinkResult],
) -> None:
    kills = int(os.environ.get("CLUSTER_KILLS", "50"))
    deployment = sharing_standalone(two_workers)
    assert run(deployment, kafka_bootstrap, tmp_path, unique("sinks"), results, kills=kills) == []

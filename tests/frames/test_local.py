"""Sinks to files and tables on a driver on this machine, whose processes are killed at random."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.clusters.deployments import Deployment
from support.frames.run import run
from support.frames.scenario import SinkResult

pytestmark = [pytest.mark.clusters, pytest.mark.kafka, pytest.mark.spark]


@pytest.mark.long
def test_after_the_loss_of_all_processes_each_record_is_there_once(
    here: Deployment, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, results: list[SinkResult]
) -> None:
    wrong = run(here, kafka_bootstrap, tmp_path, unique("sinks"), results, kills=1, chosen=["parquet", "json"], kinds=["host"])
    assert wrong == []


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_random_kills(
    here: Deployment, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, results: list[SinkResult]
) -> None:
    kills = int(os.environ.get("KILLS", "50"))
    assert run(here, kafka_bootstrap, tmp_path, unique("sinks"), results, kills=kills) == []

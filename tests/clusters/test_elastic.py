"""On YARN the number of executors follows the number of tasks, in client and in cluster mode."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from support.clusters.connector import ClusterConnector
from support.clusters.deployments import yarn
from support.clusters.hadoop import Yarn
from support.eventually import eventually

pytestmark = [pytest.mark.clusters, pytest.mark.kafka, pytest.mark.spark]

SIZE = ("spark.executor.instances", "spark.dynamicAllocation.minExecutors")
IDLE = {"spark.dynamicAllocation.executorIdleTimeout": "4s"}


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("mode", ["client", "cluster"])
def test_yarn_gives_and_takes_executors(
    hadoop: Yarn, kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, mode: str
) -> None:
    fixed = yarn(hadoop, mode)
    settings = {key: value for key, value in fixed.settings.items() if key not in SIZE}
    deployment = replace(fixed, settings={**settings, **IDLE})
    source = ClusterConnector(deployment, kafka_bootstrap, tmp_path, unique("elastic"), exactly_once=False, tasks=3)

    def resize(tasks: int) -> None:
        source.client.patch_config(source.name, {"tasks.max": str(tasks)})

    try:
        source.start()
        assert len(source.executors()) == 3
        resize(1)
        eventually(lambda: len(source.executors()) == 1, what="idle executors are given back")
        resize(3)
        source.await_stable(time.time())
        assert len(source.executors()) == 3
        source.pause()
        assert source.exits() == [0]
        assert source.missing() == 0
        assert source.doubled() == [0, 0, 0]
    finally:
        source.close()

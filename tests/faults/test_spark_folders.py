"""Spark's folders contain no state: offsets are in Kafka, and there are no checkpoints."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import pytest

from support.eventually import eventually
from support.faults.guarantee import Guarantee
from support.faults.processes import Role, send
from support.faults.rows import NewRow
from support.faults.worker_group import BATCH, RATE, Progress, WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.mark.matrix(28)
@pytest.mark.parametrize("guarantee", list(Guarantee), ids=lambda guarantee: guarantee.name.lower())
def test_a_source_continues_without_sparks_folders(
    group: WorkerGroup, row: NewRow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guarantee: Guarantee
) -> None:
    made = row(f"kill -9, then Spark's and the driver's folders removed ({guarantee.name.lower()})", guarantee.value)
    local = tmp_path / "spark"
    local.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(local))
    topic = group.source()
    first = group.driver()
    progress = Progress(group.address, topic)
    progress.more(2 * RATE, driver=first)
    assert any(local.iterdir()), "Spark uses the folder"
    kept = [*local.rglob("*"), *first.state_dir.rglob("*")]
    assert not [path for path in kept if "checkpoint" in path.name or path.name in ("offsets", "commits", "state")]
    send(first, Role.JVM, signal.SIGKILL)
    eventually(lambda: not first.is_running(), what=f"the end of {first.name}")
    shutil.rmtree(local)
    shutil.rmtree(first.state_dir)
    local.mkdir()
    removed = time.monotonic()
    second = group.driver()
    progress.more(2 * RATE, driver=second)
    made.recovered(time.monotonic() - removed)
    progress.close()
    group.drain(second)
    verdict = group.verdict(topic)
    made.judge(verdict)
    guarantee.check(verdict, faults=1, batch=BATCH)

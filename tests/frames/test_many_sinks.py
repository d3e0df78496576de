"""Memory of many sinks to tables in one shared application, whose tasks share processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from support.clusters.daemons import command_of
from support.clusters.deployments import Deployment
from support.eventually import eventually
from support.faults.feed import Feed
from support.frames.application import sink_application
from support.frames.outputs import TABLES, outputs, value
from support.frames.scenario import PARTITIONS

pytestmark = [pytest.mark.clusters, pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

SINKS = 20
MEGABYTES = 600
_RATE = 2  # records per second and partition
_SECONDS = 60.0


def _pss(process: psutil.Process) -> float:
    return process.memory_full_info().pss / (1 << 20)


def test_twenty_sinks_to_tables_share_memory(
    here: Deployment, kafka_bootstrap: str, tmp_path: Path, unique: Callable[[str], str]
) -> None:
    topic = unique("many")
    made = [outputs([TABLES[number % len(TABLES)]], tmp_path / "data" / str(number))[0] for number in range(SINKS)]
    with (
        Feed(kafka_bootstrap, topic, rate=_RATE, partitions=PARTITIONS, value=value) as feed,
        sink_application(here, kafka_bootstrap, tmp_path, topic, feed.topic, made, flush_size="20") as app,
    ):
        for sink in app.sinks:
            eventually(sink.output.offsets, what=f"data of {sink.name}")
        time.sleep(_SECONDS)
        jvm = app.driver_jvm()
        assert jvm is not None
        processes = [each for each in (jvm, *jvm.children(recursive=True)) if each.status() != psutil.STATUS_ZOMBIE]
        total = sum(map(_pss, processes))
        for process in processes:
            print(f"{_pss(process):7.1f} MB, {process.num_threads():4d} threads: {command_of(process)[-60:]}", flush=True)
        print(f"{SINKS} sinks to tables: {total:.0f} MB (PSS), limit {MEGABYTES}", flush=True)
    assert total <= MEGABYTES

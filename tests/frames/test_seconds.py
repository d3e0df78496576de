"""Seconds of a pause and a resume, CPU time of an idle sink, and the time from a record's produce to its commit."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.clusters.deployments import Deployment
from support.eventually import SOONEST, eventually
from support.faults.feed import Feed
from support.frames.application import Sink, SinkApplication, sink_application
from support.frames.outputs import outputs, value
from support.frames.scenario import PARTITIONS, sink_feed
from support.process_costs import CostMeter

pytestmark = [pytest.mark.clusters, pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

# Limits on an idle machine. A resume starts a task anew: Python worker, consumer, membership of the group, first commit.
PAUSE_SECONDS = RESUME_SECONDS = 1.0
IDLE_CORES = 0.01
P50_SECONDS = 0.5

_TIMES = 5
_IDLE_SECONDS = 30.0
_SAMPLES = 30


@pytest.fixture
def topic(unique: Callable[[str], str]) -> str:
    return unique("seconds")


def _seconds_until(condition: Callable[[], bool], what: str) -> float:
    started = time.monotonic()
    eventually(condition, what=what, latest=SOONEST)
    return time.monotonic() - started


def _end(sink: Sink) -> int:
    return sum(sink.output.offsets().values())


def _report(text: str, samples: list[float], limit: float) -> None:
    numbers = f"p50 {statistics.median(samples):.2f} s, max {max(samples):.2f} s, limit {limit:g} s"
    print(f"{text}: {numbers}", flush=True)


def test_pause_and_resume(here: Deployment, kafka_bootstrap: str, tmp_path: Path, topic: str) -> None:
    with (
        sink_feed(kafka_bootstrap, topic) as feed,
        sink_application(here, kafka_bootstrap, tmp_path, topic, feed.topic, outputs(["parquet"], tmp_path / "data")) as app,
    ):
        [sink] = app.sinks
        eventually(lambda: _end(sink) > 0, what="the first file")
        pauses, resumes = [], []
        for _ in range(_TIMES):
            app.client.pause(sink.name)
            pauses.append(_seconds_until(lambda: app.states(sink) == ["PAUSED", "PAUSED"], "the pause"))
            before = _end(sink)
            app.client.resume(sink.name)
            resumes.append(_seconds_until(lambda least=before: _end(sink) > least, "records after the resume"))  # type: ignore[misc]
        _report("pause until PAUSED, all files committed", pauses, PAUSE_SECONDS)
        _report("resume until new records are committed", resumes, RESUME_SECONDS)
    assert statistics.median(pauses) <= PAUSE_SECONDS
    assert statistics.median(resumes) <= RESUME_SECONDS


@pytest.mark.parametrize("wanted", ["RUNNING", "PAUSED"])
def test_an_idle_sink_takes_little_of_a_core(
    here: Deployment, kafka_bootstrap: str, tmp_path: Path, topic: str, wanted: str
) -> None:
    feed = Feed(kafka_bootstrap, topic, rate=0, partitions=PARTITIONS, value=value)
    with sink_application(here, kafka_bootstrap, tmp_path, topic, feed.topic, outputs(["parquet"], tmp_path / "data")) as app:
        feed.send(100)
        eventually(lambda: _end(app.sinks[0]) == 200, what="the first files")
        if wanted == "PAUSED":
            app.client.pause(app.sinks[0].name)
            app.await_states("PAUSED")
        costs = _idle_costs(app)
    for role, cores in costs.items():
        print(f"idle, {wanted}: {role}: {cores:.2%} of a core, limit for tasks {IDLE_CORES:.0%}", flush=True)
    assert costs["tasks"] <= IDLE_CORES


def _idle_costs(app: SinkApplication) -> dict[str, float]:
    """Return the cores that processes of each role use while nothing arrives."""
    jvm = app.driver_jvm()
    assert jvm is not None
    time.sleep(5)  # the start is over
    meter = CostMeter(lambda: [jvm.pid])
    time.sleep(_IDLE_SECONDS)
    return {role: cost.cores for role, cost in meter.stop().items() if cost.processes}


@pytest.mark.parametrize("kind", ["parquet", "json", "iceberg", "delta"])
def test_small_commits_have_a_small_delay(here: Deployment, kafka_bootstrap: str, tmp_path: Path, topic: str, kind: str) -> None:
    feed = Feed(kafka_bootstrap, topic, rate=0, partitions=PARTITIONS, value=value)
    data = outputs([kind], tmp_path / "data")
    keys = {"flush_size": "1", "sluiceway_flush_size": "1"}
    with sink_application(here, kafka_bootstrap, tmp_path, topic, feed.topic, data, **keys) as app:
        [sink] = app.sinks
        feed.send(1)
        eventually(lambda: _end(sink) == 2, what="the first commit")
        samples = []
        for number in range(_SAMPLES):
            feed.send(1)
            samples.append(_seconds_until(lambda least=2 * number + 4: _end(sink) >= least, "a commit"))  # type: ignore[misc]
    _report(f"{kind}: from produce to commit", samples, P50_SECONDS)
    assert statistics.median(samples) <= P50_SECONDS

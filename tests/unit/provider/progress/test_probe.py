"""Tests of the probe: what it reads, in how many requests, and what it refuses to report."""

from __future__ import annotations

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import KafkaClientError
from sluiceway.provider.progress.connector_progress import measure
from sluiceway.provider.progress.probe import KafkaProbe
from sluiceway.provider.progress.probe_request import ProbeRequest
from support.offsets import A0, A1, GONE, OffsetsAdmin

SINK = ProbeRequest("sink", "connect-sink", ("a",), "dead")
SOURCE = ProbeRequest("source", None, ("a",))


@pytest.fixture
def probe(kafka: OffsetsAdmin) -> KafkaProbe:
    return KafkaProbe(WorkerConfig.of({}))


def test_a_snapshot_takes_one_request_of_each_kind_and_one_for_each_group(probe: KafkaProbe, kafka: OffsetsAdmin) -> None:
    sinks = [ProbeRequest(f"s{number}", f"connect-s{number}", ("a",), "dead") for number in range(20)]
    snapshot = probe.snapshot([*sinks, SOURCE])
    assert sorted(kafka.requests) == ["begins", "ends", *["group"] * 20, "topics"]
    assert {measure(each, snapshot).lag for each in sinks} == {115}
    assert measure(SOURCE, snapshot).count == 150


def test_offsets_that_nobody_needs_are_not_requested(probe: KafkaProbe, kafka: OffsetsAdmin) -> None:
    kafka.groups["connect-sink"] = {A0: 100, A1: 50, GONE: 9}
    assert probe.snapshot([ProbeRequest("sink", "connect-sink", ("a",))]).ends == {A0: 100, A1: 50}
    assert sorted(kafka.requests) == ["ends", "group", "topics"]


def test_known_commits_are_not_read_again(probe: KafkaProbe, kafka: OffsetsAdmin) -> None:
    snapshot = probe.snapshot([SINK], {"connect-sink": {A0: 90, A1: 50}})
    assert measure(SINK, snapshot).lag == 10
    assert "group" not in kafka.requests


def test_a_group_that_may_not_be_described_does_not_hide_the_others(probe: KafkaProbe, kafka: OffsetsAdmin) -> None:
    kafka.hidden.add("connect-sink")
    other = ProbeRequest("other", "connect-other", ("a",))
    snapshot = probe.snapshot([SINK, other])
    assert (measure(SINK, snapshot).lag, measure(SINK, snapshot).dead_letters) == (None, 7)
    assert measure(other, snapshot).lag == 115
    assert list(snapshot.refused) == ["connect-sink"]


@pytest.mark.parametrize("hidden", ["connect-sink", "secret"])
def test_progress_that_may_not_be_read_is_an_error_and_not_zero(probe: KafkaProbe, kafka: OffsetsAdmin, hidden: str) -> None:
    kafka.hidden.add(hidden)
    with pytest.raises(KafkaClientError, match="Not authorized"):
        probe.progress(ProbeRequest("sink", "connect-sink", ("secret",)))


def test_what_does_not_exist_yet_counts_as_zero(probe: KafkaProbe) -> None:
    sink = probe.progress(ProbeRequest("sink", "connect-sink", ("gone",)))
    assert (sink.lag, sink.count, list(sink.offsets)) == (0, 0, [])
    source = probe.progress(ProbeRequest("source"))
    assert (source.lag, source.count) == (None, 0)


def test_records_are_counted_from_a_time_on(probe: KafkaProbe, kafka: OffsetsAdmin) -> None:
    kafka.times = {A0: 60}
    assert probe.records_since("a", 1) == 40
    assert probe.records_since("gone", 1) is None


def test_the_offset_at_a_time_after_the_last_record_is_the_end(probe: KafkaProbe, kafka: OffsetsAdmin) -> None:
    kafka.times = {A0: 60}
    assert probe.offsets_at(["a", "gone"], 1) == {A0: 60, A1: 50}

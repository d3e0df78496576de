"""Tests of the sampler that all viewers of the page share."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sluiceway.api import TopicPartition
from sluiceway.errors import ConnectError, KafkaClientError
from sluiceway.provider.progress.connector_progress import OffsetsSnapshot
from sluiceway.provider.progress.probe_request import ProbeRequest
from sluiceway.provider.ui.sampler import Sampler
from support.eventually import LIMIT, eventually

PARTITION = TopicPartition("a", 0)


class Kafka:
    def __init__(self) -> None:
        self.names = ["c"]
        self.calls = 0
        self.refused: dict[str, KafkaClientError] = {}
        self.failure: Exception | None = None
        self.answers = threading.Event()
        self.answers.set()

    def requests(self) -> list[ProbeRequest]:
        return [ProbeRequest(name, f"connect-{name}", ("a",)) for name in self.names]

    def snapshot(self, requests: list[ProbeRequest]) -> OffsetsSnapshot:
        self.calls += 1
        self.answers.wait(LIMIT)
        if self.failure is not None:
            raise self.failure
        committed = {each.group: {PARTITION: self.calls} for each in requests if each.group}
        return OffsetsSnapshot(time.time(), committed, ends={PARTITION: 100}, refused=self.refused)


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


@pytest.fixture
def sampler(kafka: Kafka) -> Iterator[Sampler]:
    made = Sampler(kafka.requests, kafka.snapshot, spread=75, idle=3600, least=3600)
    yield made
    kafka.answers.set()
    made.stop()


def test_concurrent_viewers_cost_one_request(kafka: Kafka, sampler: Sampler) -> None:
    kafka.answers.clear()
    sampler.start()
    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(sampler.latest, 10) for _ in range(8)]
        eventually(lambda: kafka.calls == 1, what="the request")
        kafka.answers.set()
        assert [answer.result().connectors["c"].lag for answer in answers] == [99] * 8
    assert sampler.latest().connectors["c"].lag == 99
    assert kafka.calls == 1


def test_a_viewer_gets_a_fresh_sample_before_the_next_idle_one(kafka: Kafka) -> None:
    sampler = Sampler(kafka.requests, kafka.snapshot, spread=75, idle=3600, least=0)
    sampler.start()
    eventually(lambda: kafka.calls == 1, what="the first sample")
    eventually(lambda: sampler.latest(10).connectors["c"].lag == 100 - kafka.calls and kafka.calls > 2, what="fresh samples")
    sampler.stop()


def test_a_viewer_waits_briefly_while_kafka_does_not_answer(kafka: Kafka, sampler: Sampler) -> None:
    kafka.answers.clear()
    sampler.start()
    assert sampler.latest(0.1).at == 0
    assert not kafka.answers.is_set()


def test_a_failure_is_shown_with_the_last_known_progress(kafka: Kafka, sampler: Sampler) -> None:
    sampler.sample()
    kafka.failure = ConnectError("No broker answers.")
    sampler.sample()
    latest = sampler.latest(0)
    assert (latest.problem, latest.connectors["c"].lag) == ("No broker answers.", 99)
    kafka.failure = None
    sampler.sample()
    assert sampler.latest(0).problem is None


def test_an_unexpected_error_is_shown_without_its_text_and_does_not_end_the_sampler(kafka: Kafka, sampler: Sampler) -> None:
    kafka.failure = RuntimeError("password=hunter2")
    sampler.sample()
    problem = sampler.latest(0).problem
    assert problem is not None
    assert "RuntimeError" in problem
    assert "hunter2" not in problem


def test_the_history_of_a_deleted_connector_is_dropped(kafka: Kafka, sampler: Sampler) -> None:
    sampler.sample()
    assert sampler.series("c") is not None
    kafka.names = ["d"]
    sampler.sample()
    assert sampler.series("c") is None
    assert sampler.series("d") is not None


def test_a_sampler_that_was_not_started_can_be_stopped(sampler: Sampler) -> None:
    sampler.stop()


def test_a_group_that_may_not_be_described_is_logged_once(
    kafka: Kafka, sampler: Sampler, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.refused = {"connect-x": KafkaClientError("Not authorized.", code="GROUP_AUTHORIZATION_FAILED")}
    sampler.sample()
    sampler.sample()
    assert caplog.text.count("connect-x is not shown: Not authorized.") == 1

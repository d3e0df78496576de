"""One look for everybody."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from sluiceway.api import TopicPartition
from sluiceway.errors import ConnectError
from sluiceway.provider.progress.measures import Reading
from sluiceway.provider.progress.subjects import Subject
from sluiceway.provider.ui.sampler import Sampler
from support.eventually import eventually

PLACE = TopicPartition("a", 0)


class Kafka:
    def __init__(self) -> None:
        self.names = ["c"]
        self.asked = 0
        self.failure: Exception | None = None
        self.answers = threading.Event()
        self.answers.set()

    def subjects(self) -> list[Subject]:
        return [Subject(name, f"connect-{name}", ("a",)) for name in self.names]

    def read(self, subjects: list[Subject]) -> Reading:
        self.asked += 1
        self.answers.wait(10)
        if self.failure is not None:
            raise self.failure
        return Reading(time.time(), {each.group or "": {PLACE: self.asked} for each in subjects}, ends={PLACE: 100})


@pytest.fixture
def kafka() -> Kafka:
    return Kafka()


@pytest.fixture
def sampler(kafka: Kafka) -> Iterator[Sampler]:
    made = Sampler(kafka.subjects, kafka.read, spread=75, idle=3600, least=3600)
    yield made
    kafka.answers.set()
    made.stop()


def test_many_who_look_at_once_cost_one_question(kafka: Kafka, sampler: Sampler) -> None:
    kafka.answers.clear()
    sampler.start()
    with ThreadPoolExecutor(8) as pool:
        looks = [pool.submit(sampler.fresh, 10) for _ in range(8)]
        eventually(lambda: kafka.asked == 1, what="the question")
        kafka.answers.set()
        assert [look.result().measures["c"].lag for look in looks] == [99] * 8
    assert sampler.fresh().measures["c"].lag == 99
    assert kafka.asked == 1


def test_who_looks_gets_a_fresh_answer_long_before_the_next_idle_look(kafka: Kafka) -> None:
    sampler = Sampler(kafka.subjects, kafka.read, spread=75, idle=3600, least=0)
    sampler.start()
    eventually(lambda: kafka.asked == 1, what="the first look")
    eventually(lambda: sampler.fresh(10).measures["c"].lag == 100 - kafka.asked and kafka.asked > 2, what="fresh looks")
    sampler.stop()


def test_a_kafka_that_does_not_answer_holds_nobody_up_for_long(kafka: Kafka, sampler: Sampler) -> None:
    kafka.answers.clear()
    sampler.start()
    began = time.monotonic()
    assert sampler.fresh(0.1).at == 0
    assert time.monotonic() - began < 5


def test_a_failure_is_told_and_what_was_known_stays(kafka: Kafka, sampler: Sampler) -> None:
    sampler.sample()
    kafka.failure = ConnectError("The brokers are away.")
    sampler.sample()
    look = sampler.fresh(0)
    assert (look.problem, look.measures["c"].lag) == ("The brokers are away.", 99)
    kafka.failure = None
    sampler.sample()
    assert sampler.fresh(0).problem is None


def test_a_defect_is_told_without_its_text_and_ends_nothing(kafka: Kafka, sampler: Sampler) -> None:
    kafka.failure = RuntimeError("password=hunter2")
    sampler.sample()
    problem = sampler.fresh(0).problem
    assert problem is not None
    assert "RuntimeError" in problem
    assert "hunter2" not in problem


def test_a_deleted_connectors_hour_is_forgotten(kafka: Kafka, sampler: Sampler) -> None:
    sampler.sample()
    assert sampler.series("c") is not None
    kafka.names = ["d"]
    sampler.sample()
    assert sampler.series("c") is None
    assert sampler.series("d") is not None


def test_stopping_before_the_start_is_nothing(sampler: Sampler) -> None:
    sampler.stop()

"""Offsets of partitions with and without leaders."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest
from confluent_kafka import KafkaError, KafkaException

from sluiceway.api import TopicPartition
from sluiceway.errors import ConnectError, InternalTopicError, KafkaClientError
from sluiceway.kafka import leaders
from sluiceway.kafka.admin import end_offsets
from sluiceway.kafka.leaders import forget_leaders, without_leader
from support.eventually import LIMIT

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
State = dict[TopicPartition, int]


class Client:
    """An admin client of a cluster that is in one state after the other: leaders by partition, -1 for none, None for no answer.

    As librdkafka's, it does not survive a question for the offsets of a partition without a leader.
    """

    def __init__(self, *states: State | None, refused: int = 0) -> None:
        self._states = list(states)
        self._led: set[TopicPartition] = set()
        self._refused = refused
        self.listed = 0
        self.described = 0

    def list_topics(self, timeout: float) -> Any:
        self.listed += 1
        state = self._states.pop(0) if len(self._states) > 1 else self._states[0]
        if state is None:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        self._led = {partition for partition, leader in state.items() if leader >= 0}
        topics: dict[str, Any] = {name: SimpleNamespace(partitions={}) for name, _ in state}
        for (name, number), leader in state.items():
            topics[name].partitions[number] = SimpleNamespace(leader=leader)
        return SimpleNamespace(topics=topics)

    def list_offsets(self, specs: Iterable[Any], **_: Any) -> dict[Any, Future[Any]]:
        futures: dict[Any, Future[Any]] = {}
        for each in specs:
            assert (each.topic, each.partition) in self._led, "the process ends"
            future: Future[Any] = Future()
            futures[each] = future
            if self._refused:
                self._refused -= 1
                future.set_exception(KafkaException(KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)))
            else:
                future.set_result(SimpleNamespace(offset=7, timestamp=-1))
        return futures

    def describe_topics(self, _topics: Any, **_: Any) -> dict[str, Future[Any]]:
        """Say that topic a has a partition: its broker knows that before others do."""
        self.described += 1
        future: Future[Any] = Future()
        future.set_result(SimpleNamespace(partitions=[SimpleNamespace(leader=1)]))
        return {"a": future}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that only waiting moves."""
    now = SimpleNamespace(time=1000.0)
    monkeypatch.setattr(time, "monotonic", lambda: now.time)
    monkeypatch.setattr(time, "sleep", lambda seconds: setattr(now, "time", now.time + seconds))
    return now


def reasons(client: Any, *partitions: TopicPartition) -> dict[TopicPartition, int]:
    return {partition: error.code() for partition, error in without_leader(client, partitions).items()}


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ({}, KafkaError._NOENT),
        ({TopicPartition("a", 1): 1}, KafkaError._NOENT),
        ({A: -1}, KafkaError.LEADER_NOT_AVAILABLE),
        (None, KafkaError._TRANSPORT),
    ],
)
def test_a_partition_without_a_leader_is_named_with_its_reason(state: State | None, code: int) -> None:
    assert reasons(Client(state), A) == {A: code}
    if state is not None:
        assert reasons(Client({**state, B: 1}), A, B) == {A: code}


@pytest.mark.parametrize("states", [({},), ({A: -1},), (None,), ({}, {A: -1}, None, {}), (None, {A: -1})])
def test_offsets_are_asked_for_once_there_is_a_leader(states: tuple[State | None, ...]) -> None:
    assert end_offsets(Client(*states, {A: 1, B: 1}), [A, B]) == {A: 7, B: 7}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "error", "seconds"),
    [
        ({A: 1}, InternalTopicError, 1),
        ({A: 1, B: -1}, KafkaClientError, 60),
        (None, KafkaClientError, 15),
    ],
)
def test_a_leader_is_waited_for_by_its_reason(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, state: State | None, error: type[ConnectError], seconds: float
) -> None:
    monkeypatch.setattr("sluiceway.kafka.admin.partition_count", lambda _admin, topic: None if topic == "b" else 1)
    client: Any = Client(state)
    with pytest.raises(error, match="'a'" if state is None else "'b'"):
        end_offsets(client, [A] if state is None else [A, B])
    assert seconds <= clock.time - 1000 < seconds + 0.1


def test_a_topic_that_one_broker_knows_is_waited_for() -> None:
    client: Any = Client(*[{}] * 100, {A: 1})
    assert end_offsets(client, [A]) == {A: 7}
    assert client.described


def test_leaders_are_heard_of_again_after_some_minutes_or_an_error(clock: SimpleNamespace) -> None:
    client: Any = Client({A: 1})
    for _ in range(3):
        end_offsets(client, [A])
    assert client.listed == 1
    clock.time += leaders._KNOWN_SECONDS
    end_offsets(client, [A])
    assert client.listed == 2
    client._refused = 1
    end_offsets(client, [A])
    assert client.listed == 3


def test_a_leader_that_is_gone_is_not_known() -> None:
    client = Client({A: 1, B: 1}, {B: 1})
    assert not reasons(client, A)
    forget_leaders(client, [B])  # type: ignore[arg-type]
    assert not reasons(client, B)
    assert reasons(client, A) == {A: KafkaError._NOENT}


def test_one_request_is_enough_for_threads_that_ask_at_once() -> None:
    client: Any = Client({A: 1, B: 1})
    begun, may_end, list_topics = threading.Event(), threading.Event(), client.list_topics

    def slow(timeout: float) -> Any:
        begun.set()
        assert may_end.wait(LIMIT)
        return list_topics(timeout)

    client.list_topics = slow
    with ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(reasons, client, A)]
        assert begun.wait(LIMIT)
        answers.append(pool.submit(reasons, client, A, B))
        may_end.set()
        assert [each.result(LIMIT) for each in answers] == [{}, {}]
    assert client.listed == 1


def test_a_client_is_not_kept() -> None:
    client = Client({A: 1})
    reasons(client, A)
    kept = ref(client)
    del client
    gc.collect()
    assert kept() is None

"""Requests of an admin client that learn leaders, side by side."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from weakref import ref

import pytest

from sluiceway.api import TopicPartition
from sluiceway.kafka import leader_queries
from sluiceway.kafka.leader_queries import leader_query
from support.eventually import LIMIT

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Client:
    """Stands for an admin client."""


def ask(client: Client, *partitions: TopicPartition, answers: bool = True) -> None:
    with leader_query(client, partitions) as answered:  # type: ignore[arg-type]
        answered += partitions if answers else ()


def waits_for(client: Client, *partitions: TopicPartition) -> bool:
    """Return whether a request waits while another thread learns the leader of ``B``."""
    learning, may_end = threading.Event(), threading.Event()

    def learn() -> None:
        with leader_query(client, [B]):  # type: ignore[arg-type]
            learning.set()
            assert may_end.wait(LIMIT)

    with ThreadPoolExecutor(2) as pool:
        other = pool.submit(learn)
        assert learning.wait(LIMIT)
        mine = pool.submit(ask, client, *partitions)
        waited = not wait([mine], timeout=0.05).done
        may_end.set()
        other.result(LIMIT)
        mine.result(LIMIT)
    return waited


def test_requests_without_known_leaders_are_made_one_at_a_time() -> None:
    client = Client()
    assert waits_for(client, A)
    assert waits_for(client), "of metadata"


def test_known_leaders_are_asked_side_by_side() -> None:
    client = Client()
    ask(client, A)
    assert not waits_for(client, A)
    assert waits_for(client, A, TopicPartition("a", 1))


def test_a_leader_that_did_not_answer_is_not_known() -> None:
    client = Client()
    ask(client, A)
    ask(client, A, answers=False)
    assert waits_for(client, A)


def test_leaders_are_known_for_some_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    ask(client, A)
    monkeypatch.setattr(leader_queries, "_KNOWN_SECONDS", 0.0)
    assert waits_for(client, A)


def test_another_client_is_not_waited_for_and_a_client_is_not_kept() -> None:
    client, other = Client(), Client()
    with leader_query(other):  # type: ignore[arg-type]
        ask(client, A)
    kept = ref(client)
    del client
    gc.collect()
    assert kept() is None

"""Fixtures for tests on a real broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from sluiceway.config.worker import WorkerConfig
from support.engine_connectors import Script
from support.kafka import Kafka, worker_for


@pytest.fixture(scope="module")
def kafka(kafka_bootstrap: str) -> Kafka:
    return Kafka(kafka_bootstrap)


@pytest.fixture
def topic(kafka: Kafka, unique: Callable[[str], str]) -> str:
    """The name of a new topic with one partition."""
    return kafka.create(unique("topic"))


@pytest.fixture
def name(unique: Callable[[str], str]) -> str:
    """A connector name that no other test uses."""
    return unique("connector")


@pytest.fixture(autouse=True)
def _forget_scripts() -> Iterator[None]:
    yield
    Script.by_name.clear()


@pytest.fixture
def dlq(unique: Callable[[str], str]) -> str:
    """The name of a dead letter queue topic that no other test uses."""
    return unique("dlq")


@pytest.fixture
def worker(kafka_bootstrap: str, unique: Callable[[str], str]) -> WorkerConfig:
    """A worker's config with internal topics that no other test uses."""
    return worker_for(kafka_bootstrap, unique)


@pytest.fixture
def opened() -> Iterator[Callable[[Any], Any]]:
    """Start stores, and stop them at the end of the test."""
    with ExitStack() as stack:

        def start(store: Any) -> Any:
            store.start()
            stack.callback(store.stop)
            return store

        yield start

"""Fixtures for tests on a real broker."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.kafka import Kafka


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

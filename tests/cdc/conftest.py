"""Fixtures of the tests of change data capture."""

from __future__ import annotations

import pytest

from support.kafka import Kafka


@pytest.fixture
def kafka(kafka_bootstrap: str) -> Kafka:
    return Kafka(kafka_bootstrap)

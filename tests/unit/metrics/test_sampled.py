"""The arithmetic of Kafka's sampled statistics."""

from __future__ import annotations

import math

import pytest

from sluiceway.metrics.sampled import Sampled


def test_the_first_window_counts_as_a_full_one() -> None:
    sampled = Sampled(100.0)
    sampled.record(60, 101.0)
    assert sampled.rate(102.0) == pytest.approx(60 / 32)  # Kafka adds a window while only one has begun


def test_a_rate_covers_the_time_since_the_oldest_window_began() -> None:
    sampled = Sampled(0.0)
    for second in range(45):
        sampled.record(10, second)
    assert sampled.rate(45.0) == pytest.approx(10.0)


def test_values_are_forgotten_after_two_windows() -> None:
    sampled = Sampled(0.0)
    sampled.record(7, 1.0)
    sampled.record(3, 31.0)
    assert (sampled.largest(59.0), sampled.smallest(59.0), sampled.average(59.0)) == (7, 3, 5)
    assert (sampled.largest(61.0), sampled.smallest(61.0), sampled.average(61.0)) == (3, 3, 3)
    assert sampled.total == 10


def test_without_values_there_is_no_average_and_the_rate_is_zero() -> None:
    sampled = Sampled(0.0)
    assert math.isnan(sampled.average(1.0))
    assert math.isnan(sampled.largest(1.0))
    assert math.isnan(sampled.smallest(1.0))
    assert sampled.rate(1.0) == 0
    sampled.record(5, 2.0)
    assert sampled.rate(1000.0) == 0, "a task at rest moves nothing"

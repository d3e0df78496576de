from __future__ import annotations

import pytest

from sluiceway.connectors.verifiable.source import ThroughputThrottler


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_records_are_spread_evenly() -> None:
    clock = Clock()
    throttler = ThroughputThrottler(10, clock)
    assert throttler.take(100) == 1
    assert throttler.take(100) == 0
    assert throttler.wait_seconds(100) == pytest.approx(0.1)
    clock.now += 0.5001
    assert throttler.take(100) == 5
    clock.now += 0.3001
    assert throttler.take(2) == 2
    assert throttler.take(2) == 1


def test_a_long_pause_is_not_caught_up() -> None:
    clock = Clock()
    throttler = ThroughputThrottler(10, clock)
    clock.now += 1000
    assert throttler.take(10**6) == 11
    assert throttler.take(10**6) == 0


def test_at_high_rates_the_wait_is_for_a_batch() -> None:
    throttler = ThroughputThrottler(1000, Clock())
    assert throttler.wait_seconds(500) == pytest.approx(0.049)
    assert throttler.wait_seconds(1) == 0


def test_a_negative_rate_is_no_limit_and_zero_sends_no_records() -> None:
    assert (ThroughputThrottler(-1).take(7), ThroughputThrottler(-1).wait_seconds(7)) == (7, 0)
    assert ThroughputThrottler(0).take(7) == 0
    assert ThroughputThrottler(0).wait_seconds(7) > 0

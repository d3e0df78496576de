"""Tests of how far a task of change data capture is behind its database."""

from __future__ import annotations

from sluiceway.connectors.cdc.task import SourceDelay


class Clocks:
    """The wall clock and the monotonic clock, an hour apart."""

    def __init__(self) -> None:
        self.now = 10_000.0

    def delay(self) -> SourceDelay:
        return SourceDelay(lambda: self.now + 3600, lambda: self.now)


def test_the_delay_is_that_of_the_newest_event_and_grows_until_the_next_poll() -> None:
    clocks = Clocks()
    delay = clocks.delay()
    unknown = delay.seconds
    assert unknown is None
    delay.polled(clocks.now + 3600 - 5)
    assert delay.seconds == 5
    clocks.now += 2
    assert delay.seconds == 7
    delay.caught_up()
    assert delay.seconds == 0
    clocks.now += 3
    assert delay.seconds == 3


def test_a_heartbeat_with_the_time_of_an_old_event_is_no_delay() -> None:
    clocks = Clocks()
    delay = clocks.delay()
    event = clocks.now + 3600
    delay.polled(event)
    clocks.now += 600
    delay.caught_up()
    delay.polled(event)
    assert delay.seconds == 0


def test_an_event_without_a_time_and_a_clock_that_is_ahead() -> None:
    clocks = Clocks()
    delay = clocks.delay()
    delay.polled(0)
    unknown = delay.seconds
    assert unknown is None
    delay.polled(clocks.now + 3600 + 60)
    assert delay.seconds == 0

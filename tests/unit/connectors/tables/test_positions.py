"""Positions: which records are taken, what is durable, and rewinds."""

from __future__ import annotations

import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.tables.positions import Positions

PARTITION = TopicPartition("t", 0)


@pytest.fixture
def positions() -> Positions:
    found = Positions()
    found.open(PARTITION, None)
    return found


def take(positions: Positions, first: int, last: int) -> bool:
    if not positions.accepts(PARTITION, first):
        return False
    positions.took(PARTITION, last)
    return True


def test_taken_records_are_pending_until_they_are_committed(positions: Positions) -> None:
    assert take(positions, 5, 9)
    assert positions.pending() == {PARTITION: 10}
    assert positions.durable(PARTITION, 10) == 5
    positions.committed()
    assert positions.pending() == {}
    assert positions.durable(PARTITION, 12) == 12  # the records from 10 on were filtered out


def test_the_put_that_requests_a_rewind_drops_its_records(positions: Positions) -> None:
    take(positions, 0, 9)
    assert positions.rewind_pending() == {PARTITION: 0}
    assert not take(positions, 10, 14)
    assert positions.rewinds() == {PARTITION: 0}
    assert positions.durable(PARTITION, 15) == 0
    positions.rewound()
    assert positions.rewinds() == {}
    assert take(positions, 0, 9)
    assert take(positions, 10, 19)


def test_a_second_rewind_drops_what_the_first_one_read_again(positions: Positions) -> None:
    take(positions, 0, 9)
    positions.rewind_pending()
    assert not take(positions, 10, 14)
    positions.rewound()
    positions.rewind(PARTITION, 10)  # the commit whose outcome was unknown had taken effect
    assert not take(positions, 0, 9)
    positions.rewound()
    assert take(positions, 10, 19)


def test_a_topic_that_was_created_again_starts_below_the_durable_offset() -> None:
    positions = Positions()
    positions.open(PARTITION, 100)
    assert take(positions, 0, 4)
    assert positions.pending() == {PARTITION: 5}
    assert positions.durable(PARTITION, 5) == 0


def test_a_closed_partition_has_no_durable_offset(positions: Positions) -> None:
    positions.close([PARTITION])
    assert positions.durable(PARTITION, 5) is None

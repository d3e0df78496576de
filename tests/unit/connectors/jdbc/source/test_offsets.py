"""Offsets of the source."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector
from sluiceway.connectors.jdbc.source.offsets import Position
from sluiceway.errors import ConnectError

UTC = dt.timezone.utc


NOON = dt.datetime(2024, 1, 1, 12, tzinfo=UTC)


def test_offsets_keep_microseconds_and_timestamps_before_the_epoch() -> None:
    for moment in (NOON.replace(microsecond=123456), dt.datetime(1969, 12, 31, 23, 59, 59, 999999, UTC)):
        position = Position(5, moment)
        assert Position.of(position.offset()) == position
    assert Position.of({"timestamp": 1500}).timestamp == dt.datetime(1970, 1, 1, 0, 0, 1, 500000, UTC)


@pytest.mark.parametrize(
    ("partition", "offset"),
    [
        ({"x": 1}, {"incrementing": 1}),
        ({"table": "t"}, {"incrementing": "1"}),
        ({"table": "t"}, {"incrementing": True}),
        ({"table": "t"}, {"position": 1}),
        ({"query": "query"}, {"timestamp": 1, "timestamp_nanos": 10**9}),
    ],
)
def test_offsets_that_no_task_can_start_from_are_refused(partition: dict[str, Any], offset: dict[str, Any]) -> None:
    config = {"connection.url": "jdbc:sqlite:x", "mode": "incrementing", "topic.prefix": "t"}
    with pytest.raises(ConnectError):
        JdbcSourceConnector().alter_offsets(config, [(partition, offset)])
    assert JdbcSourceConnector().alter_offsets(config, [(partition, None)])

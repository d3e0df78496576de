"""Stored offsets, and the searches that continue after them."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.connectors.search.connection import Server
from sluiceway.connectors.search.source.config import Mode, SourceOptions
from sluiceway.connectors.search.source.position import Bounds, Position, check_offset, search_body
from sluiceway.errors import ConnectError

SERVER = Server(("http://127.0.0.1:1",))
BULK = SourceOptions(SERVER, ("orders",), Mode.BULK)
WRITES = SourceOptions(SERVER, ("orders",))
NUMBER = SourceOptions(SERVER, ("orders",), field="n")
TIME = SourceOptions(SERVER, ("orders",), Mode.TIMESTAMP, "t")
BY_NUMBER: list[Any] = [{"_seq_no": "asc"}]
BY_FIELD: list[Any] = [{"n": "asc"}, {"_seq_no": "asc"}]
BY_TIME: list[Any] = [{"t": "asc"}, {"_seq_no": "asc"}]
ISO = "strict_date_optional_time"


def parts(body: dict[str, Any]) -> tuple[Any, Any, Any]:
    return body["sort"], body.get("search_after"), body.get("query", {}).get("bool", {}).get("filter")


@pytest.mark.parametrize(
    ("options", "position", "bounds", "expected"),
    [
        (BULK, Position(), Bounds(), (BY_NUMBER, None, None)),
        (BULK, Position(number=7), Bounds(), (BY_NUMBER, [7], None)),
        (WRITES, Position(), Bounds(number=9), (BY_NUMBER, None, [{"range": {"_seq_no": {"lte": 9}}}])),
        (WRITES, Position(number=7), Bounds(number=9), (BY_NUMBER, [7], [{"range": {"_seq_no": {"lte": 9}}}])),
        (NUMBER, Position(), Bounds(), (BY_FIELD, None, [{"exists": {"field": "n"}}])),
        (NUMBER, Position(5, 7), Bounds(), (BY_FIELD, [5, 7], [{"range": {"n": {"gte": 5}}}])),
        (NUMBER, Position(5), Bounds(), (BY_FIELD, None, [{"range": {"n": {"gte": 5}}}])),
        (
            TIME,
            Position(),
            Bounds(before=1000),
            (BY_TIME, None, [{"range": {"t": {"lt": "1970-01-01T00:00:01.000Z", "format": ISO}}}]),
        ),
        (
            TIME,
            Position(-1, 3),
            Bounds(before=1000),
            (
                BY_TIME,
                [-1, 3],
                [{"range": {"t": {"gte": "1969-12-31T23:59:59.999Z", "lt": "1970-01-01T00:00:01.000Z", "format": ISO}}}],
            ),
        ),
        (
            TIME,
            Position(10**18, 3),
            Bounds(before=1000),
            (BY_TIME, [10**18, 3], [{"range": {"t": {"lt": "1970-01-01T00:00:01.000Z", "format": ISO}}}]),
        ),
    ],
)
def test_a_search_continues_after_a_position(
    options: SourceOptions, position: Position, bounds: Bounds, expected: tuple[Any, Any, Any]
) -> None:
    assert parts(search_body(options, position, bounds)) == expected


def test_nanoseconds_are_limited_by_their_millisecond_and_continued_exactly() -> None:
    body = search_body(TIME, Position(1_000_999_999, 3), Bounds(before=2000), nanos=True)
    assert body["search_after"] == [1_000_999_999, 3]
    assert body["query"]["bool"]["filter"][0]["range"]["t"]["gte"] == "1970-01-01T00:00:01.000Z"


def test_a_first_search_begins_at_the_initial_time() -> None:
    options = SourceOptions(SERVER, ("orders",), Mode.TIMESTAMP, "t", initial=1500)
    limits = search_body(options, Position(), Bounds(before=2000))["query"]["bool"]["filter"][0]["range"]["t"]
    assert limits["gte"] == "1970-01-01T00:00:01.500Z"


def test_the_query_the_fields_and_the_metadata_are_part_of_a_search() -> None:
    query = {"term": {"a": 1}}
    options = SourceOptions(SERVER, ("orders",), query=query, include=("a",), exclude=("b",), headers=True, rows=5)
    body = search_body(options, Position(), Bounds(number=1))
    assert body["query"]["bool"]["filter"] == [query, {"range": {"_seq_no": {"lte": 1}}}]
    assert body["_source"] == {"includes": ["a"], "excludes": ["b"]}
    assert (body["version"], body["seq_no_primary_term"], body["size"], body["track_total_hits"]) == (True, True, 5, False)


@pytest.mark.parametrize(
    ("options", "position"),
    [
        (BULK, Position(number=3)),
        (BULK, Position(number=3, finished=True)),
        (WRITES, Position(number=3)),
        (NUMBER, Position(5, 3)),
        (TIME, Position(-5, 0)),
    ],
)
def test_a_stored_offset_is_read_back(options: SourceOptions, position: Position) -> None:
    assert Position.of(position.offset("u", options), "u", options) == position


@pytest.mark.parametrize(
    ("stored", "by", "found"),
    [
        (None, TIME, Position()),
        (Position(5, 3).offset("other", TIME), TIME, Position(5)),
        (Position(number=3).offset("other", WRITES), WRITES, Position()),
        (Position(number=3, finished=True).offset("u", BULK), TIME, Position()),
        (Position(5, 3).offset("u", TIME), BULK, Position()),
        ({"mode": "timestamp", "field": "t", "value": 5}, TIME, Position(5)),
    ],
)
def test_what_does_not_fit_an_index_or_a_mode_is_not_continued(stored: Any, by: SourceOptions, found: Position) -> None:
    assert Position.of(stored, "u", by) == found


def test_an_offset_of_another_field_is_refused() -> None:
    with pytest.raises(ConnectError, match="of the field t, but the config names n"):
        Position.of(Position(5, 3).offset("u", TIME), "u", NUMBER)


PARTITION = {"index": "orders", "shard": 0}


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [
        ({"index": "orders"}, None, "source partition"),
        ({"index": "orders", "shard": "0"}, None, "source partition"),
        (PARTITION, {}, "'mode'"),
        (PARTITION, {"mode": "bulk", "seq_no": "1"}, "'seq_no'"),
        (PARTITION, {"mode": "timestamp", "value": 1.5}, "'value'"),
    ],
)
def test_an_offset_that_no_task_can_start_from_is_refused(partition: Any, offset: Any, message: str) -> None:
    with pytest.raises(ConnectError, match=message):
        check_offset(partition, offset)


def test_offsets_can_be_set_and_deleted() -> None:
    check_offset(PARTITION, None)
    check_offset(PARTITION, Position(5, 3).offset("u", TIME))

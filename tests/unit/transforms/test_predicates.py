from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.data import INT32_SCHEMA, Header
from sluiceway.errors import ConfigError
from sluiceway.transforms.predicates.has_header_key import HasHeaderKey
from sluiceway.transforms.predicates.record_is_tombstone import RecordIsTombstone
from sluiceway.transforms.predicates.timestamp_between import TimestampBetween
from sluiceway.transforms.predicates.topic_name_matches import TopicNameMatches


def record(value: Any = 1, topic: str = "orders", **more: Any) -> SinkRecord:
    return SinkRecord(topic, 0, 0, value, **more)


@pytest.mark.parametrize(
    ("value", "schema", "expected"), [(None, None, True), (None, INT32_SCHEMA, True), (0, None, False), ("", None, False)]
)
def test_a_tombstone_is_a_record_without_value(value: Any, schema: Any, expected: bool) -> None:
    assert RecordIsTombstone().test(record(value, value_schema=schema)) is expected


@pytest.mark.parametrize(("name", "expected"), [("h", True), ("null", True), ("H", False), ("x", False)])
def test_a_header_matches_by_name_whatever_its_value(name: str, expected: bool) -> None:
    predicate = HasHeaderKey()
    predicate.configure({"name": name})
    assert predicate.test(record(headers=(Header("h", 1), Header("null", None)))) is expected


def test_a_topic_matches_with_its_whole_name() -> None:
    predicate = TopicNameMatches()
    predicate.configure({"pattern": "ord.*r"})
    assert [predicate.test(record(topic=topic)) for topic in ("order", "orders", "order", "xorder")] == [True, False, True, False]


@pytest.mark.parametrize(
    ("predicate", "options", "why"),
    [
        (HasHeaderKey, {}, 'Missing required configuration "name"'),
        (HasHeaderKey, {"name": ""}, "Invalid value  for configuration name: String must be non-empty"),
        (TopicNameMatches, {"pattern": ""}, "Invalid value  for configuration pattern: String must be non-empty"),
        (TopicNameMatches, {"pattern": "("}, r"Invalid value \( for configuration pattern: Invalid regex: Unclosed group"),
    ],
)
def test_options_that_cannot_be_used_are_refused(predicate: type[Any], options: dict[str, str], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        predicate().configure(options)


@pytest.mark.parametrize(("timestamp", "expected"), [(99, False), (100, True), (199, True), (200, False), (None, False)])
def test_a_time_range_includes_its_start_but_not_its_end(timestamp: int | None, expected: bool) -> None:
    predicate = TimestampBetween()
    predicate.configure({"from.ms": "100", "to.ms": "200"})
    assert predicate.test(record(timestamp=timestamp)) is expected

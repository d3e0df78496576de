from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.data import Header
from sluiceway.errors import ConfigError
from sluiceway.transforms.predicates.has_header_key import HasHeaderKey
from sluiceway.transforms.predicates.topic_name_matches import TopicNameMatches


def record(value: Any = 1, topic: str = "orders", **more: Any) -> SinkRecord:
    return SinkRecord(topic, 0, 0, value, **more)


@pytest.mark.parametrize(("name", "expected"), [("h", True), ("null", True), ("H", False), ("x", False)])
def test_a_header_matches_by_name_whatever_its_value(name: str, expected: bool) -> None:
    predicate = HasHeaderKey()
    predicate.configure({"name": name})
    assert predicate.test(record(headers=(Header("h", 1), Header("null", None)))) is expected


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

from __future__ import annotations

import pytest

from sluiceway.errors import ConfigError
from sluiceway.transforms.regex_router import RegexRouter
from sluiceway.transforms.timestamp_router import TimestampRouter
from unit.transforms.transforming import configured, source_record, transformed


@pytest.mark.parametrize(
    ("regex", "replacement", "topic"),
    [("or(.*)s", "$1", "der"), ("ord", "x", "orders"), ("", "x", "orders"), ("(.*)", "", ""), (" or.*", "x", "x")],
)
def test_a_topic_whose_whole_name_matches_is_renamed(regex: str, replacement: str, topic: str) -> None:
    assert transformed(configured(RegexRouter, regex=regex, replacement=replacement), 1).topic == topic


def test_a_topic_that_keeps_its_name_keeps_its_record() -> None:
    record = source_record(1)
    assert configured(RegexRouter, regex="x", replacement="y").apply(record) is record


def test_many_topics_do_not_fill_the_memory() -> None:
    router = configured(RegexRouter, regex="t(.*)", replacement="$1")
    topics = [router.apply(source_record(1).new_record(topic=f"t{number}")).topic for number in range(2500)]  # type: ignore[union-attr]
    assert topics == [str(number) for number in range(2500)]
    assert len(router._renamed) <= 1000


@pytest.mark.parametrize("cls", [RegexRouter, TimestampRouter])
def test_a_null_value_passes(cls: type[RegexRouter | TimestampRouter]) -> None:
    options = {"regex": ".*", "replacement": "x"} if cls is RegexRouter else {}
    assert transformed(configured(cls, **options), None, timestamp=0).value is None


def test_a_router_without_regex_is_refused() -> None:
    with pytest.raises(ConfigError, match='Missing required configuration "regex"'):
        configured(RegexRouter, replacement="x")

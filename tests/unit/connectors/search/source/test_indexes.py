"""The indexes of names and wildcards, and their topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sluiceway.connectors.search.source.indexes import Shard, from_config, indexes_of, missing, to_config, topic_of
from sluiceway.errors import ConnectError


def answer(shards: int = 1, **more: Any) -> dict[str, Any]:
    return {"settings": {"index": {"uuid": "u", "number_of_shards": str(shards)}}, "aliases": {}, **more}


FOUND: Mapping[str, Any] = {
    "b": answer(2, aliases={"c": {}}),
    "a": answer(),
    ".kibana": answer(),
    ".ds-logs-1": answer(data_stream="logs"),
}


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        (["*"], [".ds-logs-1", "a", "b"]),
        (["*", ".k*"], [".ds-logs-1", ".kibana", "a", "b"]),
    ],
)
def test_system_indexes_are_left_out_unless_they_are_meant(patterns: list[str], found: list[str]) -> None:
    assert [each.name for each in indexes_of(FOUND, patterns)] == found


def test_an_alias_may_name_a_system_index() -> None:
    assert [each.name for each in indexes_of({".k": answer(aliases={"k": {}})}, ["k"])] == [".k"]


def test_an_index_has_a_unit_for_each_shard() -> None:
    units = [shard for index in indexes_of(FOUND, ["*"]) for shard in index.units()]
    expected = [Shard(".ds-logs-1", 0, "u", "logs"), Shard("a", 0, "u", "a"), Shard("b", 0, "u", "b"), Shard("b", 1, "u", "b")]
    assert units == expected
    assert from_config(to_config(units)) == expected


def test_an_alias_with_a_filter_is_refused() -> None:
    found = {"a": answer(aliases={"few": {"filter": {"term": {"n": 1}}}, "all": {}})}
    assert len(indexes_of(found, ["all"])) == 1
    with pytest.raises(ConnectError, match=r"alias few has a filter.*Name the index a instead"):
        indexes_of(found, ["few"])


@pytest.mark.parametrize(
    ("patterns", "lacking"),
    [
        (["a", "c", "logs", "b*"], []),
        (["a", "d"], ["d"]),
        (["x*", "-a"], []),
    ],
)
def test_names_that_stand_for_nothing_are_missing(patterns: list[str], lacking: list[str]) -> None:
    assert missing(patterns, indexes_of(FOUND, patterns)) == lacking


def test_a_wildcard_is_missing_while_there_is_no_index() -> None:
    assert missing(["x*", "-a"], []) == ["x*"]


@pytest.mark.parametrize(("origin", "topic"), [("orders", "p-orders"), ("é+1", "p-__1"), (".ds_a-1", "p-.ds_a-1")])
def test_a_topic_is_named_after_its_index(origin: str, topic: str) -> None:
    assert topic_of("p-", origin) == topic

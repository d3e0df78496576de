"""Tests the selection of streams and fields in catalogs."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from sluiceway.connectors.singer.catalog import Selection
from sluiceway.errors import ConnectError

SCHEMA = {
    "properties": {
        "id": {"type": "integer"},
        "secret": {"type": "string"},
        "address": {"type": "object", "properties": {"city": {"type": "string"}, "street": {"type": "string"}}},
    }
}


def catalog(*names: str, metadata: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {
        "streams": [
            {
                "tap_stream_id": name,
                "stream": name,
                "schema": deepcopy(SCHEMA),
                "metadata": metadata or [],
                "key_properties": ["id"],
            }
            for name in names
        ]
    }


def chosen(made: dict[str, Any]) -> list[str]:
    """Return the selected streams and fields."""
    found = []
    for stream in made["streams"]:
        for each in stream["metadata"]:
            if each["metadata"].get("selected"):
                found.append(".".join((stream["tap_stream_id"], *each["breadcrumb"][1::2])))
    return found


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], ["a", "a.id", "a.secret", "a.address", "a.address.city", "a.address.street", "b", "b.id", "b.secret"]),
        (["*.*"], ["a", "a.id", "a.secret", "a.address", "a.address.city", "a.address.street", "b", "b.id", "b.secret"]),
        (["a.*"], ["a", "a.id", "a.secret", "a.address", "a.address.city", "a.address.street"]),
        (["a"], ["a", "a.id", "a.secret", "a.address", "a.address.city", "a.address.street"]),
        (["a.secret"], ["a", "a.id", "a.secret"]),
        (["a.id"], ["a", "a.id"]),
        (["a.*", "!a.secret"], ["a", "a.id", "a.address", "a.address.city", "a.address.street"]),
        (["*.*", "!b.*", "!a.secret", "!a.address*"], ["a", "a.id"]),
        (["!b", "!*.address*", "*.*"], ["a", "a.id", "a.secret"]),
        (["a.address", "a.address.city"], ["a", "a.id", "a.address", "a.address.city"]),
        (["[ab].id", "!b.*"], ["a", "a.id"]),
    ],
)
def test_rules_select_streams_and_fields(rules: list[str], expected: list[str]) -> None:
    found = [each for each in chosen(Selection(tuple(rules)).apply(catalog("a", "b"))) if not each.startswith("b.address")]
    assert found == expected


def test_a_dot_of_a_name_follows_a_backslash() -> None:
    made = Selection(("shop\\.orders.id",)).apply(catalog("shop.orders", "shop"))
    assert chosen(made) == ["shop.orders", "shop.orders.id"]


def test_what_the_tap_says_of_a_field_counts() -> None:
    metadata = [
        {"breadcrumb": [], "metadata": {"replication-key": "secret"}},
        {"breadcrumb": ["properties", "address"], "metadata": {"inclusion": "unsupported"}},
        {"breadcrumb": ["properties", "address", "properties", "city"], "metadata": {"inclusion": "automatic"}},
    ]
    made = Selection(("a.none", "a.address")).apply(catalog("a", metadata=metadata))
    assert sorted(chosen(made)) == ["a", "a.address.city", "a.id", "a.secret"]
    unsupported = [{"breadcrumb": [], "metadata": {"inclusion": "unsupported"}}]
    with pytest.raises(ConnectError, match="selects no stream"):
        Selection().apply(catalog("a", metadata=unsupported))


def test_metadata_of_a_name_counts_more_than_that_of_a_pattern() -> None:
    method, key = "replication-method", "replication-key"
    rules = {"a": {method: "FULL_TABLE"}, "*": {method: "INCREMENTAL", key: "id"}}
    made = Selection(metadata=rules).apply(catalog("a", "b"))
    found = [
        (stream["replication_method"], stream["replication_key"], stream["metadata"][0]["metadata"]) for stream in made["streams"]
    ]
    assert found == [
        ("FULL_TABLE", "id", {"selected": True, method: "FULL_TABLE", key: "id"}),
        ("INCREMENTAL", "id", {"selected": True, method: "INCREMENTAL", key: "id"}),
    ]


def test_older_taps_find_the_selection_in_the_schema() -> None:
    original = catalog("a", "b")
    made = Selection(("a.*", "!a.secret")).apply(original, old_form=True)
    first, second = (stream["schema"] for stream in made["streams"])
    assert (first["selected"], second["selected"]) == (True, False)
    assert {name: each["selected"] for name, each in first["properties"].items()} == {
        "id": True,
        "secret": False,
        "address": True,
    }
    assert original == catalog("a", "b")
    assert "selected" not in Selection(("a.*",)).apply(original)["streams"][0]["schema"]


def test_a_selection_of_nothing_names_the_streams() -> None:
    with pytest.raises(ConnectError, match=r"singer.select=c.\* selects no stream. The tap has these: a, b"):
        Selection(("c.*",)).apply(catalog("b", "a"))


@pytest.mark.parametrize("found", [None, [], {}, {"streams": {}}, {"streams": ["a"]}])
def test_what_is_no_catalog_is_refused(found: Any) -> None:
    with pytest.raises(ConnectError, match="not of the form"):
        Selection().apply(found)


def test_a_stream_without_metadata_and_schema_is_selected() -> None:
    made = Selection().apply({"streams": [{"stream": "a"}]})
    assert made == {
        "streams": [{"stream": "a", "selected": True, "metadata": [{"breadcrumb": [], "metadata": {"selected": True}}]}]
    }

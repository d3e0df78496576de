from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.java.hash_map import hash_map_order


@pytest.mark.parametrize(
    ("put", "listed"),  # as Java 17 lists them
    [
        (
            ["id", "user", "tags", "amount", "Ünï", "k_1", "name", "ts"],
            ["amount", "name", "id", "k_1", "user", "Ünï", "tags", "ts"],
        ),
        (
            [
                "zebra",
                "apple",
                "timestamp",
                "topic",
                "partition",
                "offset",
                "static",
                "value",
                "key",
                "headers",
                "created_at",
                "updated_at",
                "customer_id",
                "😀",
            ],
            [
                "zebra",
                "headers",
                "static",
                "offset",
                "created_at",
                "apple",
                "partition",
                "updated_at",
                "😀",
                "topic",
                "customer_id",
                "value",
                "key",
                "timestamp",
            ],
        ),
    ],
)
def test_keys_are_listed_as_java_lists_them(put: list[str], listed: list[str]) -> None:
    assert hash_map_order(put) == listed


@given(st.lists(st.text() | st.integers(), unique=True))
def test_no_key_is_lost_and_keys_that_are_not_strings_come_last(keys: list[object]) -> None:
    listed = hash_map_order(keys)
    assert sorted(map(repr, listed)) == sorted(map(repr, keys))
    kinds = [isinstance(key, str) for key in listed]
    assert kinds == sorted(kinds, reverse=True)

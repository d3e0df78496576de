"""Compares the order with Java's: data/hash_map_orders.json comes from a Java 17 program that uses HashMap."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.java.hash_map import hash_map_order, string_hash, task_config_order

ORDERS = json.loads((Path(__file__).parent / "data" / "hash_map_orders.json").read_text(encoding="utf-8"))


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


@pytest.mark.parametrize("example", ORDERS, ids=lambda example: f"{len(example['java'])}-keys")
def test_task_configs_come_in_the_order_of_javas_hash_map(example: dict[str, list[str]]) -> None:
    config = dict.fromkeys(example["given"], "1")
    assert list(task_config_order(config, "task.class")) == example["java"]


def test_string_hash_is_javas_also_beyond_ascii_and_beyond_16_bits() -> None:
    assert string_hash("") == 0
    assert string_hash("task.class") == 4189836239
    assert string_hash("AaAa") == string_hash("BBBB")
    assert string_hash("😀") == 31 * 0xD83D + 0xDE00

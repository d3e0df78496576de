from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sluiceway.data import INT32_SCHEMA, INT64_SCHEMA, STRING_SCHEMA, Schema, Type, decimal_schema
from sluiceway.transforms.debezium.hashes import java_hash, murmur_hash


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ("hello", STRING_SCHEMA, 99162322),
        ("é😀", STRING_SCHEMA, 233 * 31 * 31 + 0xD83D * 31 + 0xDE00),
        (-5, INT32_SCHEMA, -5),
        (-5, INT64_SCHEMA, 4),
        (1 << 40, INT64_SCHEMA, 256),
        (True, Schema(Type.BOOLEAN), 1231),
        (1.5, Schema(Type.FLOAT64), 1073217536),
        (1.5, Schema(Type.FLOAT32), 1069547520),
        (Decimal("12.30"), decimal_schema(2), 31 * 1230 + 2),
        (Decimal("-12.30"), decimal_schema(2), -31 * 1230 + 2),
        (b"\x01\xff", Schema(Type.BYTES), (31 - 1) * 31 + 1),
        (["a", None], Schema.array(STRING_SCHEMA), (31 + 97) * 31),
    ],
)
def test_java_hash_codes(value: Any, schema: Schema, expected: int) -> None:
    assert java_hash(value, schema) == expected


def test_murmur_hashes_differ_from_javas_and_take_any_text() -> None:
    assert murmur_hash("hello", STRING_SCHEMA) != java_hash("hello", STRING_SCHEMA)
    assert murmur_hash("\ud83d", STRING_SCHEMA) == murmur_hash("?", STRING_SCHEMA)
    assert all(-(1 << 31) <= murmur_hash("é" * size, STRING_SCHEMA) < 1 << 31 for size in range(20))


def test_a_decimal_of_any_length_has_a_hash() -> None:
    assert java_hash(Decimal("7" * 9000), decimal_schema(0)) == java_hash(Decimal("7" * 9000), decimal_schema(0)) != 0

"""Types of PostgreSQL's catalog that are arrays in their declaration only, and long numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.types import TypeRegistry

_CONFIG = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.password": "x", "database.dbname": "d"}


def _query(statement: str) -> list[tuple[Any, ...]]:
    if "pg_enum" in statement:
        return []
    return [
        (21, "int2", "b", 0, -1, 0, ","),
        (26, "oid", "b", 0, -1, 0, ","),
        (22, "int2vector", "b", 0, -1, 21, ","),
        (30, "oidvector", "b", 0, -1, 26, ","),
    ]


@pytest.mark.parametrize("oid", [22, 30])
@pytest.mark.parametrize("text", ["", "1", "1 2 3"])
def test_vectors_are_empty_as_debeziums_or_have_their_numbers(oid: int, text: str) -> None:
    for compat, expected in (("debezium", []), ("correct", [int(each) for each in text.split()])):
        config = postgres_config({**_CONFIG, "sluiceway.cdc.compat": compat})
        _, field = TypeRegistry(_query, config.settings).resolve(oid, -1)

        assert field is not None
        assert field.convert(text) == expected
        assert field.schema.value_schema is not None
        assert not field.schema.value_schema.optional


@pytest.mark.parametrize("digits", [1, 4300, 4301, 9000])
@pytest.mark.parametrize("form", ["{}", "-{}", "0.{}1", "{}.5"])
def test_a_number_of_any_length_is_read(digits: int, form: str) -> None:
    _, field = TypeRegistry(_numeric, postgres_config(_CONFIG).settings).resolve(1700, -1)
    assert field is not None
    text = form.format("7" * digits)
    scale, value = field.convert(text).values_
    assert scale == len(text.partition(".")[2])
    assert Decimal(int.from_bytes(value, "big", signed=True)) == Decimal(text.replace(".", ""))


def _numeric(statement: str) -> list[tuple[Any, ...]]:
    return [] if "pg_enum" in statement else [(1700, "numeric", "b", 0, -1, 0, ",")]

"""Masks of columns."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.columns import Column, ColumnRules, FieldType
from sluiceway.data import Schema, Type
from sluiceway.data.schema import STRING_SCHEMA


def _column(schema: Schema) -> Column:
    field = FieldType(schema, str, "", "")
    return Column(name="c", field=field, optional=True, type_name="text", type_label="text", length=None, scale=None)


@pytest.mark.parametrize(
    ("length", "value", "truncated"),
    [
        (3, "abcdef", "abc"),
        (3, "abc", "abc"),
        (2, "🐢🐢", "🐢"),
        (3, "🐢🐢", "🐢"),
        (1, "🐢", ""),
        (4, "🐢🐢", "🐢🐢"),
        (3, "żżżż", "żżż"),
        (0, "a", ""),
        (3, None, None),
    ],
)
def test_truncation_counts_units_of_utf_16(length: int, value: str | None, truncated: str | None) -> None:
    mutation = ColumnRules({f"column.truncate.to.{length}.chars": "s.t.c"}).mutation("s.t", _column(STRING_SCHEMA))

    assert mutation is not None
    assert mutation.convert(value) == truncated


@pytest.mark.parametrize(
    "key", ["column.mask.with.5.chars", "column.truncate.to.5.chars", "column.mask.hash.SHA-256.with.salt.x"]
)
def test_uuids_are_not_masked(key: str) -> None:
    rules = ColumnRules({key: "s.t.c"})

    assert rules.mutation("s.t", _column(Schema(Type.STRING, name="io.debezium.data.Uuid", version=1))) is None
    assert rules.mutation("s.t", _column(STRING_SCHEMA)) is not None

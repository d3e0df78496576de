from __future__ import annotations

from typing import Any

import pytest

from sluiceway.data import (
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Struct,
    Type,
    project,
)
from sluiceway.errors import SchemaProjectorError

OLD = Schema.struct({"a": INT32_SCHEMA, "gone": STRING_SCHEMA, "l": Schema.array(INT8_SCHEMA)})
NEW = Schema.struct(
    {
        "a": INT64_SCHEMA,
        "l": Schema.array(INT32_SCHEMA),
        "new": OPTIONAL_STRING_SCHEMA,
        "set": Schema(Type.STRING, default="x"),
    }
)


def test_fields_are_widened_dropped_left_out_and_filled_in() -> None:
    projected = project(OLD, Struct(OLD, {"a": 1, "gone": "g", "l": [1, 2]}), NEW)
    assert projected == Struct(NEW, {"a": 1, "l": [1, 2], "set": "x"})


@pytest.mark.parametrize(
    ("source", "value", "target", "projected"),
    [
        (INT8_SCHEMA, 5, FLOAT64_SCHEMA, 5.0),
        (INT64_SCHEMA, 2**53 + 1, FLOAT32_SCHEMA, float(2**53)),
        (OPTIONAL_INT32_SCHEMA, None, Schema(Type.INT32, default=7), 7),
        (OPTIONAL_INT32_SCHEMA, 5, Schema(Type.INT32, default=7), 5),
        (OPTIONAL_INT32_SCHEMA, None, Schema(Type.INT64, optional=True, default=7), None),
        (Schema.map(STRING_SCHEMA, INT8_SCHEMA), {"a": 1}, Schema.map(STRING_SCHEMA, FLOAT64_SCHEMA), {"a": 1.0}),
    ],
)
def test_values_are_projected(source: Schema, value: Any, target: Schema, projected: Any) -> None:
    found = project(source, value, target)
    assert (found, type(found)) == (projected, type(projected))


@pytest.mark.parametrize(
    ("source", "value", "target", "message"),
    [
        (INT64_SCHEMA, 1, INT32_SCHEMA, "Schema type mismatch. source type: INT64 and target type: INT32"),
        (INT32_SCHEMA, 1, Schema(Type.INT32, name="N"), "Schema name mismatch. source name: null and target name: N"),
        (
            INT32_SCHEMA,
            1,
            Schema(Type.INT32, parameters={"a": "b"}),
            "Schema parameters not equal. source parameters: null and target parameters: {a=b}",
        ),
        (
            OPTIONAL_INT32_SCHEMA,
            1,
            INT32_SCHEMA,
            "Writer schema is optional, however, target schema does not provide a default value.",
        ),
        (
            OLD,
            Struct(OLD, {"a": 1}),
            Schema.struct({"b": INT8_SCHEMA}),
            f"Required field `b` is missing from source schema: {OLD}",
        ),
        (OLD, Struct(OLD, {"a": 1}), Schema.struct({"a": STRING_SCHEMA}), "Error projecting a"),
    ],
)
def test_what_cannot_be_projected_is_refused(source: Schema, value: Any, target: Schema, message: str) -> None:
    with pytest.raises(SchemaProjectorError) as caught:
        project(source, value, target)
    assert str(caught.value) == message

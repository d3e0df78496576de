from __future__ import annotations

import pickle
from typing import Any

import pytest

from sluiceway.data import (
    BYTES_SCHEMA,
    INT8_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    STRING_SCHEMA,
    Schema,
    SchemaBuilder,
    Type,
)
from sluiceway.errors import DataError, SchemaBuilderError

POINT = Schema.struct(
    {"x": INT32_SCHEMA, "y": OPTIONAL_INT32_SCHEMA},
    optional=True,
    name="Point",
    version=2,
    doc="a point",
    parameters={"unit": "m"},
)


def built() -> SchemaBuilder:
    return SchemaBuilder.struct().field("x", INT32_SCHEMA).field("y", OPTIONAL_INT32_SCHEMA).name("Point").version(2)


def test_the_builder_makes_what_the_constructor_makes() -> None:
    schema = built().optional().doc("a point").parameter("unit", "m").build()
    assert schema == POINT
    assert hash(schema) == hash(POINT)
    assert SchemaBuilder.array(INT8_SCHEMA).build() == Schema.array(INT8_SCHEMA)
    assert SchemaBuilder.map(STRING_SCHEMA, BYTES_SCHEMA).build() == Schema.map(STRING_SCHEMA, BYTES_SCHEMA)
    assert SchemaBuilder.int64().required().default(5).build() == Schema(Type.INT64, default=5)


def test_a_schema_with_anything_else_differs() -> None:
    others = [
        POINT.replace(optional=False),
        POINT.replace(name="P"),
        POINT.replace(version=3),
        POINT.replace(doc=None),
        POINT.replace(parameters={}),
        POINT.replace(fields=[("x", INT32_SCHEMA)]),
        POINT.replace(fields=[("x", INT64_SCHEMA)]),
    ]
    assert all(other != POINT for other in others)
    assert len({POINT, POINT.replace(), *others}) == len(others) + 1
    assert Schema(Type.INT8, default=1) != Schema(Type.INT8, default=2)


def test_a_schema_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        POINT.name = "x"
    with pytest.raises(TypeError):
        POINT.parameters["unit"] = "km"  # type: ignore[index]
    with pytest.raises(TypeError):
        POINT.parameters.update(unit="km")  # type: ignore[attr-defined]


def test_a_schema_pickles() -> None:
    assert pickle.loads(pickle.dumps(POINT)) == POINT  # noqa: S301
    assert pickle.loads(pickle.dumps(POINT.parameters)) == {"unit": "m"}  # noqa: S301


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: SchemaBuilder(None), "type cannot be null"),
        (lambda: SchemaBuilder.int8().default(300), "Invalid default value"),
        (lambda: SchemaBuilder.int8().default(None), "Invalid default value"),
        (lambda: SchemaBuilder.string().default(5), "Invalid default value"),
        (lambda: SchemaBuilder.int8().optional().required(), "Invalid SchemaBuilder call: optional has already been set."),
        (lambda: SchemaBuilder.int8().name("a").name("b"), "Invalid SchemaBuilder call: name has already been set."),
        (lambda: SchemaBuilder.int8().default(1).default(2), "Invalid SchemaBuilder call: default has already been set."),
        (lambda: SchemaBuilder.int8().field("a", INT8_SCHEMA), "Cannot create fields on type INT8"),
        (lambda: built().field("x", INT8_SCHEMA), "Cannot create field because of field name duplication x"),
        (lambda: built().field("", INT8_SCHEMA), "fieldName cannot be null."),
        (lambda: built().field("z", None), "fieldSchema for field z cannot be null."),  # type: ignore[arg-type]
        (lambda: SchemaBuilder.array(None), "valueSchema cannot be null."),  # type: ignore[arg-type]
        (lambda: SchemaBuilder.map(None, INT8_SCHEMA), "keySchema cannot be null."),  # type: ignore[arg-type]
        (lambda: Schema.struct([("a", INT8_SCHEMA)] * 2), "Cannot create field because of field name duplication a"),
    ],
)
def test_what_cannot_be_built_is_refused(build: Any, message: str) -> None:
    with pytest.raises(SchemaBuilderError) as caught:
        build()
    assert str(caught.value) == message


def test_an_optional_schema_may_have_null_as_its_default() -> None:
    assert SchemaBuilder.int8().optional().default(None).build() == Schema(Type.INT8, optional=True)


def test_only_structs_have_fields() -> None:
    assert POINT.field("nope") is None
    with pytest.raises(DataError, match="Cannot look up fields on non-struct type"):
        INT8_SCHEMA.field("a")

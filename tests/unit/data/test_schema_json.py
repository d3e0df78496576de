from __future__ import annotations

from typing import Any

import pytest

from sluiceway.data.schema_json import schema_from_json
from sluiceway.errors import DataError, SchemaBuilderError


def struct(*fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


@pytest.mark.parametrize(
    ("fields", "error", "text"),
    [
        ([{"type": "int8", "field": ""}], SchemaBuilderError, "fieldName cannot be null."),
        ([{"type": "int8", "field": "a"}] * 2, SchemaBuilderError, "Cannot create field because of field name duplication a"),
        (
            [*[{"type": "int8", "field": "a"}] * 2, {"type": "x", "field": "b"}],
            SchemaBuilderError,
            "Cannot create field because of field name duplication a",
        ),
        ([{"type": "x", "field": ""}], DataError, "Unknown schema type: x"),
    ],
)
def test_the_first_of_several_field_errors_is_reported(fields: list[Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        schema_from_json(struct(*fields), lambda _schema, default: default)
    assert str(caught.value) == text

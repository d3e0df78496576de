from __future__ import annotations

import pytest

from sluiceway.data import INT8_SCHEMA, STRING_SCHEMA, Header
from sluiceway.errors import ConfigError
from sluiceway.transforms.insert_header import InsertHeader
from unit.transforms.transforming import configured, transformed

HEADERS = (Header("h1", 1), Header("h2", 2), Header("h1", 3), Header("H1", 4))


@pytest.mark.parametrize(
    ("literal", "header"),
    [("5", Header("h", 5, INT8_SCHEMA)), ("text", Header("h", "text", STRING_SCHEMA)), ("null", Header("h", None, None))],
)
def test_the_type_of_an_inserted_header_is_inferred_from_its_text(literal: str, header: Header) -> None:
    record = transformed(configured(InsertHeader, header="h", value_literal=literal), 1, headers=HEADERS)
    assert record.headers == (*HEADERS, header)


@pytest.mark.parametrize("missing", ["header", "value.literal"])
def test_a_header_needs_name_and_value(missing: str) -> None:
    options = {"header": "h", "value.literal": "v"}
    del options[missing]
    with pytest.raises(ConfigError, match=f'Missing required configuration "{missing}"'):
        configured(InsertHeader, **options)

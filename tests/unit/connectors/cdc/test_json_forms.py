"""Which errors of expressions for JSON are those of values, and which are faults."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import TaskConverters
from sluiceway.connectors.cdc.columns import UNAVAILABLE, Column, FieldType
from sluiceway.connectors.cdc.emitter import Emitter
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.json_forms import Calculated, is_unusual
from sluiceway.connectors.cdc.mysql.binlog.temporal import INVALID
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.source import SOURCE, Position, Sources
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import INT64_SCHEMA
from unit.connectors.cdc.test_incremental import CONFIG

_PLAIN: list[Any] = ["text", "", 5, 1.5, None]
_OTHER: list[Any] = [UNAVAILABLE, INVALID, b"bytes", [1], {"a": 1}]


@pytest.mark.parametrize("error", [ValueError("v"), KeyError("k"), ArithmeticError("a")])
@pytest.mark.parametrize("value", [*_PLAIN, *_OTHER], ids=repr)
def test_a_value_that_an_expression_refuses_is_unusual(error: Exception, value: Any) -> None:
    assert is_unusual(error, None, (value,))


@pytest.mark.parametrize("error", [TypeError("t"), AttributeError("a")])
@pytest.mark.parametrize("value", [*_PLAIN, *_OTHER], ids=repr)
def test_a_wrong_type_is_unusual_only_among_other_values_than_text_and_numbers(error: Exception, value: Any) -> None:
    assert is_unusual(error, None, ("x", value)) == (value in _OTHER)


def _broken(raw: Any) -> int:
    return raw.nosuch


def test_a_fault_in_an_expression_ends_the_task() -> None:
    converters = TaskConverters(JsonConverter(), JsonConverter())
    for each in converters:
        each.configure({"schemas.enable": "false"}, is_key=False)
    common = postgres_config(CONFIG).common
    field = FieldType(INT64_SCHEMA, int, json=Calculated(_broken))
    table = common.schemas(SOURCE).build(TableId("public", "t"), [Column(name="n", field=field, optional=True)], [])
    emitter = Emitter(common, "postgresql", converters)
    block = Sources("p", "d").snapshot("true", "public", "t", Position(lsn=1, xid=1, micros=1))
    emitter.encode_columns()
    assert emitter.reads(table, [("5",)] * 40, block, {}) is None  # to be read one by one, which shows the error
    with pytest.raises(AttributeError, match="nosuch"):
        emitter.read(table, ("5",), block, {})

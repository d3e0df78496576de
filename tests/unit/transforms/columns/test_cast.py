"""Each edge value is cast to each type like in the row form, alone, so that no other value of a batch hides it."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.data import Schema, Struct, Type
from support.column_cases import DOUBLES, ODD_DOUBLES, TEXTS
from support.columnar import Case, batch_of, differences
from unit.runtime.chains import chain_config

_TARGETS = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
_INTEGERS = (0, 1, -1, 127, 128, -129, 32768, 2**31, -(2**31) - 1, 2**53 + 1, 2**63 - 1, -(2**63))
_VALUES: dict[Type, tuple[Any, ...]] = {
    Type.STRING: TEXTS,
    Type.FLOAT64: (*DOUBLES, *ODD_DOUBLES, 127.9, -128.5, 128.0, 65536.5, 2.0**31 - 0.5, 2.0**63 - 1024),
    Type.FLOAT32: (*ODD_DOUBLES, 0.0, -0.0, 0.5, -1.5, 2.0**31, 2.0**63, -(2.0**63), 2.0**24),
    Type.INT64: _INTEGERS,
    Type.BOOLEAN: (True, False),
}


@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize("source", _VALUES)
def test_edge_values_are_cast_like_in_the_row_form(source: Type, target: str) -> None:
    schema = Schema.struct([("a", Schema(source))])
    config = chain_config({"type": "Cast$Value", "spec": f"a:{target}"})
    handled = set()
    for value in _VALUES[source]:
        records = [SinkRecord("orders", 0, 0, Struct(schema, {"a": value}), schema)]
        how, difference = differences(config, Case([*records], batch_of(records)))
        assert difference is None, f"{value!r}: {difference}"
        handled.add(how)
    assert "rows" not in handled
    assert "columns" in handled

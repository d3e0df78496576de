"""Random Connect schemas with matching values."""

from __future__ import annotations

import datetime as dt
import itertools
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from sluiceway.data import Schema, Struct, Type
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP, date_schema, decimal_schema, time_schema, timestamp_schema

_MILLIS = st.integers(-62_000_000_000_000, 253_000_000_000_000)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)

PRIMITIVES: dict[Type, st.SearchStrategy[Any]] = {
    Type.INT8: st.integers(-(2**7), 2**7 - 1),
    Type.INT16: st.integers(-(2**15), 2**15 - 1),
    Type.INT32: st.integers(-(2**31), 2**31 - 1),
    Type.INT64: st.integers(-(2**63), 2**63 - 1),
    Type.FLOAT32: st.floats(width=32, allow_nan=False, allow_infinity=False),
    Type.FLOAT64: st.floats(allow_nan=False, allow_infinity=False),
    Type.BOOLEAN: st.booleans(),
    Type.STRING: _TEXT,
    Type.BYTES: st.binary(max_size=6),
}
LOGICAL = {
    DATE: st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31)),
    TIME: st.integers(0, 86_399_999).map(lambda millis: (_EPOCH + dt.timedelta(milliseconds=millis)).time()),
    TIMESTAMP: _MILLIS.map(lambda millis: _EPOCH + dt.timedelta(milliseconds=millis)),
}


@dataclass
class Shape:
    """The options for random schemas."""

    nested_arrays: bool = True
    optional_containers: bool = True
    null_items: bool = True
    defaults: bool = True
    names: itertools.count[int] = field(default_factory=itertools.count)
    structs: list[Schema] = field(default_factory=list)
    """Those so far, which may be used again."""

    def schema(self, draw: Any, depth: int = 2, *, item: bool = False) -> Schema:
        kinds = ["primitive", "logical"] + ([] if depth == 0 else ["struct", "map"])
        if depth and (self.nested_arrays or not item):
            kinds.append("array")
        if item and not self.nested_arrays:
            kinds = [kind for kind in kinds if kind != "map"]
        kind = draw(st.sampled_from(kinds))
        optional = draw(st.booleans()) and (self.optional_containers or kind not in ("array", "map"))
        if item and not self.null_items:
            optional = False
        if kind == "primitive":
            type_ = draw(st.sampled_from(list(PRIMITIVES)))
            default = draw(PRIMITIVES[type_]) if self.defaults and not item and draw(st.integers(0, 4)) == 0 else None
            return Schema(type_, optional=optional, default=default, doc=draw(st.sampled_from([None, "what it is"])))
        if kind == "logical":
            made = draw(st.sampled_from([date_schema, time_schema, timestamp_schema, None]))
            return made(optional=optional) if made else decimal_schema(draw(st.integers(0, 5)), optional=optional)
        if kind == "array":
            return Schema.array(self.schema(draw, depth - 1, item=True), optional=optional)
        if kind == "map":
            keys = Schema(draw(st.sampled_from([Type.STRING, Type.INT32, Type.BOOLEAN])))
            return Schema.map(keys, self.schema(draw, depth - 1, item=True), optional=optional, name=f"map_n{next(self.names)}")
        return self.struct(draw, depth - 1, optional=optional)

    def struct(self, draw: Any, depth: int = 2, *, optional: bool = False) -> Schema:
        if self.structs and draw(st.integers(0, 2)) == 0:
            return draw(st.sampled_from(self.structs)).replace(optional=optional)
        fields = {f"f{index}": self.schema(draw, depth) for index in range(draw(st.integers(0, 4)))}
        namespace = draw(st.sampled_from(["com.example.", "com.other."]))
        made = Schema.struct(fields, name=f"{namespace}Type{next(self.names)}", optional=optional)
        self.structs.append(made)
        return made

    def value(self, draw: Any, schema: Schema) -> Any:
        if schema.optional and schema.default is None and draw(st.integers(0, 3)) == 0:
            return None
        if schema.name == DECIMAL:
            scale = int(schema.parameters["scale"])
            return Decimal(draw(st.integers(-(10**20), 10**20))).scaleb(-scale).quantize(Decimal(1).scaleb(-scale))
        if schema.name in LOGICAL:
            return draw(LOGICAL[schema.name])
        if schema.type in PRIMITIVES:
            return draw(PRIMITIVES[schema.type])
        if schema.type is Type.ARRAY:
            assert schema.value_schema is not None
            return [self.value(draw, schema.value_schema) for _ in range(draw(st.integers(0, 3)))]
        if schema.type is Type.MAP:
            assert schema.key_schema is not None
            assert schema.value_schema is not None
            keys = draw(st.lists(PRIMITIVES[schema.key_schema.type], max_size=3, unique=True))
            return {key: self.value(draw, schema.value_schema) for key in keys}
        return Struct(schema, {part.name: self.value(draw, part.schema) for part in schema.fields})


@st.composite
def structs(draw: st.DrawFn, /, **shape: Any) -> Struct:
    """Return a struct with a random schema."""
    made = Shape(**shape)
    schema = made.struct(draw)
    return made.value(draw, schema)


@st.composite
def pairs(draw: st.DrawFn, /, **shape: Any) -> tuple[Schema, Any]:
    """Return a schema of any type and a matching value other than null."""
    made = Shape(**shape)
    schema = made.schema(draw)
    value = made.value(draw, schema)
    while value is None:
        value = made.value(draw, schema)
    return schema, value

"""Converts Connect's data to JSON nodes with a function generated for each schema.

Values that are exactly of their types are converted inline. All others go through the functions of ``writer``, so the result
is the same.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from sluiceway.converters.json.base64_text import to_base64
from sluiceway.converters.json.writer import JsonWriter
from sluiceway.data.generated import DEEPEST_EXPRESSION, Code
from sluiceway.data.instant import EPOCH, EPOCH_DAY
from sluiceway.data.logical import (
    DATE,
    DECIMAL,
    FROM_LOGICAL,
    TIME,
    decimal_of,
    decimal_scale,
    unscaled,
    unscaled_bytes,
)
from sluiceway.data.schema import INTEGER_BITS, Schema, Type
from sluiceway.data.struct import Struct
from sluiceway.errors import DataError


def fast_writer(writer: JsonWriter, schema: Schema) -> Callable[[Any], Any]:
    """Return the function from values of a schema to printable nodes. The function raises DataError like ``writer``."""
    emit = _Emitter(writer)
    return emit.code.callable(emit.code.function("value", [f"return {emit.node(schema, 'value', 0)}"]))


class _Emitter:
    """Generates expressions that convert values; ``depth`` makes the variable names of nested loops unique."""

    def __init__(self, writer: JsonWriter) -> None:
        self._writer = writer
        self.code = Code(
            Struct=Struct,
            to_base64=to_base64,
            Decimal=Decimal,
            unscaled=unscaled,
            unscaled_bytes=unscaled_bytes,
            date=dt.date,
            time=dt.time,
            datetime=dt.datetime,
            utc=dt.timezone.utc,
            epoch=EPOCH,
        )

    def node(self, schema: Schema | None, value: str, depth: int) -> str:
        """Return the expression that converts the value in a variable."""
        if depth == DEEPEST_EXPRESSION:
            return f"{self.code.function('value', ['return ' + self.node(schema, 'value', 0)])}({value})"
        plain = f"{self.code.bind(self._writer.writer(schema))}({value})"
        inline = self._inline(schema, value, depth) if schema is not None else None
        if schema is None or inline is None:
            return plain
        defaulted = schema.default is not None and self._writer.use_defaults
        null = f"None if {value} is None else " if schema.optional and not defaulted else ""
        is_typed, node = inline
        return f"({node} if {is_typed} else {null}{plain})"

    def _inline(self, schema: Schema, value: str, depth: int) -> tuple[str, str] | None:
        """Return the condition that a value is exactly of its type, and the expression for its node; None if there is none."""
        if schema.name == DECIMAL:
            return self._decimal(schema, value)
        if schema.name in FROM_LOGICAL:
            return _date_or_time(schema.name, value)
        if schema.type in INTEGER_BITS:
            half = 1 << (INTEGER_BITS[schema.type] - 1)
            return f"type({value}) is int and {-half} <= {value} <= {half - 1}", value
        if schema.type is Type.FLOAT64:  # in this range Java and orjson print the same digits
            return f"type({value}) is float and 0.001 <= {value} < 10000000.0", value
        if schema.type in (Type.STRING, Type.BOOLEAN):
            return f"type({value}) is {'str' if schema.type is Type.STRING else 'bool'}", value
        if schema.type is Type.BYTES:
            return f"type({value}) is bytes", f"to_base64({value})"
        if schema.type is Type.ARRAY:
            item = f"item{depth}"
            return f"type({value}) is list", f"[{self.node(schema.value_schema, item, depth + 1)} for {item} in {value}]"
        if schema.type is Type.MAP:
            return self._map(schema, value, depth)
        return self._struct(schema, value) if schema.type is Type.STRUCT else None

    def _decimal(self, schema: Schema, value: str) -> tuple[str, str] | None:
        if self._writer.numeric_decimals:
            return None
        try:
            scale = decimal_scale(schema)
            same_scale = self.code.bind(decimal_of(1, scale).same_quantum)
        except (DataError, ArithmeticError):  # invalid scale
            return None
        return f"type({value}) is Decimal and {same_scale}({value})", f"to_base64(unscaled_bytes(unscaled({value}, {scale})))"

    def _map(self, schema: Schema, value: str, depth: int) -> tuple[str, str] | None:
        if schema.key_schema is None or schema.key_schema.type is not Type.STRING or schema.key_schema.optional:
            return None
        key, item = f"key{depth}", f"item{depth}"
        name, node = self.node(schema.key_schema, key, depth + 1), self.node(schema.value_schema, item, depth + 1)
        return f"type({value}) is dict", f"{{{name}: {node} for {key}, {item} in {value}.items()}}"

    def _struct(self, schema: Schema, value: str) -> tuple[str, str]:
        own = self.code.bind(schema)
        nodes = [f"{field.name!r}: {self.node(field.schema, f'value{field.index}', 0)}" for field in schema.fields]
        write = self.code.function(
            "value",
            [
                f"[{', '.join(f'value{field.index}' for field in schema.fields)}] = value.values_",
                f"return {{{', '.join(nodes)}}}",
            ],
        )
        return f"type({value}) is Struct and ({value}.schema is {own} or {value}.schema == {own})", f"{write}({value})"


def _date_or_time(name: str | None, value: str) -> tuple[str, str]:
    if name == DATE:
        return f"type({value}) is date", f"{value}.toordinal() - {EPOCH_DAY}"
    if name == TIME:
        seconds = f"({value}.hour * 60 + {value}.minute) * 60 + {value}.second"
        return f"type({value}) is time", f"({seconds}) * 1000 + {value}.microsecond // 1000"
    since = f"((since := {value} - epoch).days * 86400 + since.seconds) * 1000 + since.microseconds // 1000"
    return f"type({value}) is datetime and {value}.tzinfo is utc", since

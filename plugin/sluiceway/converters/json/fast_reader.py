"""Converts JSON to Connect's data with orjson and a function generated for each schema.

It returns the same values as ``reader``. If a node is not exactly of its type, or orjson may have lost digits, it raises
Unusual, and the caller must use ``reader``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

import orjson

from sluiceway.converters.json.base64_text import from_base64
from sluiceway.data.generated import DEEPEST_EXPRESSION, Code
from sluiceway.data.logical import DECIMAL, TIMESTAMP, TO_LOGICAL, decimal_from_bytes
from sluiceway.data.schema import INTEGER_BITS, Schema, Type
from sluiceway.data.struct import Struct
from sluiceway.errors import DataError
from sluiceway.java.numbers import to_float32

_DOUBLE_DIGITS = 53


class Unusual(Exception):  # noqa: N818 (a signal, which callers always catch)
    """The payload must be read with ``reader``."""


def fast_reader(schema: Schema, *, use_defaults: bool = True) -> Callable[[bytes], Any]:
    """Return the function from a payload's bytes to a value of a schema.

    The function raises Unusual, ValueError for bytes that are not exactly one JSON value, and DataError like ``reader``.
    """
    emit = _Emitter(use_defaults)
    return emit.code.callable(emit.code.function("data", ["node = loads(data)", f"return {emit.value(schema, 'node', 0)}"]))


def node_reader(schema: Schema, *, use_defaults: bool = True) -> Callable[[Any], Any]:
    """Return the function from orjson's nodes to values of a schema. The function raises Unusual and DataError."""
    emit = _Emitter(use_defaults)
    return emit.code.callable(emit.code.function("node", [f"return {emit.value(schema, 'node', 0)}"]))


class _Emitter:
    """Generates expressions that convert nodes; ``depth`` makes the variable names of nested loops unique."""

    def __init__(self, use_defaults: bool) -> None:
        self._use_defaults = use_defaults
        self.code = Code(
            loads=orjson.loads,
            unusual=_unusual,
            pair=_pair,
            from_bytes=_from_bytes,
            to_float32=to_float32,
            Struct=Struct,
            new=Struct.__new__,
        )

    def value(self, schema: Schema | None, node: str, depth: int) -> str:
        """Return the expression that converts the node in a variable."""
        if schema is None:
            return "unusual()"
        if depth == DEEPEST_EXPRESSION:
            return f"{self.code.function('node', ['return ' + self.value(schema, 'node', 0)])}({node})"
        default = schema.default if self._use_defaults else None
        if default is not None:
            null = f"{self.code.bind(default)} if {node} is None else "
        else:
            null = f"None if {node} is None else " if schema.optional else ""
        is_typed, value = self._typed(schema, node, depth)
        return f"({value} if {is_typed} else {null}unusual())"

    def _typed(self, schema: Schema, node: str, depth: int) -> tuple[str, str]:
        """Return the condition that a node is exactly of its type, and the expression for its value then."""
        if schema.name in TO_LOGICAL:
            return self._logical(schema, node)
        if schema.type in INTEGER_BITS:
            return _integer(node, INTEGER_BITS[schema.type]), node
        if schema.type is Type.FLOAT64:  # adding zero converts integers to floats and -0.0 to 0.0
            return f"type({node}) is float or type({node}) is int", f"{node} + 0.0"
        if schema.type is Type.FLOAT32:
            return f"type({node}) is float or {_integer(node, _DOUBLE_DIGITS)}", f"to_float32({node}) + 0.0"
        if schema.type is Type.BYTES:
            return f"type({node}) is str", f"from_bytes({node})"
        if schema.type in (Type.STRING, Type.BOOLEAN):
            return f"type({node}) is {'str' if schema.type is Type.STRING else 'bool'}", node
        return {Type.ARRAY: self._array, Type.MAP: self._map, Type.STRUCT: self._struct}[schema.type](schema, node, depth)

    def _logical(self, schema: Schema, node: str) -> tuple[str, str]:
        if schema.name == DECIMAL:
            return f"type({node}) is str or type({node}) is int", f"{self.code.bind(_decimal_reader(schema))}({node})"
        to_logical = self.code.bind(functools.partial(TO_LOGICAL[schema.name or ""], schema))
        return _integer(node, 64 if schema.name == TIMESTAMP else 32), f"{to_logical}({node})"

    def _array(self, schema: Schema, node: str, depth: int) -> tuple[str, str]:
        item = f"item{depth}"
        return f"type({node}) is list", f"[{self.value(schema.value_schema, item, depth + 1)} for {item} in {node}]"

    def _map(self, schema: Schema, node: str, depth: int) -> tuple[str, str]:
        key, item = f"key{depth}", f"item{depth}"
        value = self.value(schema.value_schema, item, depth + 1)
        if schema.key_schema is not None and schema.key_schema.type is Type.STRING:
            return f"type({node}) is dict", f"{{{key}: {value} for {key}, {item} in {node}.items()}}"
        if schema.key_schema is None or schema.key_schema.type in (Type.ARRAY, Type.MAP):
            return "False", "None"
        name = self.value(schema.key_schema, key, depth + 1)
        return f"type({node}) is list", f"{{{name}: {value} for {key}, {item} in map(pair, {node})}}"

    def _struct(self, schema: Schema, node: str, _depth: int) -> tuple[str, str]:
        values = [self.value(field.schema, f"value{field.index}", 0) for field in schema.fields]
        read = self.code.function(
            "node",
            [
                "get = node.get",
                *(f"value{field.index} = get({field.name!r})" for field in schema.fields),
                "struct = new(Struct)",  # Struct.of inlined
                f"struct.schema = {self.code.bind(schema)}",
                f"struct.values_ = [{', '.join(values)}]",
                "return struct",
            ],
        )
        return f"type({node}) is dict", f"{read}({node})"


def _integer(node: str, bits: int) -> str:
    half = 1 << (bits - 1)
    return f"type({node}) is int and {-half} <= {node} <= {half - 1}"


def _unusual() -> NoReturn:
    raise Unusual


def _pair(entry: Any) -> Any:
    return entry if type(entry) is list and len(entry) == 2 else _unusual()


def _from_bytes(text: str) -> bytes:
    try:
        return from_base64(text)
    except ValueError:
        raise Unusual from None


def _decimal_reader(schema: Schema) -> Callable[[str | int], Decimal]:
    def read(node: str | int) -> Decimal:
        if type(node) is int:
            return Decimal(node)
        try:
            return decimal_from_bytes(schema, from_base64(node)) if node else _unusual()  # type: ignore[arg-type]
        except (ValueError, DataError):
            raise Unusual from None

    return read

"""Defines Struct, a mapping with a schema (Connect's ``Struct``), and validates values against schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from sluiceway.data.class_names import java_class
from sluiceway.data.instant import MOMENT_TYPES
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from sluiceway.data.numbers import BigInteger
from sluiceway.data.schema import Field, Schema, Type
from sluiceway.data.text import java_text
from sluiceway.errors import DataError


class Struct(Mapping[str, Any]):
    """A mapping from the fields of a struct schema to values; a missing value reads as the field's default or None.

    Setting a field validates the value; ``validate`` checks that required fields are set.
    """

    __slots__ = ("schema", "values_")

    def __init__(self, schema: Schema, values: Mapping[str, Any] | None = None) -> None:
        if schema.type is not Type.STRUCT:
            raise DataError(f"Not a struct schema: {schema}")
        self.schema = schema
        self.values_: list[Any] = [None] * len(schema.fields)
        if values:
            for name, value in values.items():
                self[name] = value

    @classmethod
    def of(cls, schema: Schema, values: list[Any]) -> Struct:
        """Return a struct that keeps this list of values, in the order of the fields, without validating them."""
        struct = cls.__new__(cls)
        struct.schema = schema
        struct.values_ = values
        return struct

    def __setitem__(self, name: str, value: Any) -> None:
        """Set a field. Raises DataError for an unknown field or an invalid value."""
        field = self._field(name)
        if type(value) is not field.schema.exact_type:
            validate_value(field.schema, value, name)
        self.values_[field.index] = value

    def put(self, name: str, value: Any) -> Struct:
        """Set a field and return the struct, for chaining. Raises DataError for an unknown field or an invalid value."""
        self[name] = value
        return self

    def __getitem__(self, name: str) -> Any:
        field = self._field(name)
        value = self.values_[field.index]
        return field.schema.default if value is None else value

    def get_without_default(self, name: str) -> Any:
        """Return the value that was set, or None; ignores the default."""
        return self.values_[self._field(name).index]

    def validate(self) -> None:
        """Raise DataError if a required field has neither a value nor a default, or if a value is invalid."""
        for field, value in zip(self.schema.fields, self.values_, strict=True):
            if value is not None or (not field.schema.optional and field.schema.default is None):
                validate_value(field.schema, value, field.name)

    def _field(self, name: str) -> Field:
        field = self.schema.field(name)
        if field is None:
            raise DataError(f"{name} is not a valid field name")
        return field

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in self.schema.fields)

    def __len__(self) -> int:
        return len(self.values_)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.schema.field(name) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.schema == other.schema and self.values_ == other.values_

    def __hash__(self) -> int:
        return hash((self.schema, len(self.values_)))

    def __repr__(self) -> str:
        """Return the text in Connect's form, without null fields: ``Struct{a=1,b=x}``."""
        pairs = zip(self.schema.fields, self.values_, strict=True)
        return (
            "Struct{"
            + ",".join(f"{field.name}={java_text(value, field.schema)}" for field, value in pairs if value is not None)
            + "}"
        )


def validate_value(schema: Schema, value: Any, field_name: str | None = None) -> None:
    """Raise DataError unless a value is valid for its schema (``ConnectSchema.validateValue``).

    Java's integer classes have a width; here any int in the range of the type is valid.
    """
    _validate(schema, value, "value" if field_name is None else f'field: "{field_name}"')


def _validate(schema: Schema, value: Any, location: str) -> None:
    if value is None:
        if not schema.optional:
            raise DataError(f"Invalid value: null used for required {location}, schema type: {schema.type.name}")
    elif not (_LOGICAL.get(schema.name or "") or _FITS[schema.type])(value):
        name = "" if schema.name is None else f' "{schema.name}"'
        raise DataError(
            f"Invalid Java object for schema{name} with type {schema.type.name}: class {java_class(value)} for {location}"
        )
    elif schema.type in _NESTED:
        _NESTED[schema.type](schema, value, location)


def _validate_struct(schema: Schema, value: Struct, location: str) -> None:
    if value.schema != schema:
        raise DataError("Struct schemas do not match.")
    value.validate()


def _validate_array(schema: Schema, value: Sequence[Any], location: str) -> None:
    items = schema.value_schema
    assert items is not None  # noqa: S101 (an array schema has one)
    for item in value:
        if type(item) is not items.exact_type:
            _validate(items, item, f"element of array {location}")


def _validate_map(schema: Schema, value: Mapping[Any, Any], location: str) -> None:
    assert schema.key_schema is not None  # noqa: S101 (a map schema has both)
    assert schema.value_schema is not None  # noqa: S101
    for key, item in value.items():
        _validate(schema.key_schema, key, f"key of map {location}")
        _validate(schema.value_schema, item, f"value of map {location}")


_NESTED: dict[Type, Callable[[Schema, Any, str], None]] = {
    Type.STRUCT: _validate_struct,
    Type.ARRAY: _validate_array,
    Type.MAP: _validate_map,
}


def _integer(bits: int) -> Callable[[Any], bool]:
    lowest, highest = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return lambda value: isinstance(value, int) and not isinstance(value, (bool, BigInteger)) and lowest <= value <= highest


def _instance(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, kinds)


_FITS: dict[Type, Callable[[Any], bool]] = {
    Type.INT8: _integer(8),
    Type.INT16: _integer(16),
    Type.INT32: _integer(32),
    Type.INT64: _integer(64),
    Type.FLOAT32: _instance(float),
    Type.FLOAT64: _instance(float),
    Type.BOOLEAN: _instance(bool),
    Type.STRING: _instance(str),
    Type.BYTES: _instance(bytes, bytearray, memoryview),
    Type.ARRAY: _instance(list, tuple),
    Type.MAP: lambda value: isinstance(value, Mapping) and not isinstance(value, Struct),
    Type.STRUCT: _instance(Struct),
}

_LOGICAL = {DECIMAL: _instance(Decimal), **dict.fromkeys((DATE, TIME, TIMESTAMP), _instance(*MOMENT_TYPES))}

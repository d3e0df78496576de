"""Defines schemas and their fields (Connect's ``Schema``, ``ConnectSchema`` and ``Field``)."""

from __future__ import annotations

import builtins
import enum
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from sluiceway.errors import DataError, SchemaBuilderError


class Type(enum.Enum):
    """The types of schemas; the enum's values are the type names in JsonConverter's JSON schemas."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"

    @property
    def primitive(self) -> bool:
        return self not in (Type.ARRAY, Type.MAP, Type.STRUCT)


INTEGER_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}

_EXACT_TYPES: dict[Type, type] = {Type.STRING: str, Type.BOOLEAN: bool, Type.FLOAT64: float, Type.BYTES: bytes}


class Parameters(dict[str, str]):
    """A schema's parameters, an immutable dict."""

    __slots__ = ()

    def _refuse(self, *_args: object, **_kwargs: object) -> NoReturn:
        raise TypeError("a Schema's parameters are immutable; build another schema")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return Parameters, (dict(self),)


_NO_PARAMETERS = Parameters()


class Field:
    """One field of a struct schema."""

    __slots__ = ("index", "name", "schema")

    def __init__(self, name: str, index: int, schema: Schema) -> None:
        self.name = name
        self.index = index
        self.schema = schema

    def __repr__(self) -> str:
        return f"Field{{name={self.name}, index={self.index}, schema={self.schema}}}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and (self.name, self.index, self.schema) == (other.name, other.index, other.schema)

    def __hash__(self) -> int:
        return hash((self.name, self.index))


class Schema:
    """The type of values with its attributes. Create one with the class methods, ``SchemaBuilder`` or this module's constants.

    Immutable and hashable; the hash is computed once, so schemas can be cache keys.
    """

    __slots__ = (
        "_fields_by_name",
        "_hash",
        "_identity",
        "default",
        "doc",
        "exact_type",
        "fields",
        "key_schema",
        "name",
        "optional",
        "parameters",
        "type",
        "value_schema",
        "version",
    )

    type: Type
    optional: bool
    default: Any
    name: str | None
    version: int | None
    doc: str | None
    parameters: Mapping[str, str]
    fields: tuple[Field, ...]
    key_schema: Schema | None
    value_schema: Schema | None
    _fields_by_name: Mapping[str, Field]
    _hash: int | None
    _identity: tuple[object, ...] | None
    exact_type: builtins.type | None
    """The Python type whose values are all valid, so that they need no validation; None if there is none."""

    def __init__(
        self,
        type_: Type,
        *,
        optional: bool = False,
        default: Any = None,
        name: str | None = None,
        version: int | None = None,
        doc: str | None = None,
        parameters: Mapping[str, str] | None = None,
        fields: Iterable[tuple[str, Schema]] = (),
        key_schema: Schema | None = None,
        value_schema: Schema | None = None,
    ) -> None:
        set_ = object.__setattr__
        set_(self, "type", type_)
        set_(self, "optional", optional)
        set_(self, "default", default)
        set_(self, "name", name)
        set_(self, "version", version)
        set_(self, "doc", doc)
        set_(self, "parameters", Parameters(parameters) if parameters else _NO_PARAMETERS)
        set_(self, "fields", tuple(Field(field, index, schema) for index, (field, schema) in enumerate(fields)))
        set_(self, "key_schema", key_schema)
        set_(self, "value_schema", value_schema)
        set_(self, "_fields_by_name", {field.name: field for field in self.fields})
        set_(self, "_hash", None)
        set_(self, "_identity", None)
        set_(self, "exact_type", _EXACT_TYPES.get(type_) if name is None else None)
        if len(self._fields_by_name) != len(self.fields):
            names = [field.name for field in self.fields]
            twice = next(field for field in names if names.count(field) > 1)
            raise SchemaBuilderError(f"Cannot create field because of field name duplication {twice}")

    def __setattr__(self, key: str, value: object) -> None:
        raise AttributeError("a Schema is immutable; create another one with replace()")

    @classmethod
    def struct(cls, fields: Mapping[str, Schema] | Iterable[tuple[str, Schema]], **attributes: Any) -> Schema:
        """Return a struct schema with these fields in this order; ``attributes`` are the constructor's."""
        pairs = fields.items() if isinstance(fields, Mapping) else fields
        return cls(Type.STRUCT, fields=pairs, **attributes)

    @classmethod
    def array(cls, items: Schema, **attributes: Any) -> Schema:
        """Return the schema of a list of ``items``."""
        return cls(Type.ARRAY, value_schema=items, **attributes)

    @classmethod
    def map(cls, keys: Schema, values: Schema, **attributes: Any) -> Schema:
        """Return the schema of a dict from ``keys`` to ``values``."""
        return cls(Type.MAP, key_schema=keys, value_schema=values, **attributes)

    def field(self, name: str) -> Field | None:
        """Return the field of that name, or None. Raises DataError for a schema that is not a struct."""
        if self.type is not Type.STRUCT:
            raise DataError("Cannot look up fields on non-struct type")
        return self._fields_by_name.get(name)

    def replace(self, **attributes: Any) -> Schema:
        """Return a copy of this schema with some of the constructor's attributes changed."""
        kept = {
            "type_": self.type,
            "optional": self.optional,
            "default": self.default,
            "name": self.name,
            "version": self.version,
            "doc": self.doc,
            "parameters": self.parameters,
            "fields": [(field.name, field.schema) for field in self.fields],
            "key_schema": self.key_schema,
            "value_schema": self.value_schema,
        }
        return Schema(**{**kept, **attributes})

    def _key(self) -> tuple[object, ...]:
        """Return the attributes that define equality; the default as text, because 1, 1.0 and True are equal in Python."""
        if self._identity is None:
            key = (
                self.type,
                self.optional,
                self.name,
                self.version,
                self.doc,
                self.parameters,
                self.fields,
                self.key_schema,
                self.value_schema,
                repr(self.default),
            )
            object.__setattr__(self, "_identity", key)
            return key
        return self._identity

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Schema) and hash(self) == hash(other) and self._key() == other._key())

    def __hash__(self) -> int:
        if self._hash is None:
            inner = tuple((field.name, field.schema) for field in self.fields)
            parts = (self.type, self.optional, self.name, self.version, inner, self.key_schema, self.value_schema)
            found = hash(parts)
            object.__setattr__(self, "_hash", found)
            return found
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (
            self.type,
            self.optional,
            self.default,
            self.name,
            self.version,
            self.doc,
            dict(self.parameters),
            [(field.name, field.schema) for field in self.fields],
            self.key_schema,
            self.value_schema,
        )

    def __repr__(self) -> str:
        """Return the text in Connect's form: ``Schema{STRING}``, ``Schema{com.example.Name:STRUCT}``."""
        return f"Schema{{{self.name}:{self.type.name}}}" if self.name is not None else f"Schema{{{self.type.name}}}"


def _rebuild(type_, optional, default, name, version, doc, parameters, fields, key_schema, value_schema) -> Schema:  # type: ignore[no-untyped-def]
    return Schema(
        type_,
        optional=optional,
        default=default,
        name=name,
        version=version,
        doc=doc,
        parameters=parameters,
        fields=fields,
        key_schema=key_schema,
        value_schema=value_schema,
    )


INT8_SCHEMA = Schema(Type.INT8)
INT16_SCHEMA = Schema(Type.INT16)
INT32_SCHEMA = Schema(Type.INT32)
INT64_SCHEMA = Schema(Type.INT64)
FLOAT32_SCHEMA = Schema(Type.FLOAT32)
FLOAT64_SCHEMA = Schema(Type.FLOAT64)
BOOLEAN_SCHEMA = Schema(Type.BOOLEAN)
STRING_SCHEMA = Schema(Type.STRING)
BYTES_SCHEMA = Schema(Type.BYTES)
OPTIONAL_INT8_SCHEMA = Schema(Type.INT8, optional=True)
OPTIONAL_INT16_SCHEMA = Schema(Type.INT16, optional=True)
OPTIONAL_INT32_SCHEMA = Schema(Type.INT32, optional=True)
OPTIONAL_INT64_SCHEMA = Schema(Type.INT64, optional=True)
OPTIONAL_FLOAT32_SCHEMA = Schema(Type.FLOAT32, optional=True)
OPTIONAL_FLOAT64_SCHEMA = Schema(Type.FLOAT64, optional=True)
OPTIONAL_BOOLEAN_SCHEMA = Schema(Type.BOOLEAN, optional=True)
OPTIONAL_STRING_SCHEMA = Schema(Type.STRING, optional=True)
OPTIONAL_BYTES_SCHEMA = Schema(Type.BYTES, optional=True)

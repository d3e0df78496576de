"""Converts Connect schemas to Protobuf messages, like Confluent's ProtobufConverter.

A struct becomes a proto3 message; a nested struct becomes a nested message. int8 and int16 become int32 with a field option,
Decimal ``confluent.type.Decimal``, Date and Time ``google.type.Date`` and ``TimeOfDay``, Timestamp
``google.protobuf.Timestamp``. A map becomes a repeated entry message, and a struct named
``io.confluent.connect.protobuf.Union.*`` a oneof. Without ``wrapper.for.nullables`` and ``optional.for.nullables``, optional
primitives become plain fields, so null is read back as 0 or an empty string, like with Confluent's converter. Not supported are
lists of lists or maps, recursive messages, proto2 groups, defaults and documentation.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sluiceway.converters.registry.serdes import field_meta
from sluiceway.data import Schema, Type
from sluiceway.data.logical import DATE, DECIMAL, SCALE, TIME, TIMESTAMP
from sluiceway.data.schema_names import scrub, split_name
from sluiceway.errors import DataError

NAMESPACE = "io.confluent.connect.protobuf"
ENUM = f"{NAMESPACE}.Enum"
ENUM_PREFIX = f"{ENUM}."
UNION_PREFIX = f"{NAMESPACE}.Union."
TAG = f"{NAMESPACE}.Tag"
PRECISION = "connect.decimal.precision"
FILE = "default"
KEY, VALUE = "key", "value"

_SCALARS = {
    Type.INT8: "INT32",
    Type.INT16: "INT32",
    Type.INT32: "INT32",
    Type.INT64: "INT64",
    Type.FLOAT32: "FLOAT",
    Type.FLOAT64: "DOUBLE",
    Type.BOOLEAN: "BOOL",
    Type.STRING: "STRING",
    Type.BYTES: "BYTES",
}
WRAPPERS = {
    Type.INT8: "Int32Value",
    Type.INT16: "Int32Value",
    Type.INT32: "Int32Value",
    Type.INT64: "Int64Value",
    Type.FLOAT32: "FloatValue",
    Type.FLOAT64: "DoubleValue",
    Type.BOOLEAN: "BoolValue",
    Type.STRING: "StringValue",
    Type.BYTES: "BytesValue",
}
LOGICAL = {
    DECIMAL: ("confluent.type.Decimal", "confluent/type/decimal.proto"),
    DATE: ("google.type.Date", "google/type/date.proto"),
    TIME: ("google.type.TimeOfDay", "google/type/timeofday.proto"),
    TIMESTAMP: ("google.protobuf.Timestamp", "google/protobuf/timestamp.proto"),
}
_WRAPPERS_FILE = "google/protobuf/wrappers.proto"
_META_FILE = "confluent/meta.proto"
_NARROW = {Type.INT8: "int8", Type.INT16: "int16"}
_ENTRY = "Entry"


@dataclass(frozen=True, slots=True)
class ProtobufOptions:
    """The converter's options for mapping schemas."""

    full_names: bool = False
    scrub: bool = False
    wrappers: bool = False
    optionals: bool = False
    index_unions: bool = True
    wrap_primitives: bool = True
    keep_nulls: bool = False

    def plain(self, name: str) -> str:
        """Return the Protobuf name of a schema or field."""
        return scrub(name, underscore_may_start=False) if self.scrub else name


def known_files() -> dict[str, bytes]:
    """Return the serialized descriptors of the files that schemas may import without a schema reference, by name."""
    return dict(_known_files())


@functools.cache
def _known_files() -> Mapping[str, bytes]:
    import importlib

    from google.protobuf import descriptor_pb2

    modules = [
        f"google.protobuf.{name}_pb2"
        for name in (
            "any",
            "api",
            "descriptor",
            "duration",
            "empty",
            "field_mask",
            "source_context",
            "struct",
            "timestamp",
            "type",
            "wrappers",
        )
    ]
    modules += [
        f"google.type.{name}_pb2"
        for name in (
            "calendar_period",
            "color",
            "date",
            "datetime",
            "dayofweek",
            "expr",
            "fraction",
            "latlng",
            "money",
            "month",
            "postal_address",
            "quaternion",
            "timeofday",
        )
    ]
    descriptors = [importlib.import_module(module).DESCRIPTOR for module in modules]
    descriptors.append(field_meta()[1].DESCRIPTOR)
    files = {descriptor.name: descriptor.serialized_pb for descriptor in descriptors}
    decimal = descriptor_pb2.FileDescriptorProto(
        name=LOGICAL[DECIMAL][1],
        package="confluent.type",
        syntax="proto3",
        message_type=[
            descriptor_pb2.DescriptorProto(
                name="Decimal",
                field=[
                    _plain_field("value", 1, "BYTES"),
                    _plain_field("precision", 2, "UINT32"),
                    _plain_field("scale", 3, "INT32"),
                ],
            )
        ],
    )
    return files | {decimal.name: decimal.SerializeToString()}


def _plain_field(name: str, number: int, kind: str) -> Any:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    return Field(name=name, number=number, type=Field.Type.Value(f"TYPE_{kind}"), label=Field.LABEL_OPTIONAL)


def is_oneof(schema: Schema) -> bool:
    """Return True if a struct represents a oneof of its message."""
    return schema.type is Type.STRUCT and (schema.name or "").startswith(UNION_PREFIX)


def to_file(schema: Schema, options: ProtobufOptions) -> tuple[Any, str]:
    """Return the file descriptor (a ``FileDescriptorProto``) for a struct schema and the full name of its message."""
    if schema.type is not Type.STRUCT:
        raise DataError(f"Unsupported root schema of type {schema.type.name}. ProtobufConverter writes structs only.")
    return _FileBuilder(options).build(schema)


@dataclass(slots=True)
class _FileBuilder:
    """Builds the descriptor of one file."""

    options: ProtobufOptions
    imports: dict[str, None] = field(default_factory=dict)
    unnamed: int = 0

    def build(self, schema: Schema) -> tuple[Any, str]:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        namespace, name = split_name(self._name(schema))
        name = self.options.plain(name)
        path = f".{namespace}" if namespace else ""
        message = self._message(name, schema, path)
        file = FileDescriptorProto(name=FILE, syntax="proto3", message_type=[message])
        if namespace:
            file.package = namespace
        file.dependency.extend(self.imports)
        return file, f"{path}.{name}".lstrip(".")

    def _name(self, schema: Schema) -> str:
        if schema.name:
            return schema.name
        self.unnamed += 1
        return f"ConnectDefault{self.unnamed}"

    def _short(self, schema: Schema) -> str:
        return self.options.plain(split_name(self._name(schema))[1])

    def _message(self, name: str, schema: Schema, path: str) -> Any:
        from google.protobuf.descriptor_pb2 import DescriptorProto

        message = DescriptorProto(name=name)
        path = f"{path}.{name}"
        numbers = _FieldNumbers(schema)
        for part in schema.fields:
            if is_oneof(part.schema):
                if message.oneof_decl and any(one.name == self._oneof_name(part.schema) for one in message.oneof_decl):
                    raise DataError(f"Message {name} has two unions named {self._oneof_name(part.schema)}. Rename one of them.")
                message.oneof_decl.add(name=self._oneof_name(part.schema))
                for member in part.schema.fields:
                    added = self._field(message, path, self.options.plain(member.name), member.schema, numbers.of(member.schema))
                    added.oneof_index = len(message.oneof_decl) - 1
            else:
                self._field(message, path, self.options.plain(part.name), part.schema, numbers.of(part.schema))
        self._mark_optionals(message)
        return message

    def _oneof_name(self, schema: Schema) -> str:
        return self.options.plain(split_name(str(schema.name)[len(UNION_PREFIX) :])[1])

    @staticmethod
    def _mark_optionals(message: Any) -> None:
        """Add the synthetic oneof that proto3 requires for each optional field, after all other oneofs."""
        for part in message.field:
            if part.proto3_optional:
                part.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{part.name}")

    def _field(self, message: Any, path: str, name: str, schema: Schema, number: int) -> Any:
        from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

        part = message.field.add(name=name, number=number, label=Field.LABEL_OPTIONAL)
        if schema.type in (Type.ARRAY, Type.MAP):
            part.label = Field.LABEL_REPEATED
        if schema.type is Type.ARRAY:
            if schema.value_schema is None or schema.value_schema.type in (Type.ARRAY, Type.MAP):
                raise DataError(f"Field {name}: Array cannot be nested in Protobuf. Put the inner array into a struct.")
            schema = schema.value_schema
        if schema.name in LOGICAL:
            self._refer(part, *LOGICAL[schema.name])
        elif schema.type is Type.MAP:
            self._nest(message, path, part, *self._entry(schema, path))
        elif schema.type is Type.STRUCT:
            self._struct(message, path, part, schema)
        elif schema.type is Type.STRING and ENUM in schema.parameters:
            self._enum(message, path, part, schema)
        else:
            self._scalar(part, schema)
        self._meta(part, schema)
        return part

    def _scalar(self, part: Any, schema: Schema) -> None:
        from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

        if schema.optional and self.options.wrappers:
            self._refer(part, f"google.protobuf.{WRAPPERS[schema.type]}", _WRAPPERS_FILE)
            return
        part.type = Field.Type.Value(f"TYPE_{_SCALARS[schema.type]}")
        if schema.optional and self.options.optionals and part.label != Field.LABEL_REPEATED:
            part.proto3_optional = True

    def _refer(self, part: Any, type_name: str, file: str) -> None:
        part.type = part.TYPE_MESSAGE
        part.type_name = f".{type_name}"
        self.imports[file] = None

    def _struct(self, message: Any, path: str, part: Any, schema: Schema) -> None:
        name = self._short(schema)
        if name == part.name:  # a nested message and a field must not have the same name
            name += "Message"
        self._nest(message, path, part, name, self._message(name, schema, path))

    def _nest(self, message: Any, path: str, part: Any, name: str, nested: Any) -> None:
        known = [inner for inner in message.nested_type if inner.name == name]
        if known and known[0] != nested:
            raise DataError(f"A struct contains two different schemas named {name}. Give them different names.")
        if not known:
            message.nested_type.append(nested)
        part.type = part.TYPE_MESSAGE
        part.type_name = f"{path}.{name}"

    def _entry(self, schema: Schema, path: str) -> tuple[str, Any]:
        from google.protobuf.descriptor_pb2 import DescriptorProto

        if schema.key_schema is None or schema.value_schema is None:
            raise DataError("A map schema must have schemas for its keys and values.")
        name = entry_name(self._short(schema))
        entry = DescriptorProto(name=name)
        for number, (key, inner) in enumerate(((KEY, schema.key_schema), (VALUE, schema.value_schema)), start=1):
            self._field(entry, f"{path}.{name}", key, inner, number)
        self._mark_optionals(entry)
        return name, entry

    @staticmethod
    def _enum(message: Any, path: str, part: Any, schema: Schema) -> None:
        from google.protobuf.descriptor_pb2 import EnumDescriptorProto

        name = split_name(schema.parameters[ENUM])[1]
        enum = EnumDescriptorProto(name=name)
        values = [(key[len(ENUM_PREFIX) :], int(tag)) for key, tag in schema.parameters.items() if key.startswith(ENUM_PREFIX)]
        for symbol, number in sorted(values, key=lambda pair: pair[1] != 0):  # proto3 requires zero as the first value
            enum.value.add(name=symbol, number=number)
        known = [inner for inner in message.enum_type if inner.name == name]
        if known and known[0] != enum:
            raise DataError(f"A struct contains two different enums named {name}. Give them different names.")
        if not known:
            message.enum_type.append(enum)
        part.type = part.TYPE_ENUM
        part.type_name = f"{path}.{name}"

    def _meta(self, part: Any, schema: Schema) -> None:
        parameters = {}
        if schema.name == DECIMAL:
            names = {PRECISION: "precision", SCALE: "scale"}
            parameters = {names[key]: text for key, text in schema.parameters.items() if key in names}
        elif schema.type in _NARROW and schema.name is None:
            parameters = {"connect.type": _NARROW[schema.type]}
        if parameters:
            extension, _module = field_meta()
            part.options.Extensions[extension].params.update(parameters)
            self.imports[_META_FILE] = None


class _FieldNumbers:
    """Assigns field numbers: the number in a schema's parameter, or the next free number."""

    def __init__(self, schema: Schema) -> None:
        inner = [part.schema.fields if is_oneof(part.schema) else (part,) for part in schema.fields]
        self._taken = {int(part.schema.parameters[TAG]) for parts in inner for part in parts if TAG in part.schema.parameters}
        self._next = 1

    def of(self, schema: Schema) -> int:
        if TAG in schema.parameters:
            return int(schema.parameters[TAG])
        while self._next in self._taken:
            self._next += 1
        self._taken.add(self._next)
        return self._next


def entry_name(name: str) -> str:
    """Return the name of the entry message of a map: ``MyMapEntry`` for ``my_map``."""
    return ("".join(part.capitalize() for part in name.split("_")) if "_" in name else name) + _ENTRY


def map_name(entry: str) -> str:
    """Return the name of a map, given the name of its entry message: ``my_map`` for ``MyMapEntry``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", entry.removesuffix(_ENTRY)).lower()

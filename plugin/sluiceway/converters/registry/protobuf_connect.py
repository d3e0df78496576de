"""Converts Protobuf messages to Connect schemas, like Confluent's ProtobufConverter."""

from __future__ import annotations

from typing import Any, NamedTuple

from sluiceway.converters.registry.limits import Budget
from sluiceway.converters.registry.protobuf_schema import (
    ENUM,
    ENUM_PREFIX,
    KEY,
    LOGICAL,
    PRECISION,
    TAG,
    UNION_PREFIX,
    VALUE,
    ProtobufOptions,
    map_name,
)
from sluiceway.converters.registry.serdes import field_meta
from sluiceway.data import Schema, Type
from sluiceway.data.logical import DECIMAL, decimal_schema
from sluiceway.errors import DataError

_TYPES = {
    "INT32": Type.INT32,
    "SINT32": Type.INT32,
    "SFIXED32": Type.INT32,
    "UINT32": Type.INT64,
    "FIXED32": Type.INT64,
    "INT64": Type.INT64,
    "UINT64": Type.INT64,
    "SINT64": Type.INT64,
    "FIXED64": Type.INT64,
    "SFIXED64": Type.INT64,
    "FLOAT": Type.FLOAT32,
    "DOUBLE": Type.FLOAT64,
    "BOOL": Type.BOOLEAN,
    "STRING": Type.STRING,
    "BYTES": Type.BYTES,
}
_NARROW = {"int8": Type.INT8, "int16": Type.INT16}
WRAPPED = {
    "google.protobuf.DoubleValue": Type.FLOAT64,
    "google.protobuf.FloatValue": Type.FLOAT32,
    "google.protobuf.Int64Value": Type.INT64,
    "google.protobuf.UInt64Value": Type.INT64,
    "google.protobuf.Int32Value": Type.INT32,
    "google.protobuf.UInt32Value": Type.INT64,
    "google.protobuf.BoolValue": Type.BOOLEAN,
    "google.protobuf.StringValue": Type.STRING,
    "google.protobuf.BytesValue": Type.BYTES,
}
_LOGICAL_NAMES = {type_name: name for name, (type_name, _file) in LOGICAL.items()} | {"confluent.types.Decimal": DECIMAL}


def is_map(message: Any) -> bool:
    """Return True if a message is the entry of a Protobuf map, or has the same name and fields as one."""
    fields = [part.name for part in message.fields]
    return bool(message.GetOptions().map_entry) or (message.name.endswith("Entry") and fields == [KEY, VALUE])


def is_repeated(part: Any) -> bool:
    """Return True if a field is repeated. protobuf 7 replaced ``label`` by ``is_repeated``."""
    repeated = getattr(part, "is_repeated", None)
    return bool(repeated if repeated is not None else part.label == part.LABEL_REPEATED)


def real_oneof(part: Any) -> Any:
    """Return the oneof that contains a field; None also for the synthetic oneof of a proto3 ``optional``."""
    oneof = part.containing_oneof
    return None if oneof is None or _is_synthetic(oneof) else oneof


def is_proto3_optional(part: Any) -> bool:
    """Return True if a proto3 field is ``optional``."""
    return part.containing_oneof is not None and _is_synthetic(part.containing_oneof)


def _is_synthetic(oneof: Any) -> bool:
    return len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}"


def union_name(oneof: Any, options: ProtobufOptions) -> str:
    """Return the name of the struct field for a oneof."""
    return f"{oneof.name}_{oneof.index}" if options.index_unions else str(oneof.name)


class _Within(NamedTuple):
    """The messages around a field, and what is left of the whole schema's parts."""

    names: tuple[str, ...]
    budget: Budget


def to_connect(message: Any, options: ProtobufOptions, version: int | None = None) -> Schema:
    """Return the Connect schema of a message descriptor. Oneofs come first, then the other fields in their order."""
    if options.wrap_primitives and message.full_name in WRAPPED:
        return Schema(WRAPPED[message.full_name], version=version)
    return _message(message, options, _Within((), Budget()), version=version)


def _message(message: Any, options: ProtobufOptions, within: _Within, **attributes: Any) -> Schema:
    within.budget.spend()
    if message.full_name in within.names:
        raise DataError(f"The Protobuf message {message.full_name} contains itself; recursive schemas are not supported.")
    within = within._replace(names=(*within.names, message.full_name))
    fields: list[tuple[str, Schema]] = []
    for oneof in message.oneofs:
        if not _is_synthetic(oneof):
            parts = [(part.name, _field(part, options, within)) for part in oneof.fields]
            fields.append(
                (
                    union_name(oneof, options),
                    Schema(Type.STRUCT, name=UNION_PREFIX + oneof.name, optional=True, fields=parts),
                )
            )
    fields += [(part.name, _field(part, options, within)) for part in message.fields if real_oneof(part) is None]
    name = message.full_name if options.full_names else message.name
    return Schema(Type.STRUCT, name=name, fields=fields, **attributes)


def _field(part: Any, options: ProtobufOptions, within: _Within) -> Schema:
    within.budget.spend()
    tag = {TAG: str(part.number)}
    optional = _is_optional(part, options)
    if part.message_type is not None and is_map(part.message_type) and is_repeated(part):
        key, value = part.message_type.fields
        return Schema.map(
            _field(key, options, within),
            _field(value, options, within),
            name=map_name(part.message_type.name),
            optional=optional,
            parameters=tag,
        )
    if is_repeated(part):
        return Schema.array(_single(part, options, within, {}, optional=True), optional=True, parameters=tag)
    return _single(part, options, within, tag, optional=optional)


def _is_optional(part: Any, options: ProtobufOptions) -> bool:
    if part.message_type is not None or part.enum_type is not None:
        return True
    if options.optionals:
        return is_proto3_optional(part)
    return not options.wrappers


def _single(part: Any, options: ProtobufOptions, within: _Within, tag: dict[str, str], *, optional: bool) -> Schema:
    if part.enum_type is not None:
        enum = part.enum_type
        symbols = {ENUM_PREFIX + value.name: str(value.number) for value in enum.values}
        return Schema(Type.STRING, name=enum.name, optional=True, parameters={ENUM: enum.name} | symbols | tag)
    if part.message_type is None:
        return Schema(_scalar(part), optional=optional, parameters=tag)
    full_name = part.message_type.full_name
    if full_name in _LOGICAL_NAMES:
        return _logical(part, _LOGICAL_NAMES[full_name], tag)
    if options.wrappers and full_name in WRAPPED:
        return Schema(WRAPPED[full_name], optional=True, parameters=tag)
    return _message(part.message_type, options, within, optional=True, parameters=tag)


def _scalar(part: Any) -> Type:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

    kind = Field.Type.Name(part.type).removeprefix("TYPE_")
    if kind not in _TYPES:
        raise DataError(f"Unknown Connect schema type: {kind} of field {part.full_name}")
    type_ = _TYPES[kind]
    return _NARROW.get(_meta(part).get("connect.type", ""), type_) if type_ is Type.INT32 else type_


def _logical(part: Any, name: str, tag: dict[str, str]) -> Schema:
    if name != DECIMAL:
        type_ = Type.INT64 if name.endswith("Timestamp") else Type.INT32
        return Schema(type_, name=name, version=1, optional=True, parameters=tag)
    meta = _meta(part)
    base = decimal_schema(_number(meta.get("scale")) or 0)
    precision = _number(meta.get("precision"))
    extra = {} if precision is None else {PRECISION: str(precision)}
    return Schema(Type.BYTES, name=DECIMAL, version=1, optional=True, parameters={**base.parameters, **extra, **tag})


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def _meta(part: Any) -> dict[str, str]:
    """Return the parameters in the field option ``confluent.field_meta``, which descriptors of other pools do not parse."""
    from google.protobuf.descriptor_pb2 import FieldOptions

    options = FieldOptions.FromString(part.GetOptions().SerializeToString())
    return dict(options.Extensions[field_meta()[0]].params)

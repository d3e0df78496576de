"""ProtobufConverter: Connect's data as Protobuf, with schemas in a Schema Registry."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.converters.registry import serdes
from sluiceway.converters.registry.base import Deserialization, RegistryConverter, Serialization
from sluiceway.converters.registry.client import WriterSchema
from sluiceway.converters.registry.config import COMMON, KEEP_NULLS, flag
from sluiceway.converters.registry.protobuf_connect import to_connect
from sluiceway.converters.registry.protobuf_schema import FILE, WRAPPERS, ProtobufOptions, known_files, to_file
from sluiceway.converters.registry.protobuf_values import reader, writer
from sluiceway.data import Schema
from sluiceway.errors import DataError

_ENHANCED = "enhanced.protobuf.schema.support"
_SCRUB = "scrub.invalid.names"
_WRAPPERS = "wrapper.for.nullables"
_OPTIONALS = "optional.for.nullables"
_INDEX = "generate.index.for.unions"
_PRIMITIVES = "wrapper.for.raw.primitives"


class ProtobufConverter(RegistryConverter):
    """Converts to and from Protobuf in the Schema Registry's wire format. Runs on executors.

    Schemas are mapped like Confluent's ProtobufConverter does (see ``protobuf_schema`` and ``protobuf_connect``): structs
    become messages, and a primitive outside a struct becomes one of Google's wrapper messages.
    """

    java_class = "io.confluent.connect.protobuf.ProtobufConverter"
    schema_type = "PROTOBUF"
    schema_format = "serialized"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return COMMON.define(
            flag(_ENHANCED, False, "Whether schema names include the package."),
            flag(_SCRUB, False, "Whether characters that are invalid in Protobuf names are replaced."),
            flag(_WRAPPERS, False, "Whether optional primitives are wrapper messages."),
            flag(_OPTIONALS, False, "Whether optional primitives are optional fields."),
            flag(_INDEX, True, "Whether the name of the field for a oneof includes the index of the oneof."),
            flag(_PRIMITIVES, True, "Whether a primitive outside a struct is a wrapper message."),
        )

    def _set_options(self, values: Mapping[str, ConfigValue]) -> None:
        self._proto = ProtobufOptions(
            full_names=bool(values[_ENHANCED]),
            scrub=bool(values[_SCRUB]),
            wrappers=bool(values[_WRAPPERS]),
            optionals=bool(values[_OPTIONALS]),
            index_unions=bool(values[_INDEX]),
            wrap_primitives=bool(values[_PRIMITIVES]),
            keep_nulls=bool(values[KEEP_NULLS]),
        )

    def _serialization(self, schema: Schema | None) -> Serialization:
        from google.protobuf import wrappers_pb2
        from google.protobuf.message_factory import GetMessageClass

        if schema is None:
            raise DataError("ProtobufConverter cannot write schemaless values. Add a schema to the records.")
        message: Any
        if schema.type in WRAPPERS and schema.name is None and self._proto.wrap_primitives:
            message = getattr(wrappers_pb2, WRAPPERS[schema.type])
            native = _wrapper_maker(message)
        else:
            file, name = to_file(schema, self._proto)
            message = GetMessageClass(_pool({FILE: file.SerializeToString()}).FindMessageTypeByName(name))
            native = _message_maker(message, schema, self._proto)

        return Serialization(message.DESCRIPTOR.full_name, native, message.SerializeToString, serdes.protobuf(message))

    def _deserialization(self, topic: str, schema: WriterSchema) -> Deserialization:
        pool = _pool(
            {name: _file_descriptor(name, text) for name, text in schema.references} | {FILE: _file_descriptor(FILE, schema.text)}
        )
        file = pool.FindFileByName(FILE)
        readers: dict[bytes, tuple[Schema, Any, Any]] = {}

        def read(data: bytes) -> tuple[Schema, Any]:
            path, start = _indexes(data)
            known = readers.get(data[:start])
            if known is None:
                known = readers[data[:start]] = self._message(file, path, schema.version)
            connect, message, convert = known
            return connect, convert(message.FromString(data[start:]))

        return Deserialization(None, read, returns_pair=True)

    def _message(self, file: Any, path: list[int], version: int | None) -> tuple[Schema, Any, Any]:
        from google.protobuf.message_factory import GetMessageClass

        descriptor: Any = None
        inside = list(file.message_types_by_name.values())
        for index in path:
            if not 0 <= index < len(inside):
                raise DataError(f"The record has message index {path}, which its schema does not have.")
            descriptor = inside[index]
            inside = list(descriptor.nested_types)
        connect = to_connect(descriptor, self._proto, version)
        return connect, GetMessageClass(descriptor), reader(descriptor, connect, self._proto)

    def _record_name(self, schema_text: str) -> str | None:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        file = FileDescriptorProto.FromString(base64.standard_b64decode(schema_text))
        if not file.message_type:
            return None
        return f"{file.package}.{file.message_type[0].name}".lstrip(".")


def _wrapper_maker(message: Any) -> Any:
    return lambda value: message(value=value)


def _message_maker(message: Any, schema: Schema, options: ProtobufOptions) -> Any:
    write = writer(schema, options)
    return lambda value: message(**write(value))


def _file_descriptor(name: str, text: str) -> bytes:
    """Return the registry's base64 file descriptor as bytes, with its file name set to ``name``."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto.FromString(base64.standard_b64decode(text))
    file.name = name
    serialized: bytes = file.SerializeToString()
    return serialized


def _pool(files: Mapping[str, bytes]) -> Any:
    """Return a descriptor pool with these files and the well-known files that they import."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    pool: Any = DescriptorPool()
    available = known_files() | dict(files)
    added: set[str] = set()

    def add(name: str) -> None:
        if name in added:
            return
        added.add(name)
        if name not in available:
            raise DataError(f"The Protobuf schema imports {name}, which is not among its references in the registry.")
        for dependency in FileDescriptorProto.FromString(available[name]).dependency:
            add(dependency)
        pool.AddSerializedFile(available[name])

    for name in files:
        add(name)
    return pool


def _indexes(data: bytes) -> tuple[list[int], int]:
    """Return the message indexes of a record, from the outermost message inwards, and the position of the message."""
    count, start = _varint(data, 0)
    if count == 0:
        return [0], start
    if count < 0:
        raise DataError("The record has a negative number of message indexes.")
    path = []
    for _ in range(count):
        index, start = _varint(data, start)
        path.append(index)
    return path, start


def _varint(data: bytes, start: int) -> tuple[int, int]:
    number = shift = 0
    for position in range(start, len(data)):
        byte = data[position]
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position + 1
        shift += 7
    raise DataError("The record ends within its message indexes.")

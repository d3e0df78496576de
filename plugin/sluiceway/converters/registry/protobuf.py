"""ProtobufConverter: Connect's data as Protobuf, its schemas in a Schema Registry."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.converters.registry import serdes
from sluiceway.converters.registry.base import Reading, RegistryConverter, Writing
from sluiceway.converters.registry.client import WriterSchema
from sluiceway.converters.registry.config import COMMON, flag
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
    """Writes and reads Protobuf in the Schema Registry's wire format. Runs on executors.

    Schemas are mapped as by Confluent's converter of the same name (see ``protobuf_schema`` and ``protobuf_connect``): structs
    are messages, a primitive by itself is one of Google's wrapper messages.
    """

    java_class = "io.confluent.connect.protobuf.ProtobufConverter"
    schema_type = "PROTOBUF"
    schema_format = "serialized"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return COMMON.define(
            flag(_ENHANCED, False, "Whether schemas are named with their package."),
            flag(_SCRUB, False, "Whether characters in names that Protobuf refuses are replaced."),
            flag(_WRAPPERS, False, "Whether optional primitives are wrapper messages."),
            flag(_OPTIONALS, False, "Whether optional primitives are optional fields."),
            flag(_INDEX, True, "Whether the field for a oneof has the oneof's number in its name."),
            flag(_PRIMITIVES, True, "Whether a primitive that is no struct's field is a wrapper message."),
        )

    def _take_options(self, values: Mapping[str, ConfigValue]) -> None:
        self._proto = ProtobufOptions(
            full_names=bool(values[_ENHANCED]),
            scrub=bool(values[_SCRUB]),
            wrappers=bool(values[_WRAPPERS]),
            optionals=bool(values[_OPTIONALS]),
            index_unions=bool(values[_INDEX]),
            wrap_primitives=bool(values[_PRIMITIVES]),
        )

    def _writing(self, schema: Schema | None) -> Writing:
        from google.protobuf import wrappers_pb2
        from google.protobuf.message_factory import GetMessageClass

        if schema is None:
            raise DataError("ProtobufConverter cannot write values without a schema; give the records one.")
        message: Any
        if schema.type in WRAPPERS and schema.name is None and self._proto.wrap_primitives:
            message = getattr(wrappers_pb2, WRAPPERS[schema.type])
            native = _wrapping(message)
        else:
            file, name = to_file(schema, self._proto)
            message = GetMessageClass(_pool({FILE: file.SerializeToString()}).FindMessageTypeByName(name))
            native = _filling(message, schema, self._proto)

        return Writing(message.DESCRIPTOR.full_name, native, message.SerializeToString, serdes.protobuf(message))

    def _reading(self, topic: str, schema: WriterSchema) -> Reading:
        pool = _pool({name: _named(name, text) for name, text in schema.references} | {FILE: _named(FILE, schema.text)})
        file = pool.FindFileByName(FILE)
        readers: dict[bytes, tuple[Schema, Any, Any]] = {}

        def read(data: bytes) -> tuple[Schema, Any]:
            path, start = _indexes(data)
            known = readers.get(data[:start])
            if known is None:
                known = readers[data[:start]] = self._message(file, path, schema.version)
            connect, message, convert = known
            return connect, convert(message.FromString(data[start:]))

        return Reading(None, read, gives_pair=True)

    def _message(self, file: Any, path: list[int], version: int | None) -> tuple[Schema, Any, Any]:
        from google.protobuf.message_factory import GetMessageClass

        descriptor: Any = None
        inside = list(file.message_types_by_name.values())
        for index in path:
            if not 0 <= index < len(inside):
                raise DataError(f"The record names message {path} of its schema, which has no such message.")
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


def _wrapping(message: Any) -> Any:
    return lambda value: message(value=value)


def _filling(message: Any, schema: Schema, options: ProtobufOptions) -> Any:
    write = writer(schema, options)
    return lambda value: message(**write(value))


def _named(name: str, text: str) -> bytes:
    """Return a serialized file descriptor in base64, which is how the registry hands it out, under a name."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    file = FileDescriptorProto.FromString(base64.standard_b64decode(text))
    file.name = name
    serialized: bytes = file.SerializeToString()
    return serialized


def _pool(files: Mapping[str, bytes]) -> Any:
    """Return a pool of these files and of those among the well-known ones that they import."""
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
            raise DataError(f"The Protobuf schema imports {name}, which is not among its references.")
        for dependency in FileDescriptorProto.FromString(available[name]).dependency:
            add(dependency)
        pool.AddSerializedFile(available[name])

    for name in files:
        add(name)
    return pool


def _indexes(data: bytes) -> tuple[list[int], int]:
    """Return which message of its file a record is, as numbers from the outermost inwards, and where the message starts."""
    count, start = _varint(data, 0)
    if count == 0:
        return [0], start
    if count < 0:
        raise DataError("The record names a negative number of Protobuf messages.")
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
    raise DataError("The record ends before its Protobuf message begins.")

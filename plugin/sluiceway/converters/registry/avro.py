"""AvroConverter: Connect's data as Avro, with schemas in a Schema Registry."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.config.definition import ConfigDef, ConfigValue
from sluiceway.converters.registry import serdes
from sluiceway.converters.registry.avro_branches import parsed_with_branches, untagged
from sluiceway.converters.registry.avro_connect import AvroTypes, ToConnect
from sluiceway.converters.registry.avro_limits import check_of
from sluiceway.converters.registry.avro_parse import hidden_from_fastavro, parseable
from sluiceway.converters.registry.avro_read import Reader, read_anything
from sluiceway.converters.registry.avro_write import writer
from sluiceway.converters.registry.base import Deserialization, RegistryConverter, Serialization
from sluiceway.converters.registry.client import WriterSchema
from sluiceway.converters.registry.config import COMMON, KEEP_NULLS, flag
from sluiceway.data import Schema
from sluiceway.data.avro_schema import ANYTHING, FILES, VALUE, AvroOptions, full_name, has_union, to_avro
from sluiceway.errors import DataError

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

_ENHANCED = "enhanced.avro.schema.support"
_META_DATA = "connect.meta.data"
_SCRUB = "scrub.invalid.names"
_OPTIONAL_KEYS = "allow.optional.map.keys"


class AvroConverter(RegistryConverter):
    """Converts to and from Avro in the Schema Registry's wire format. Runs on executors.

    Schemas are mapped like Confluent's AvroConverter does (see ``avro_schema`` and ``avro_connect``). Schemaless values are
    written as Confluent's record ``Anything``.
    """

    java_class = "io.confluent.connect.avro.AvroConverter"
    schema_type = "AVRO"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return COMMON.define(
            flag(_ENHANCED, False, "Whether enums stay enums, and fields of unions have the full name of their record."),
            flag(_META_DATA, True, "Whether the Avro schema contains Connect's metadata, such as name and version."),
            flag(_SCRUB, False, "Whether characters that are invalid in Avro names are replaced."),
            flag(_OPTIONAL_KEYS, False, "Whether a map with optional string keys is written as an Avro map."),
        )

    def _set_options(self, values: Mapping[str, ConfigValue]) -> None:
        self._avro = AvroOptions(
            enhanced=bool(values[_ENHANCED]),
            meta_data=bool(values[_META_DATA]),
            scrub=bool(values[_SCRUB]),
            optional_map_keys=bool(values[_OPTIONAL_KEYS]),
            keep_nulls=bool(values[KEEP_NULLS]),
        )

    def _serialization(self, schema: Schema | None) -> Serialization:
        import fastavro

        node = to_avro(schema, self._avro)
        if (name := hidden_from_fastavro(node)) is not None:
            raise DataError(
                f"The struct {name} has no namespace, and is used more than once in a struct that has one, which the registry's "
                f"client cannot write. Give it a name with a namespace, such as example.{name}."
            )
        text = json.dumps(node, separators=(",", ":"))
        if schema is not None and has_union(schema):
            return Serialization(
                _name(node), writer(schema, self._avro), branch_writer(node), serdes.avro(text, untagged), _foreign_writer
            )
        [parsed] = map(fastavro.parse_schema, parseable(node))
        write = fastavro.schemaless_writer

        def payload(datum: Any) -> bytes:
            out = io.BytesIO()
            write(out, parsed, datum)
            return out.getvalue()

        def bare_bytes(datum: Any) -> bytes:
            return bytes(datum)

        is_bytes = node == "bytes" or (isinstance(node, dict) and node["type"] == "bytes")
        return Serialization(_name(node), writer(schema, self._avro), bare_bytes if is_bytes else payload, serdes.avro(text))

    def _deserialization(self, topic: str, schema: WriterSchema) -> Deserialization:
        connect, read = _datum_reader(schema, self._avro, checked=True)
        node = json.loads(schema.text)
        types = _types_of(schema, node)
        resolved = types.resolve(node)
        if connect is not None and resolved.kind == "bytes":  # in the wire format without their length
            return Deserialization(connect, Reader(types, self._avro).reader(node, connect) or bytes)
        return Deserialization(connect, lambda data: read(io.BytesIO(data)))

    @staticmethod
    def datum_reader(schema: str) -> tuple[Schema | None, Callable[[io.BytesIO], Any]]:
        """Return the schema of the values of an Avro file with this schema, and the function that reads the next one.

        Schemas are those that AvroFileSink writes. Raises ConnectError for a schema that cannot be read.
        """
        return _datum_reader(WriterSchema(schema, AvroConverter.schema_type, (), None), FILES, checked=False)

    def _column_reader(self, schema: WriterSchema, connect: Schema) -> Callable[[AnyArray], AnyArray]:
        from sluiceway.converters.registry.avro_column_reader import column_reader

        node = json.loads(schema.text)
        return column_reader(_types_of(schema, node), node, connect)

    def _column_writer(self, schema: Schema) -> Callable[[AnyArray], AnyArray]:
        from sluiceway.converters.registry.avro_column_writer import column_writer

        return column_writer(schema, self._avro)

    def _null_error(self, schema: Schema) -> str:
        return f"Found null value for non-optional schema {schema}"

    def _record_name(self, schema_text: str) -> str | None:
        return _name(json.loads(schema_text))


def _datum_reader(
    schema: WriterSchema, options: AvroOptions, *, checked: bool
) -> tuple[Schema | None, Callable[[io.BytesIO], Any]]:
    """Return the schema of values, None for ``Anything``, and the function that reads the next one.

    ``checked``: the bytes are those of one value, which are checked for more items than memory can hold.
    """
    import fastavro

    named: dict[str, Any] = {}
    node = json.loads(schema.text)
    root, *references = parseable(node, *_references(schema))
    for reference in references:
        fastavro.parse_schema(reference, named)
    types = _types_of(schema, node)
    parsed = fastavro.parse_schema(root, named)
    read: Any = fastavro.schemaless_reader
    if types.resolve(node).name == ANYTHING:
        return None, lambda source: read_anything(read(source, parsed))
    connect = ToConnect(types, options).schema(node, version=schema.version)
    reader = Reader(types, options)
    convert = reader.reader(node, connect)
    if checked and (check := check_of(types, node)) is not None:
        read = _checked(check)
    if convert is None:
        return connect, lambda source: read(source, parsed)
    if reader.tagged:
        branches = parsed_with_branches(root, references)
        tags = {"return_named_type": True, "return_named_type_override": True}
        return connect, lambda source: convert(read(source, branches, None, **tags)[VALUE])
    return connect, lambda source: convert(read(source, parsed))


def _checked(check: Callable[[bytes], None]) -> Callable[..., Any]:
    """Return fastavro's reader after a check of the bytes."""
    import fastavro

    def checked(source: io.BytesIO, *arguments: Any, **options: Any) -> Any:
        check(source.getvalue())
        return fastavro.schemaless_reader(source, *arguments, **options)

    return checked


def _types_of(schema: WriterSchema, node: Any) -> AvroTypes:
    """Return the named types of a schema, parsed as ``node``, and of its references."""
    types = AvroTypes()
    for reference in _references(schema):
        types.add(reference)
    types.add(node)
    return types


def _references(schema: WriterSchema) -> list[Any]:
    return [json.loads(text) for _name_in_file, text in schema.references]


def branch_writer(node: Any, references: Sequence[Any] = ()) -> Callable[[Any], bytes]:
    """Return the function from a datum whose branches of unions are tagged (see ``avro_branches``) to its encoding."""
    import fastavro

    root, *others = parseable(node, *references)
    parsed, write = parsed_with_branches(root, others), fastavro.schemaless_writer

    def payload(datum: Any) -> bytes:
        out = io.BytesIO()
        write(out, parsed, {VALUE: datum})
        return out.getvalue()

    return payload


def _foreign_writer(schema: WriterSchema) -> Callable[[Any], bytes]:
    return branch_writer(json.loads(schema.text), _references(schema))


def _name(node: Any) -> str | None:
    """Return the full name of a record, enum or fixed type; None for other types."""
    return full_name(node) if isinstance(node, dict) and "name" in node else None

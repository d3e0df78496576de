"""InsertField: adds a record's metadata (topic, partition, offset, timestamp) or a constant as fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api import SinkRecord
from sluiceway.api.transform import ConnectRecord, Resolved
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.data import Schema, Struct
from sluiceway.data import Type as SchemaType
from sluiceway.data.instant import timestamp_of
from sluiceway.data.logical import timestamp_schema
from sluiceway.data.numbers import Int32
from sluiceway.errors import ConfigError
from sluiceway.transforms.util.field_transform import FieldTransform
from sluiceway.transforms.util.requirements import require_map, require_sink_record
from sluiceway.transforms.util.structs import REPLACE_NULL_WITH_DEFAULT, fields_of, settler, struct_like, struct_of

if TYPE_CHECKING:
    from sluiceway.transforms.util.columnar import ColumnFunction

_PURPOSE = "field insertion"
_SUFFIX = "The suffix ! makes the field required, ? or no suffix makes it optional."


def _key(name: str, doc: str) -> ConfigKey:
    return ConfigKey(name=name, type=Type.STRING, default=None, importance=Importance.MEDIUM, doc=doc)


_CONFIG = ConfigDef(
    [
        _key("topic.field", f"Field for the topic. {_SUFFIX}"),
        _key("partition.field", f"Field for the partition number. {_SUFFIX}"),
        _key("offset.field", f"Field for the offset, for sink connectors only. {_SUFFIX}"),
        _key("timestamp.field", f"Field for the record's timestamp. {_SUFFIX}"),
        _key("static.field", f"Field for static.value. {_SUFFIX}"),
        _key("static.value", "Constant text for static.field."),
        REPLACE_NULL_WITH_DEFAULT,
    ]
)


class Insertion(NamedTuple):
    """A field to insert."""

    field: str
    optional: bool

    @classmethod
    def parse(cls, text: Any) -> Insertion | None:
        """Parse a field name; the suffix ``!`` makes the field required, ``?`` or no suffix optional."""
        if text is None:
            return None
        return cls(text[:-1], not text.endswith("!")) if text.endswith(("!", "?")) else cls(text, True)


class InsertField(FieldTransform):
    """Adds a record's topic, partition, offset or timestamp, or a constant text, as fields of its key or value."""

    purpose = _PURPOSE
    reads_records = True

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        values = _CONFIG.parse(config)
        self._topic = Insertion.parse(values["topic.field"])
        self._partition = Insertion.parse(values["partition.field"])
        self._offset = Insertion.parse(values["offset.field"])
        self._timestamp = Insertion.parse(values["timestamp.field"])
        self._static = Insertion.parse(values["static.field"])
        self._static_value = values["static.value"]
        self._replace = bool(values["replace.null.with.default"])
        if not any((self._topic, self._partition, self._offset, self._timestamp, self._static)):
            raise ConfigError("No field insertion configured")
        if self._static is not None and self._static_value is None:
            raise ConfigError("static.value", None, f"No value specified for static field: {self._static.field}")

    def resolve(self, schema: Schema | None) -> Resolved:
        if schema is None:
            return Resolved(None, self._into_map())
        return self._into_struct(schema) if schema.type is SchemaType.STRUCT else self.refuse_schema(schema)

    def _into_map(self) -> Callable[[Any, ConnectRecord], dict[Any, Any]]:
        topic, partition, offset, timestamp, static = (
            None if insertion is None else insertion.field
            for insertion in (self._topic, self._partition, self._offset, self._timestamp, self._static)
        )
        static_value = self._static_value

        def insert(value: Any, record: ConnectRecord) -> dict[Any, Any]:
            updated = value.copy() if type(value) is dict else dict(require_map(value, _PURPOSE))
            if topic is not None:
                updated[topic] = record.topic
            if partition is not None and record.kafka_partition is not None:
                updated[partition] = Int32(record.kafka_partition)
            if offset is not None:
                updated[offset] = require_sink_record(record, _PURPOSE).kafka_offset
            if timestamp is not None and record.timestamp is not None:
                updated[timestamp] = record.timestamp
            if static is not None:
                updated[static] = static_value
            return updated

        return insert

    def _into_struct(self, schema: Schema) -> Resolved:
        fields = fields_of(schema)
        updated = struct_like(schema, [*((field.name, field.schema) for field in fields), *self._added_fields()])

        settle = settler(fields, updated.fields[: len(fields)], self._replace)
        read = _reader(self._attributes())
        constants = self._constants()
        wants_offset = self._offset is not None
        timestamped = self._timestamp is not None

        def insert(value: Any, record: ConnectRecord) -> Any:
            if type(value) is not Struct or (value.schema is not schema and value.schema != schema):
                return self.apply_to_other(value, record, schema)
            values = value.values_.copy()
            settle(values)
            if wants_offset and type(record) is not SinkRecord:
                require_sink_record(record, _PURPOSE)
            if read is not None:
                values += read(record)
                if timestamped and values[-1] is not None:
                    values[-1] = timestamp_of(values[-1])
            values += constants
            return struct_of(updated, values)

        return Resolved(updated, insert)

    def _added_fields(self) -> list[tuple[str, Schema]]:
        """Return the fields to add: those of ``_attributes``, then those of ``_constants``."""
        added = [
            (insertion.field, Schema(type_, optional=insertion.optional))
            for insertion, type_ in (
                (self._topic, SchemaType.STRING),
                (self._partition, SchemaType.INT32),
                (self._offset, SchemaType.INT64),
            )
            if insertion is not None
        ]
        if self._timestamp is not None:
            added.append((self._timestamp.field, timestamp_schema(optional=self._timestamp.optional)))
        if self._static is not None:
            added.append((self._static.field, Schema(SchemaType.STRING, optional=self._static.optional)))
        return added

    def _attributes(self) -> list[str]:
        """Return the attributes of records to insert."""
        wanted = {
            "topic": self._topic,
            "kafka_partition": self._partition,
            "kafka_offset": self._offset,
            "timestamp": self._timestamp,
        }
        return [attribute for attribute, insertion in wanted.items() if insertion is not None]

    def _constants(self) -> tuple[str, ...]:
        return () if self._static is None else (str(self._static_value),)

    def column_function(self, schema: Schema, changed: Schema) -> ColumnFunction | None:
        from sluiceway.transforms.columns.insert_field import inserting

        if schema.type is not SchemaType.STRUCT:
            return None
        return inserting(schema.fields, changed, self._replace, self._attributes(), self._constants())


def _reader(attributes: list[str]) -> Callable[[ConnectRecord], tuple[Any, ...]] | None:
    if not attributes:
        return None
    if len(attributes) == 1:
        one = attrgetter(attributes[0])
        return lambda record: (one(record),)
    several: Callable[[ConnectRecord], tuple[Any, ...]] = attrgetter(*attributes)
    return several


class InsertFieldKey(InsertField):
    """Adds a record's topic, partition, offset or timestamp, or a constant text, as fields of its key."""

    java_class = "org.apache.kafka.connect.transforms.InsertField$Key"
    part = "key"


class InsertFieldValue(InsertField):
    """Adds a record's topic, partition, offset or timestamp, or a constant text, as fields of its value."""

    java_class = "org.apache.kafka.connect.transforms.InsertField$Value"
    part = "value"

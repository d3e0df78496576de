"""TimestampConverter: converts timestamps between text, Unix time, Date, Time and Timestamp."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sluiceway.api.columns import row_form
from sluiceway.api.transform import ConnectRecord, Resolved
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import OneOf
from sluiceway.data import Schema, Struct
from sluiceway.data import Type as SchemaType
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.java.blanks import is_blank
from sluiceway.java.dates.simple_date_format import SimpleDateFormat
from sluiceway.transforms.util.field_transform import FieldTransform
from sluiceway.transforms.util.requirements import require_map
from sluiceway.transforms.util.structs import REPLACE_NULL_WITH_DEFAULT, fields_of, settler, struct_like, struct_of
from sluiceway.transforms.util.timestamp_types import PRECISIONS, TYPES, reader, schema_of, type_of_schema, type_of_value, writer

if TYPE_CHECKING:
    from sluiceway.transforms.util.columnar import ColumnFunction

_PURPOSE = "converting timestamp formats"

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="field",
            type=Type.STRING,
            default="",
            importance=Importance.HIGH,
            doc="Field that contains the timestamp; empty if the whole key or value is one.",
        ),
        ConfigKey(
            name="target.type",
            type=Type.STRING,
            validator=OneOf(TYPES),
            importance=Importance.HIGH,
            doc="Type to convert to: string, unix, or one of Connect's types Date, Time and Timestamp.",
        ),
        ConfigKey(
            name="format",
            type=Type.STRING,
            default="",
            importance=Importance.MEDIUM,
            doc="Pattern of the text for Java's SimpleDateFormat. Required if target.type is string, and if the input is text.",
        ),
        ConfigKey(
            name="unix.precision",
            type=Type.STRING,
            default="milliseconds",
            validator=OneOf(PRECISIONS),
            importance=Importance.LOW,
            doc="Unit of Unix time, both written (target.type=unix) and read (int64): seconds, milliseconds, microseconds or "
            "nanoseconds. Conversion is by way of milliseconds, so finer parts are lost.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    ]
)


class TimestampConverter(FieldTransform):
    """Converts timestamps between text, Unix time, Date, Time and Timestamp: a field, or the whole key or value."""

    purpose = _PURPOSE

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        values = _CONFIG.parse(config)
        self._field = str(values["field"])
        self._target = str(values["target.type"])
        self._replace = bool(values["replace.null.with.default"])
        self._precision = str(values["unix.precision"])
        self._format = _date_format(str(values["format"]), self._target)
        self._write = writer(self._target, self._format, self._precision)

    def _converter(self, type_: str) -> Callable[[Any], Any]:
        read, write = reader(type_, self._format, self._precision), self._write
        return lambda value: write(read(value))

    def on_null(self, schema: Schema | None) -> tuple[Schema | None, Any]:
        if schema is None:
            return None, None
        return (self._of_structs(schema) if self._field else self.resolve(schema)).schema, None

    def resolve(self, schema: Schema | None) -> Resolved:
        if schema is None:
            return Resolved(None, self._of_schemaless())
        if self._field:
            return self._of_structs(schema) if schema.type is SchemaType.STRUCT else self.refuse_schema(schema)
        convert = self._converter(type_of_schema(schema))
        return Resolved(schema_of(self._target, optional=schema.optional), lambda value, _record: convert(value))

    def column_function(self, schema: Schema, changed: Schema) -> ColumnFunction | None:
        from sluiceway.transforms.columns.structs import copies, copying
        from sluiceway.transforms.columns.timestamp_converter import converting, converting_whole

        if not self._field:
            return converting_whole(self._conversion(schema), self._precision, schema, changed)
        if schema.type is not SchemaType.STRUCT:
            return None
        conversions = [
            converting(self._conversion(field.schema), self._precision, field.schema, target.schema)
            if field.name == self._field
            else None
            for field, target in zip(schema.fields, changed.fields, strict=True)
        ]
        return copying(copies(schema.fields, changed.fields, conversions), changed, self._replace)

    def _conversion(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the row form's conversion. Raises NotColumnar for a schema whose values it refuses."""
        with row_form():
            return self._converter(type_of_schema(schema))

    def _of_schemaless(self) -> Callable[[Any, ConnectRecord], Any]:
        field = self._field
        converters = {type_: self._converter(type_) for type_ in ("string", "unix", "Timestamp")}

        def convert(value: Any, _record: ConnectRecord) -> Any:
            return converters[type_of_value(value)](value)

        def convert_field(value: Any, _record: ConnectRecord) -> dict[Any, Any]:
            updated = value.copy() if type(value) is dict else dict(require_map(value, _PURPOSE))
            item = updated.get(field)
            updated[field] = None if item is None else converters[type_of_value(item)](item)
            return updated

        return convert_field if field else convert

    def _of_structs(self, schema: Schema) -> Resolved:
        fields = fields_of(schema)
        found = next((field for field in fields if field.name == self._field), None)
        pairs = [(field.name, field.schema) for field in fields]
        if found is not None:
            pairs[found.index] = found.name, schema_of(self._target, optional=found.schema.optional)
        updated = self._struct_schema(schema, pairs, None)
        functions = {} if found is None else {found.index: self._field_converter(found.schema)}
        settle = settler(fields, updated.fields, self._replace, functions, with_nulls=functions)

        def convert_into(value: Struct, updated: Schema) -> Struct:
            values = value.values_.copy()
            settle(values)
            return struct_of(updated, values)

        if schema.default is not None:
            updated = self._struct_schema(schema, pairs, convert_into(schema.default, updated))

        def convert_field(value: Any, record: ConnectRecord) -> Any:
            if type(value) is not Struct or (value.schema is not schema and value.schema != schema):
                return self.apply_to_other(value, record, schema)
            return convert_into(value, updated)

        return Resolved(updated, convert_field)

    def _field_converter(self, schema: Schema) -> Callable[[Any], Any]:
        """Return the conversion of a field; for a field of another type it raises for each struct, as in Connect."""
        try:
            convert = self._converter(type_of_schema(schema))
        except ConnectError as error:
            return functools.partial(_raise, error)
        return lambda value: None if value is None else convert(value)

    @staticmethod
    def _struct_schema(schema: Schema, fields: list[tuple[str, Schema]], default: Struct | None) -> Schema:
        return struct_like(schema, fields, optional=schema.optional, default=default)


def _raise(error: ConnectError, _value: Any) -> Any:
    raise error.with_traceback(None)


def _date_format(pattern: str, target: str) -> SimpleDateFormat | None:
    if is_blank(pattern):
        if target == "string":
            raise ConfigError("TimestampConverter requires format option to be specified when using string timestamps")
        return None
    try:
        return SimpleDateFormat(pattern)
    except ValueError as error:
        raise ConfigError(
            f"TimestampConverter requires a SimpleDateFormat-compatible pattern for string timestamps: {pattern}"
        ) from error


class TimestampConverterKey(TimestampConverter):
    """Converts timestamps between text, Unix time, Date, Time and Timestamp: a field of the key, or the whole key."""

    java_class = "org.apache.kafka.connect.transforms.TimestampConverter$Key"
    part = "key"


class TimestampConverterValue(TimestampConverter):
    """Converts timestamps between text, Unix time, Date, Time and Timestamp: a field of the value, or the whole value."""

    java_class = "org.apache.kafka.connect.transforms.TimestampConverter$Value"
    part = "value"

"""HoistField: wraps a key or value in a struct or map with a single field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluiceway.api.transform import ConnectRecord, Resolved
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.data import Schema, Struct
from sluiceway.data.struct import validate_value
from sluiceway.transforms.util.columnar import ColumnarTransform
from sluiceway.transforms.util.structs import null_in, struct_of, struct_schema

if TYPE_CHECKING:
    from sluiceway.transforms.util.columnar import ColumnFunction

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="field",
            type=Type.STRING,
            importance=Importance.MEDIUM,
            doc="Name of the field that wraps the key or value.",
        ),
    ]
)


class HoistField(ColumnarTransform):
    """Wraps a record's key or value in a struct (with a schema) or a map (without) with a single field."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        self._field = str(_CONFIG.parse(config)["field"])

    def on_null(self, schema: Schema | None) -> tuple[Schema | None, Any]:
        if schema is None:
            return None, {self._field: None}
        hoisted = self._hoisted(schema)
        if not schema.optional:
            raise null_in(hoisted.fields[0])
        return hoisted, struct_of(hoisted, [None])

    def resolve(self, schema: Schema | None) -> Resolved:
        name = self._field
        if schema is None:
            return Resolved(None, lambda value, _record: {name: value})
        hoisted = self._hoisted(schema)
        exact, needed = schema.exact_type, [field.index for field in schema.fields if not field.schema.optional]

        def is_valid(value: Any) -> bool:  # converters and transforms make valid structs, so checking for nulls is enough
            return type(value) is Struct and value.schema is schema and all(value.values_[at] is not None for at in needed)

        def hoist(value: Any, _record: ConnectRecord) -> Struct:
            if type(value) is not exact and not is_valid(value):
                validate_value(schema, value, name)
            return struct_of(hoisted, [value])

        return Resolved(hoisted, hoist)

    def column_function(self, schema: Schema, changed: Schema) -> ColumnFunction | None:
        from sluiceway.transforms.columns.hoist_field import hoisting

        return hoisting(schema, changed)

    def _hoisted(self, schema: Schema) -> Schema:
        return struct_schema([(self._field, schema)])


class HoistFieldKey(HoistField):
    """Wraps a record's key in a struct (with a schema) or a map (without) with a single field."""

    java_class = "org.apache.kafka.connect.transforms.HoistField$Key"
    part = "key"


class HoistFieldValue(HoistField):
    """Wraps a record's value in a struct (with a schema) or a map (without) with a single field."""

    java_class = "org.apache.kafka.connect.transforms.HoistField$Value"
    part = "value"

"""ExtractField: replaces a key or value by one of its fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluiceway.api.transform import ConnectRecord, Resolved
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.data import Field, Schema, Struct
from sluiceway.data import Type as SchemaType
from sluiceway.transforms.util.field_path import FIELD_SYNTAX_VERSION, SingleFieldPath
from sluiceway.transforms.util.field_transform import FieldTransform
from sluiceway.transforms.util.requirements import require_map, require_struct
from sluiceway.transforms.util.structs import REPLACE_NULL_WITH_DEFAULT

if TYPE_CHECKING:
    from sluiceway.transforms.util.columnar import ColumnFunction

_PURPOSE = "field extraction"

_CONFIG = ConfigDef(
    [
        ConfigKey(name="field", type=Type.STRING, importance=Importance.MEDIUM, doc="The field to extract."),
        REPLACE_NULL_WITH_DEFAULT,
        FIELD_SYNTAX_VERSION,
    ]
)


class ExtractField(FieldTransform):
    """Replaces a record's key or value by one of its fields."""

    purpose = _PURPOSE

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        values = _CONFIG.parse(config)
        self._replace = bool(values["replace.null.with.default"])
        self._path = SingleFieldPath(str(values["field"]), nested=str(values["field.syntax.version"]).upper() == "V2")

    def on_null(self, schema: Schema | None) -> tuple[Schema | None, Any]:
        return (None, None) if schema is None else (self._field(schema).schema, None)

    def resolve(self, schema: Schema | None) -> Resolved:
        path, replace = self._path, self._replace
        if schema is None:

            def from_map(value: Any, _record: ConnectRecord) -> Any:
                return path.in_map(value if type(value) is dict else require_map(value, _PURPOSE))

            return Resolved(None, from_map, may_be_null=True)

        def from_struct(value: Any, record: ConnectRecord) -> Any:
            if type(value) is not Struct:
                require_struct(value, schema, _PURPOSE)
            return path.in_struct(value, replace_null=replace)

        def only_field(value: Any, record: ConnectRecord) -> Any:
            if type(value) is not Struct or (value.schema is not schema and value.schema != schema):
                return from_struct(value, record)
            item = value.values_[index]
            return default if item is None else item

        if schema.type is not SchemaType.STRUCT:  # Connect checks the value before the field
            return self.refuse_schema(schema)
        field = self._field(schema)
        index, default = field.index, field.schema.default if replace else None
        return Resolved(field.schema, from_struct if len(path.steps) > 1 else only_field, may_be_null=True)

    def column_function(self, schema: Schema, changed: Schema) -> ColumnFunction | None:
        from sluiceway.transforms.columns.extract_field import extracting

        return extracting(self._path.fields_in(schema), self._replace) if schema.type is SchemaType.STRUCT else None

    def _field(self, schema: Schema) -> Field:
        field = self._path.field_of(schema)
        if field is None:
            raise ValueError(f"Unknown field: {self._path.text}")
        return field


class ExtractFieldKey(ExtractField):
    """Replaces a record's key by one of its fields."""

    java_class = "org.apache.kafka.connect.transforms.ExtractField$Key"
    part = "key"


class ExtractFieldValue(ExtractField):
    """Replaces a record's value by one of its fields."""

    java_class = "org.apache.kafka.connect.transforms.ExtractField$Value"
    part = "value"

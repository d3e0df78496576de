"""SetSchemaMetadata: sets the name or version of a key's or value's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluiceway.api.transform import ConnectRecord, Resolved
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.data import Schema, Struct
from sluiceway.errors import ConfigError, DataError
from sluiceway.transforms.util.columnar import ColumnarTransform
from sluiceway.transforms.util.structs import REPLACE_NULL_WITH_DEFAULT, fields_of, nulls_between, struct_of

if TYPE_CHECKING:
    from sluiceway.transforms.util.columnar import ColumnFunction

_CONFIG = ConfigDef(
    [
        ConfigKey(name="schema.name", type=Type.STRING, default=None, importance=Importance.HIGH, doc="The schema's new name."),
        ConfigKey(
            name="schema.version", type=Type.INT, default=None, importance=Importance.HIGH, doc="The schema's new version."
        ),
        REPLACE_NULL_WITH_DEFAULT,
    ]
)


class SetSchemaMetadata(ColumnarTransform):
    """Sets the name or version of the schema of a key or value that is a struct."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = _CONFIG.parse(config)
        name, version = options["schema.name"], options["schema.version"]
        self._name = name if isinstance(name, str) else None
        self._version = version if isinstance(version, int) else None
        self._replace = bool(options["replace.null.with.default"])
        if self._name is None and self._version is None:
            raise ConfigError("Neither schema name nor version configured")

    def resolve(self, schema: Schema | None) -> Resolved:
        changed = self._changed(schema)
        nulls = nulls_between(changed.fields, changed.fields, self._replace)

        def with_changed_schema(value: Any, _record: ConnectRecord) -> Any:
            if not isinstance(value, Struct):
                return value
            values = list(value.values_)
            for at in nulls.positions:
                if values[at] is None:
                    values[at] = nulls.fill(at)
            return struct_of(changed, values)

        return Resolved(changed, with_changed_schema)

    def column_function(self, schema: Schema, changed: Schema) -> ColumnFunction | None:
        from sluiceway.transforms.columns.structs import copies, copying

        return copying(copies(schema.fields, changed.fields), changed, self._replace)

    def on_null(self, schema: Schema | None) -> tuple[Schema | None, Any]:
        return (None if schema is None else self._changed(schema)), None

    def _changed(self, schema: Schema | None) -> Schema:
        if schema is None:
            raise DataError("Schema required for [updating schema metadata]")
        return Schema.struct(
            [(field.name, field.schema) for field in fields_of(schema)],
            optional=schema.optional,
            default=schema.default,
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
            doc=schema.doc,
            parameters=schema.parameters,
        )


class SetSchemaMetadataKey(SetSchemaMetadata):
    """Sets the name or version of the schema of a key that is a struct."""

    java_class = "org.apache.kafka.connect.transforms.SetSchemaMetadata$Key"
    part = "key"


class SetSchemaMetadataValue(SetSchemaMetadata):
    """Sets the name or version of the schema of a value that is a struct."""

    java_class = "org.apache.kafka.connect.transforms.SetSchemaMetadata$Value"
    part = "value"

"""Cast: changes the type of fields, or of the whole key or value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from sluiceway.api.transform import ConnectRecord, Resolved
from sluiceway.config.definition import ConfigDef, ConfigKey, ConfigValue, Importance
from sluiceway.config.definition import Type as ConfigType
from sluiceway.config.validators import Check
from sluiceway.data import Schema, Struct, Type
from sluiceway.data.logical import DATE, DECIMAL, TIME, TIMESTAMP
from sluiceway.errors import ConfigError, SchemaBuilderError
from sluiceway.java.blanks import trim
from sluiceway.transforms.util.casting import TARGETS, cast_of_schema, names, same, schemaless_casts
from sluiceway.transforms.util.field_transform import FieldTransform
from sluiceway.transforms.util.mappings import COLON_PAIRS, parse_mappings
from sluiceway.transforms.util.requirements import require_map
from sluiceway.transforms.util.structs import REPLACE_NULL_WITH_DEFAULT, fields_of, settler, struct_like, struct_of

if TYPE_CHECKING:
    from sluiceway.transforms.util.columnar import ColumnFunction

_PURPOSE = "cast types"
_LOGICAL = (DECIMAL, DATE, TIME, TIMESTAMP)


def parse_spec(value: ConfigValue) -> dict[str | None, Type]:
    """Parse a list of ``field:type`` to types by field name; a single type has the key None. Raises ConfigError."""
    casts: dict[str | None, Type] = {}
    for name, type_ in parse_mappings(value, allow_single=True):
        casts[None if type_ is None else trim(name)] = _target(name if type_ is None else type_)
    if None in casts and isinstance(value, list) and len(value) > 1:
        raise ConfigError(
            "Cast transformations that specify a type to cast the entire value to may only specify a single cast in their spec"
        )
    return casts


def _target(text: str) -> Type:
    name = trim(text).upper()
    if name not in Type.__members__:
        reason = f"java.lang.IllegalArgumentException: No enum constant org.apache.kafka.connect.data.Schema.Type.{name}"
        raise ConfigError(f"Invalid value {reason} for configuration Invalid type found in casting spec: {trim(text)}")
    type_ = Type[name]
    if type_ not in TARGETS:
        raise ConfigError(f"Cast transformation does not support casting to {type_.name}; supported types are {names(TARGETS)}")
    return type_


def _valid_spec(_name: str, value: ConfigValue) -> None:
    if not value:
        raise ConfigError("Must specify at least one field to cast.")
    parse_spec(value)


_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="spec",
            type=ConfigType.LIST,
            validator=Check(_valid_spec, COLON_PAIRS),
            importance=Importance.HIGH,
            doc="Fields to cast and their types, as name:type separated by commas, or one type for the whole key or value. Types "
            "are int8, int16, int32, int64, float32, float64, boolean and string; bytes can only be cast to string.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    ]
)


class Cast(FieldTransform):
    """Casts fields of a record's key or value, or the whole of it, to another type, such as int64 to string."""

    purpose = _PURPOSE

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        values = _CONFIG.parse(config)
        casts = parse_spec(values["spec"])
        self._whole = casts.pop(None, None)
        self._casts = {name: type_ for name, type_ in casts.items() if name is not None}
        self._replace = bool(values["replace.null.with.default"])

    def resolve(self, schema: Schema | None) -> Resolved:
        if self._whole is not None:
            return self._of_whole(schema, self._whole)
        return Resolved(None, self._of_maps()) if schema is None else self._of_structs(schema)

    def _of_whole(self, schema: Schema | None, target: Type) -> Resolved:
        if schema is None:
            casts = schemaless_casts(target)
            return Resolved(None, lambda value, _record: casts[type(value)](value))
        cast = cast_of_schema(schema, target)
        return Resolved(_schema_cast(schema, target, named=True), lambda value, _record: cast(value))

    def column_function(self, schema: Schema, changed: Schema) -> ColumnFunction | None:
        from sluiceway.transforms.columns.cast import casting, casting_whole
        from sluiceway.transforms.columns.structs import copies, copying

        if self._whole is not None:  # a cast keeps the name, which a logical type's values do not fit
            return None if schema.name in _LOGICAL else casting_whole(cast_of_schema(schema, self._whole), schema, changed)
        casts = [
            casting(cast_of_schema(field.schema, self._casts[field.name]), field.schema, target.schema)
            if field.name in self._casts
            else None
            for field, target in zip(schema.fields, changed.fields, strict=True)
        ]
        return copying(copies(schema.fields, changed.fields, casts), changed, self._replace)

    def _of_maps(self) -> Callable[[Any, ConnectRecord], dict[Any, Any]]:
        casts = [(name, schemaless_casts(target)) for name, target in self._casts.items()]

        def cast_fields(value: Any, _record: ConnectRecord) -> dict[Any, Any]:
            updated = value.copy() if type(value) is dict else dict(require_map(value, _PURPOSE))
            for name, by_class in casts:
                item = updated.get(name)
                updated[name] = None if item is None else by_class[type(item)](item)
            return updated

        return cast_fields

    def _of_structs(self, schema: Schema) -> Resolved:
        fields = fields_of(schema)
        targets = {field.name: self._casts[field.name] for field in fields if field.name in self._casts}
        updated = struct_like(
            schema,
            [
                (field.name, _schema_cast(field.schema, targets[field.name]) if field.name in targets else field.schema)
                for field in fields
            ],
            optional=schema.optional,
            default=None if schema.default is None else cast_of_schema(schema, Type.STRUCT)(schema.default),
        )
        functions = {field.index: cast_of_schema(field.schema, targets[field.name]) for field in fields if field.name in targets}
        casts = {at: function for at, function in functions.items() if function is not same}
        settle = settler(fields, updated.fields, self._replace, casts)

        def cast_fields(value: Any, record: ConnectRecord) -> Any:
            if type(value) is not Struct or (value.schema is not schema and value.schema != schema):
                return self.apply_to_other(value, record, schema)
            values = value.values_.copy()
            settle(values)
            return struct_of(updated, values)

        return Resolved(updated, cast_fields)


def _schema_cast(schema: Schema, target: Type, *, named: bool = False) -> Schema:
    """Return the schema of cast values, with the default cast. ``named`` keeps name, version, doc and parameters."""
    default = None if schema.default is None else cast_of_schema(schema, target)(schema.default)
    if not named:
        return Schema(target, optional=schema.optional, default=default)
    if default is not None and schema.name in _LOGICAL:  # a logical type needs a default of its own class
        raise SchemaBuilderError("Invalid default value")
    return Schema(
        target,
        optional=schema.optional,
        default=default,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
    )


class CastKey(Cast):
    """Casts fields of a record's key, or the whole of it, to another type, such as int64 to string."""

    java_class = "org.apache.kafka.connect.transforms.Cast$Key"
    part = "key"


class CastValue(Cast):
    """Casts fields of a record's value, or the whole of it, to another type, such as int64 to string."""

    java_class = "org.apache.kafka.connect.transforms.Cast$Value"
    part = "value"

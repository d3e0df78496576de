"""ValueToKey: replaces the key by fields of the value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from sluiceway.api import Transform
from sluiceway.api.columns import ColumnTransform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import UniqueList
from sluiceway.data import Field, Schema, Struct
from sluiceway.data import Type as SchemaType
from sluiceway.errors import DataError
from sluiceway.transforms.util.requirements import require_map, require_struct
from sluiceway.transforms.util.structs import REPLACE_NULL_WITH_DEFAULT, nulls_between, struct_of

_PURPOSE = "copying fields from value to key"

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="fields",
            type=Type.LIST,
            validator=UniqueList(),
            importance=Importance.HIGH,
            doc="Fields of the value that form the key.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    ]
)


class _Keys(NamedTuple):
    """The keys of values of one schema."""

    schema: Schema
    key_of: Callable[[Struct], Struct]


class ValueToKey(Transform):
    """Replaces the record's key by fields of its value."""

    java_class = "org.apache.kafka.connect.transforms.ValueToKey"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = _CONFIG.parse(config)
        self._fields: list[str] = options["fields"]  # type: ignore[assignment]
        self._replace = bool(options["replace.null.with.default"])
        self._last: tuple[Schema, _Keys] | None = None

    def apply(self, record: R) -> R | Sequence[R] | None:
        if record.value_schema is None:
            return record.new_record(key_schema=None, key=self._map_of(record.value))
        struct = require_struct(record.value, record.value_schema, _PURPOSE)
        keys = self._keys(struct.schema)
        return record.new_record(key_schema=keys.schema, key=keys.key_of(struct))

    def _map_of(self, value: Any) -> dict[Any, Any]:
        """Return the key of a value without a schema."""
        given = require_map(value, _PURPOSE)
        return {field: given.get(field) for field in self._fields}

    def _keys(self, schema: Schema) -> _Keys:
        if self._last is None or (self._last[0] is not schema and self._last[0] != schema):
            self._last = schema, self._resolve(schema)
        return self._last[1]

    def _resolve(self, schema: Schema) -> _Keys:
        found, key_schema = self._key_fields(schema)
        nulls = nulls_between(found, key_schema.fields, self._replace)
        indexes = [source.index for source in found]

        def key_of(struct: Struct) -> Struct:
            all_values = struct.values_
            values: list[Any] = [all_values[index] for index in indexes]
            for at in nulls.positions:
                if values[at] is None:
                    values[at] = nulls.fill(at)
            return struct_of(key_schema, values)

        return _Keys(key_schema, key_of)

    def _key_fields(self, schema: Schema) -> tuple[list[Field], Schema]:
        """Return the fields to copy from values of a schema, and the key's schema."""
        sources = [schema.field(name) for name in self._fields]
        for name, source in zip(self._fields, sources, strict=True):
            if source is None:
                raise DataError(f"Field does not exist: {name}")
        found = [source for source in sources if source is not None]
        return found, Schema.struct([(source.name, source.schema) for source in found])

    def column_transform(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnTransform | None:
        from sluiceway.transforms.columns.structs import copies
        from sluiceway.transforms.columns.value_to_key import keys_of_fields, keys_of_objects

        if value_schema is None:
            return keys_of_objects(self._map_of)
        if value_schema.type is not SchemaType.STRUCT:
            return None
        try:
            found, changed = self._key_fields(value_schema)
        except DataError:  # the row form raises it for each record
            return None
        return keys_of_fields(copies(found, changed.fields), changed, self._replace)

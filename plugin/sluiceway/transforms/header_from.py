"""HeaderFrom: copies or moves fields of a key or value into headers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from sluiceway.api import Transform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import NonEmptyList, OneOf
from sluiceway.data import Field, Header, Schema, Struct
from sluiceway.errors import ConfigError, DataError
from sluiceway.transforms.util.requirements import require_map, require_struct
from sluiceway.transforms.util.structs import REPLACE_NULL_WITH_DEFAULT, nulls_between, struct_like, struct_of

_MOVE = "move"

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="fields",
            type=Type.LIST,
            validator=NonEmptyList(),
            importance=Importance.HIGH,
            doc="The fields to put into headers.",
        ),
        ConfigKey(
            name="headers",
            type=Type.LIST,
            validator=NonEmptyList(),
            importance=Importance.HIGH,
            doc="What the headers are called: as many names as fields, in their order.",
        ),
        ConfigKey(
            name="operation",
            type=Type.STRING,
            validator=OneOf((_MOVE, "copy")),
            importance=Importance.HIGH,
            doc="With move, the fields are taken out of the key or value; with copy, they stay there too.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    ]
)


class _Plan(NamedTuple):
    """What is done to the structs of one schema."""

    headers: tuple[tuple[str, str, Field | None], ...]
    """The name of each header, and the name and source of what it holds."""

    schema: Schema
    """Of what is left."""

    rest_of: Callable[[Struct], Struct]


class _Done(NamedTuple):
    """What became of one key or value."""

    headers: list[Header]
    schema: Schema | None
    value: Any


class HeaderFrom(Transform):
    """Makes headers of fields of the key or value, which keeps them (copy) or loses them (move)."""

    part: ClassVar[str]

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = _CONFIG.parse(config)
        self._fields: list[str] = options["fields"]  # type: ignore[assignment]
        self._headers: list[str] = options["headers"]  # type: ignore[assignment]
        if len(self._fields) != len(self._headers):
            raise ConfigError("'fields' config must have the same number of elements as 'headers' config.")
        self._move = options["operation"] == _MOVE
        self._purpose = f"header {options['operation']}"
        self._replace = bool(options["replace.null.with.default"])
        self._last: tuple[Schema, _Plan] | None = None

    def apply(self, record: R) -> R | Sequence[R] | None:
        done: _Done
        if self.part == "key":
            done = self._take(record.key_schema, record.key)
            return record.new_record(headers=(*record.headers, *done.headers), key_schema=done.schema, key=done.value)
        done = self._take(record.value_schema, record.value)
        return record.new_record(headers=(*record.headers, *done.headers), value_schema=done.schema, value=done.value)

    def _take(self, schema: Schema | None, value: Any) -> _Done:
        return self._without_schema(value) if schema is None else self._with_schema(schema, value)

    def _without_schema(self, value: Any) -> _Done:
        fields = require_map(value, self._purpose)
        items = ((name, fields.get(field)) for field, name in zip(self._fields, self._headers, strict=True))
        headers = [Header(name, item, item.schema if isinstance(item, Struct) else None) for name, item in items]
        if self._move:
            fields = {name: item for name, item in fields.items() if name not in self._fields}
        return _Done(headers, None, fields)

    def _with_schema(self, schema: Schema, value: Any) -> _Done:
        struct = require_struct(value, schema, self._purpose)
        if self._last is None or (self._last[0] is not schema and self._last[0] != schema):
            self._last = schema, self._resolve(schema)
        plan = self._last[1]
        rest = plan.rest_of(struct)
        return _Done([self._header(name, source, field, struct) for name, source, field in plan.headers], plan.schema, rest)

    def _header(self, name: str, source: str, field: Field | None, struct: Struct) -> Header:
        if field is None:
            raise TypeError(f"There is no field {source} in {struct.schema}, so no header can be made of it.")
        value = struct[field.name] if self._replace else struct.get_without_default(field.name)
        if value is None and not field.schema.optional:
            raise DataError(f"A null value requires an optional schema but was {field.schema}")
        return Header(name, value, field.schema)

    def _resolve(self, schema: Schema) -> _Plan:
        headers = tuple((name, field, schema.field(field)) for name, field in zip(self._headers, self._fields, strict=True))
        if not self._move:
            return _Plan(headers, schema, lambda struct: struct)
        kept = [field for field in schema.fields if field.name not in self._fields]
        left = struct_like(schema, [(field.name, field.schema) for field in kept])
        nulls = nulls_between(kept, left.fields, self._replace)
        indexes = [field.index for field in kept]

        def rest_of(struct: Struct) -> Struct:
            all_values = struct.values_
            values: list[Any] = [all_values[index] for index in indexes]
            for at in nulls.positions:
                if values[at] is None:
                    values[at] = nulls.fill(at)
            return struct_of(left, values)

        return _Plan(headers, left, rest_of)


class HeaderFromKey(HeaderFrom):
    """Makes headers of fields of the key, which keeps them (copy) or loses them (move)."""

    java_class = "org.apache.kafka.connect.transforms.HeaderFrom$Key"
    part = "key"


class HeaderFromValue(HeaderFrom):
    """Makes headers of fields of the value, which keeps them (copy) or loses them (move)."""

    java_class = "org.apache.kafka.connect.transforms.HeaderFrom$Value"
    part = "value"

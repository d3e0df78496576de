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
            doc="Fields to copy or move to headers.",
        ),
        ConfigKey(
            name="headers",
            type=Type.LIST,
            validator=NonEmptyList(),
            importance=Importance.HIGH,
            doc="Names of the headers, one for each field, in the same order.",
        ),
        ConfigKey(
            name="operation",
            type=Type.STRING,
            validator=OneOf((_MOVE, "copy")),
            importance=Importance.HIGH,
            doc="copy keeps the fields in the key or value; move removes them.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    ]
)


class _Plan(NamedTuple):
    """The transformation of structs of one schema."""

    headers: tuple[tuple[str, str, Field | None], ...]
    """The header's name, the field's name, and the field if it exists, for each header."""

    schema: Schema
    """The schema without the moved fields."""

    without_fields: Callable[[Struct], Struct]


class _Extracted(NamedTuple):
    """The headers of a key or value, and the rest of it."""

    headers: list[Header]
    schema: Schema | None
    value: Any


class HeaderFrom(Transform):
    """Copies or moves fields of the key or value to headers."""

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
        done: _Extracted
        if self.part == "key":
            done = self._extract(record.key_schema, record.key)
            return record.new_record(headers=(*record.headers, *done.headers), key_schema=done.schema, key=done.value)
        done = self._extract(record.value_schema, record.value)
        return record.new_record(headers=(*record.headers, *done.headers), value_schema=done.schema, value=done.value)

    def _extract(self, schema: Schema | None, value: Any) -> _Extracted:
        return self._without_schema(value) if schema is None else self._with_schema(schema, value)

    def _without_schema(self, value: Any) -> _Extracted:
        fields = require_map(value, self._purpose)
        items = ((name, fields.get(field)) for field, name in zip(self._fields, self._headers, strict=True))
        headers = [Header(name, item, item.schema if isinstance(item, Struct) else None) for name, item in items]
        if self._move:
            fields = {name: item for name, item in fields.items() if name not in self._fields}
        return _Extracted(headers, None, fields)

    def _with_schema(self, schema: Schema, value: Any) -> _Extracted:
        struct = require_struct(value, schema, self._purpose)
        if self._last is None or (self._last[0] is not schema and self._last[0] != schema):
            self._last = schema, self._resolve(schema)
        plan = self._last[1]
        rest = plan.without_fields(struct)
        return _Extracted([self._header(name, source, field, struct) for name, source, field in plan.headers], plan.schema, rest)

    def _header(self, name: str, source: str, field: Field | None, struct: Struct) -> Header:
        if field is None:
            raise TypeError(f"HeaderFrom: field {source} does not exist in {struct.schema}. Check the option fields.")
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

        def without_fields(struct: Struct) -> Struct:
            all_values = struct.values_
            values: list[Any] = [all_values[index] for index in indexes]
            for at in nulls.positions:
                if values[at] is None:
                    values[at] = nulls.fill(at)
            return struct_of(left, values)

        return _Plan(headers, left, without_fields)


class HeaderFromKey(HeaderFrom):
    """Copies or moves fields of the key to headers."""

    java_class = "org.apache.kafka.connect.transforms.HeaderFrom$Key"
    part = "key"


class HeaderFromValue(HeaderFrom):
    """Copies or moves fields of the value to headers."""

    java_class = "org.apache.kafka.connect.transforms.HeaderFrom$Value"
    part = "value"

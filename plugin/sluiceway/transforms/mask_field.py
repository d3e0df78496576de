"""MaskField: replaces fields by an empty value, or by a constant text or number."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from sluiceway.api.transform import ConnectRecord, Resolved
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.config.validators import NonEmptyString, UniqueList
from sluiceway.data import Schema, Struct
from sluiceway.data import Type as SchemaType
from sluiceway.data.instant import Instant
from sluiceway.data.numbers import BigInteger, Float32, Int8, Int16, Int32
from sluiceway.data.schema import INTEGER_BITS
from sluiceway.errors import DataError
from sluiceway.java.numbers import decimal_to_integer, parse_decimal, to_float32
from sluiceway.transforms.util.field_transform import FieldTransform
from sluiceway.transforms.util.requirements import java_class, require_map, require_struct
from sluiceway.transforms.util.structs import REPLACE_NULL_WITH_DEFAULT, settler, struct_of

if TYPE_CHECKING:
    from sluiceway.transforms.util.columnar import ColumnFunction

_PURPOSE = "mask fields"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="fields",
            type=Type.LIST,
            validator=UniqueList(),
            importance=Importance.HIGH,
            doc="Fields to mask.",
        ),
        ConfigKey(
            name="replacement",
            type=Type.STRING,
            default=None,
            validator=NonEmptyString(),
            importance=Importance.LOW,
            doc="Replacement for the masked values instead of an empty value: a text for string fields, a number for numeric "
            "fields. Fields of other types are refused.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    ]
)

_BLANKS: dict[type, Callable[[], Any]] = {
    bool: bool,
    int: int,
    BigInteger: BigInteger,
    Int8: Int8,
    Int16: Int16,
    Int32: Int32,
    float: float,
    Float32: Float32,
    str: str,
    Decimal: Decimal,
    list: list,
    dict: dict,
    dt.datetime: lambda: _EPOCH,
    dt.date: lambda: dt.date(1970, 1, 1),
    dt.time: dt.time,
    Instant: lambda: _EPOCH,
}

_NARROW = {Int8: 8, Int16: 16, Int32: 32, int: 64}


class MaskField(FieldTransform):
    """Replaces fields of a record's key or value by the empty value of their type, or by a constant text or number."""

    purpose = _PURPOSE

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        values = _CONFIG.parse(config)
        fields = values["fields"]
        self._fields = tuple(fields if isinstance(fields, list) else ())
        self._replacement = None if values["replacement"] is None else str(values["replacement"])
        self._replace = bool(values["replace.null.with.default"])

    def on_null(self, schema: Schema | None) -> tuple[Schema | None, Any]:
        require_map(None, _PURPOSE) if schema is None else require_struct(None, schema, _PURPOSE)
        return schema, None

    def resolve(self, schema: Schema | None) -> Resolved:
        if schema is None:
            return Resolved(None, self._of_maps())
        return self._of_structs(schema) if schema.type is SchemaType.STRUCT else self.refuse_schema(schema)

    def _of_maps(self) -> Callable[[Any, ConnectRecord], dict[Any, Any]]:
        names, masked = self._fields, self._masked

        def mask(value: Any, _record: ConnectRecord) -> dict[Any, Any]:
            updated = value.copy() if type(value) is dict else dict(require_map(value, _PURPOSE))
            for name in names:
                updated[name] = masked(updated.get(name), None)
            return updated

        return mask

    def _of_structs(self, schema: Schema) -> Resolved:
        fields = schema.fields
        masks = {field.index: self._mask_of(field.schema) for field in fields if field.name in self._fields}
        settle = settler(fields, fields, self._replace, masks)

        def mask(value: Any, record: ConnectRecord) -> Any:
            if type(value) is not Struct or (value.schema is not schema and value.schema != schema):
                return self.apply_to_other(value, record, schema)
            values = value.values_.copy()
            settle(values)
            return struct_of(schema, values)

        return Resolved(schema, mask)

    def column_function(self, schema: Schema, changed: Schema) -> ColumnFunction | None:
        from sluiceway.transforms.columns.mask_field import masking
        from sluiceway.transforms.columns.structs import copies, copying

        if schema.type is not SchemaType.STRUCT:
            return None
        masks = [
            masking(self._mask_of(field.schema), field.schema) if field.name in self._fields else None for field in schema.fields
        ]
        return copying(copies(schema.fields, changed.fields, masks), changed, self._replace)

    def _mask_of(self, schema: Schema) -> Callable[[Any], Any]:
        return lambda value: self._masked(value, schema)

    def _masked(self, value: Any, schema: Schema | None) -> Any:
        if value is None:
            return None
        if self._replacement is not None:
            return _replaced(value, schema, self._replacement)
        blank = _BLANKS.get(type(value))
        if blank is None:
            blank = next((make for kind, make in _BLANKS.items() if isinstance(value, kind)), None)
        if blank is None or isinstance(value, Struct):
            raise DataError(f"Cannot mask value of type: class {java_class(value, schema)}")
        return blank()


def _replaced(value: Any, schema: Schema | None, replacement: str) -> Any:
    if isinstance(value, str):
        return replacement
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise DataError(f"Cannot mask value of type class {java_class(value, schema)} with custom replacement.")
    number = _number(replacement)
    if isinstance(value, Decimal):
        return number
    if isinstance(value, int):
        if schema is not None:
            return decimal_to_integer(number, INTEGER_BITS.get(schema.type, 64))
        kind = type(value)
        return kind(decimal_to_integer(number, _NARROW.get(kind, 64)))
    if isinstance(value, Float32):
        return Float32(to_float32(float(number)))
    return to_float32(float(number)) if schema is not None and schema.type is SchemaType.FLOAT32 else float(number)


@functools.lru_cache(maxsize=256)
def _number(text: str) -> Decimal:
    try:
        return parse_decimal(text)
    except ValueError as error:
        raise DataError(f"Unable to convert {text} (class java.lang.String) to a number") from error


class MaskFieldKey(MaskField):
    """Replaces fields of a record's key by the empty value of their type, or by a constant text or number."""

    java_class = "org.apache.kafka.connect.transforms.MaskField$Key"
    part = "key"


class MaskFieldValue(MaskField):
    """Replaces fields of a record's value by the empty value of their type, or by a constant text or number."""

    java_class = "org.apache.kafka.connect.transforms.MaskField$Value"
    part = "value"

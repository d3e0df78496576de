"""Flatten: flattens nested structs or maps and joins the field names with a delimiter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api.transform import ConnectRecord, Resolved
from sluiceway.config.definition import ConfigDef, ConfigKey, Importance, Type
from sluiceway.data import BigInteger, Field, Schema, Struct
from sluiceway.data import Type as SchemaType
from sluiceway.errors import DataError
from sluiceway.java.hash_map import hash_map_order
from sluiceway.transforms.util.field_transform import FieldTransform
from sluiceway.transforms.util.requirements import java_class, require_map
from sluiceway.transforms.util.structs import null_in, struct_like, struct_of

if TYPE_CHECKING:
    from sluiceway.transforms.util.columnar import ColumnFunction

_PURPOSE = "flattening"

_CONFIG = ConfigDef(
    [
        ConfigKey(
            name="delimiter",
            type=Type.STRING,
            default=".",
            importance=Importance.MEDIUM,
            doc="Delimiter between the joined field names.",
        ),
    ]
)

_LEAVES = (str, bool, int, float, bytes, list, tuple, bytearray, memoryview)


class _Leaf(NamedTuple):
    """A field of the result, its path through the nested structs, and its schemas before and after."""

    name: str
    path: tuple[int, ...]
    source: Schema
    target: Schema


class Flatten(FieldTransform):
    """Flattens a record's nested key or value and joins the field names with a delimiter."""

    purpose = _PURPOSE

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        self._delimiter = str(_CONFIG.parse(config)["delimiter"])

    def resolve(self, schema: Schema | None) -> Resolved:
        if schema is None:
            return Resolved(None, self._flat_map)
        return self._of_structs(schema) if schema.type is SchemaType.STRUCT else self.refuse_schema(schema)

    def column_function(self, schema: Schema, changed: Schema) -> ColumnFunction | None:
        from sluiceway.transforms.columns.flatten import flattening

        return flattening(schema, changed) if schema.type is SchemaType.STRUCT else None

    def _flat_map(self, value: Any, _record: ConnectRecord) -> dict[Any, Any]:
        fields = value if type(value) is dict else require_map(value, _PURPOSE)
        entries = list(self._entries("", fields))
        flat = dict(entries)
        # Of fields that get the same name, the last in the order of Java's HashMap remains.
        return flat if len(flat) == len(entries) else dict(self._entries("", fields, hash_map_order))

    def _entries(
        self, prefix: str, value: Mapping[Any, Any], order: Callable[[Mapping[Any, Any]], list[Any]] = list
    ) -> Iterator[tuple[Any, Any]]:
        for key in order(value):
            if key is not None and not isinstance(key, str):
                raise TypeError(f"class {java_class(key)} cannot be cast to class java.lang.String")
            item = value[key]
            name: Any = f"{prefix}{self._delimiter}{'null' if key is None else key}" if prefix else key
            if item is None or (isinstance(item, _LEAVES) and not isinstance(item, BigInteger)):
                yield name, item
            elif isinstance(item, Mapping) and not isinstance(item, Struct):
                yield from self._entries(name, item, order)
            elif isinstance(item, Struct):
                raise DataError(
                    f"Flatten transformation does not support class {java_class(item)} for record without schemas "
                    f"(for field {name})."
                )
            else:
                raise DataError(
                    f"Flatten transformation was passed a value of type class {java_class(item)} which is not supported by "
                    f"Connect's data API"
                )

    def _of_structs(self, schema: Schema) -> Resolved:
        leaves: list[_Leaf] = []

        def fields() -> Iterator[tuple[str, Schema]]:
            for leaf in self._leaves(schema, "", (), schema.optional, schema.default):
                leaves.append(leaf)
                yield leaf.name, leaf.target

        updated = struct_like(schema, fields())
        plan = _plan(schema, leaves)
        size = len(leaves)

        def flatten(value: Any, record: ConnectRecord) -> Any:
            if type(value) is not Struct or (value.schema is not schema and value.schema != schema):
                return self.apply_to_other(value, record, schema)
            values: list[Any] = [None] * size
            _fill(values, plan, value.values_, updated.fields)
            return struct_of(updated, values)

        return Resolved(updated, flatten)

    def _leaves(
        self, schema: Schema, prefix: str, path: tuple[int, ...], optional: bool, default: Struct | None
    ) -> Iterator[_Leaf]:
        for field in schema.fields:
            name = f"{prefix}{self._delimiter}{field.name}" if prefix else field.name
            inner = field.schema
            inner_optional = optional or inner.optional
            inner_default = inner.default
            if inner_default is None and default is not None:
                inner_default = default[field.name]
            here = (*path, field.index)
            if inner.type is SchemaType.STRUCT:
                yield from self._leaves(inner, name, here, inner_optional, inner_default)
            elif inner.type is SchemaType.MAP:
                raise DataError(f"Flatten transformation does not support MAP for record with schemas (for field {name}).")
            else:
                yield _Leaf(name, here, inner, _with(inner, inner_optional, inner_default))


def _with(schema: Schema, optional: bool, default: Any) -> Schema:
    if schema.optional == optional and schema.default is default:
        return schema
    return Schema(
        schema.type,
        optional=optional,
        default=default,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        value_schema=schema.value_schema,
    )


class _Plan(NamedTuple):
    """The fields to copy from a struct, and the plans of the structs inside it."""

    copies: tuple[tuple[int, int, Any, bool], ...]
    """Index in the struct, index in the result, replacement of a null, and True if null is allowed."""

    inner: tuple[tuple[int, _Plan], ...]


def _plan(schema: Schema, leaves: list[_Leaf]) -> _Plan:
    positions = {leaf.path: at for at, leaf in enumerate(leaves)}

    def of(schema: Schema, path: tuple[int, ...]) -> _Plan:
        copies: list[tuple[int, int, Any, bool]] = []
        inner: list[tuple[int, _Plan]] = []
        for field in schema.fields:
            here = (*path, field.index)
            if field.schema.type is SchemaType.STRUCT:
                inner.append((field.index, of(field.schema, here)))
            else:
                leaf = leaves[positions[here]]
                copies.append((field.index, positions[here], leaf.source.default, leaf.target.optional))
        return _Plan(tuple(copies), tuple(inner))

    return of(schema, ())


def _fill(values: list[Any], plan: _Plan, source: list[Any], fields: tuple[Field, ...]) -> None:
    for index, position, default, optional in plan.copies:
        item = source[index]
        if item is None:
            item = default
            if item is None and not optional:
                raise null_in(fields[position])
        values[position] = item
    for index, inner in plan.inner:
        struct = source[index]
        if struct is not None:  # else its fields stay null: Connect applies the struct's default to the schema only
            _fill(values, inner, struct.values_, fields)


class FlattenKey(Flatten):
    """Flattens a record's nested key and joins the field names with a delimiter."""

    java_class = "org.apache.kafka.connect.transforms.Flatten$Key"
    part = "key"


class FlattenValue(Flatten):
    """Flattens a record's nested value and joins the field names with a delimiter."""

    java_class = "org.apache.kafka.connect.transforms.Flatten$Value"
    part = "value"

"""Builds structs of changed schemas for transforms (Connect's ``SchemaUtil``)."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from sluiceway.config.definition import ConfigKey, Importance
from sluiceway.config.definition import Type as ConfigType
from sluiceway.data import Field, Schema, Struct, Type
from sluiceway.errors import DataError, SchemaBuilderError

REPLACE_NULL_WITH_DEFAULT = ConfigKey(
    name="replace.null.with.default",
    type=ConfigType.BOOLEAN,
    default=True,
    importance=Importance.MEDIUM,
    doc="True replaces nulls in fields that have a default by the default; false leaves the nulls.",
)
_new = object.__new__


def struct_like(schema: Schema, fields: Iterable[tuple[str, Schema]], **attributes: Any) -> Schema:
    """Return a struct schema of these fields with the name, version, doc and parameters of another.

    Does not copy ``optional`` and ``default``; pass them as attributes. Raises SchemaBuilderError.
    """
    return struct_schema(
        fields, name=schema.name, version=schema.version, doc=schema.doc, parameters=schema.parameters, **attributes
    )


def struct_schema(fields: Iterable[tuple[str, Schema]], **attributes: Any) -> Schema:
    """Return a struct schema. Raises SchemaBuilderError for a duplicate or empty field name."""
    named: dict[str, Schema] = {}
    for name, schema in fields:
        if not name:
            raise SchemaBuilderError("fieldName cannot be null.")
        if name in named:
            raise SchemaBuilderError(f"Cannot create field because of field name duplication {name}")
        named[name] = schema
    return Schema.struct(named, **attributes)


def fields_of(schema: Schema) -> tuple[Field, ...]:
    """Return a struct schema's fields. Raises DataError for any other schema."""
    if schema.type is not Type.STRUCT:
        raise DataError("Cannot list fields on non-struct type")
    return schema.fields


def struct_of(schema: Schema, values: list[Any]) -> Struct:
    """Return a struct that keeps this list of values, one for each field in order, without checking them."""
    struct = _new(Struct)  # twice as fast as Struct.of
    struct.schema = schema
    struct.values_ = values
    return struct


class Nulls(NamedTuple):
    """Replaces nulls in a list of values, in a loop such as
    ``for at in nulls.positions: if values[at] is None: values[at] = nulls.fill(at)``.
    """

    positions: tuple[int, ...]
    """Positions where a null must be replaced or refused."""

    fill: Callable[[int], Any]
    """Returns the replacement of a null at a position; raises DataError if the field requires a value."""


def nulls_between(sources: Sequence[Field], targets: Sequence[Field], replace: bool) -> Nulls:
    """Return the replacements of nulls that are copied from source fields to target fields at the same positions."""
    defaults = {at: source.schema.default if replace else None for at, source in enumerate(sources)}
    kept = {at for at, target in enumerate(targets) if defaults[at] is None and target.schema.optional}

    def fill(at: int) -> Any:
        return _filled(defaults[at], targets[at])

    return Nulls(tuple(at for at in range(len(targets)) if at not in kept), fill)


def _filled(default: Any, target: Field) -> Any:
    """Return the replacement of a null. Raises DataError for a required field, and for a struct of another schema."""
    if default is None and not target.schema.optional:
        raise null_in(target)
    if isinstance(default, Struct) and default.schema != target.schema:
        raise DataError("Struct schemas do not match.")
    return default


def null_in(field: Field) -> DataError:
    """Return the error for a null in a field that requires a value."""
    kind = field.schema.type.name
    return DataError(f'Invalid value: null used for required field: "{field.name}", schema type: {kind}')


Function = Callable[[Any], Any]
_NO_FUNCTIONS: Mapping[int, Function] = MappingProxyType({})


def settler(
    sources: Sequence[Field],
    targets: Sequence[Field],
    replace: bool,
    functions: Mapping[int, Function] = _NO_FUNCTIONS,
    with_nulls: Container[int] = (),
) -> Callable[[list[Any]], None]:
    """Return a function that converts a list of one struct's values to another's in place, in the order of the fields.

    With ``replace`` a null becomes the source field's default. Then the function at that position is applied, to a null only
    if the position is in ``with_nulls``. The result raises DataError for a remaining null in a required field.
    """
    positions = sorted({*nulls_between(sources, targets, replace).positions, *functions})

    def fill(at: int) -> Any:
        item, function = sources[at].schema.default if replace else None, functions.get(at)
        if function is not None and (item is not None or at in with_nulls):
            item = function(item)
        return _filled(item, targets[at])

    # One generated line for each position is several times faster than a loop, and this runs for every record.
    lines = [
        f"    values[{at}] = fill({at}) if values[{at}] is None else function_{at}(values[{at}])"
        if at in functions
        else f"    if values[{at}] is None: values[{at}] = fill({at})"
        for at in positions
    ]
    names: dict[str, Any] = {"fill": fill, **{f"function_{at}": function for at, function in functions.items()}}
    exec("\n".join(["def settle(values):", *lines, "    return None"]), names)  # noqa: S102 (generated from numbers only)
    settle: Callable[[list[Any]], None] = names["settle"]
    return settle

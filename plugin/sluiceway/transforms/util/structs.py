"""Rebuilding structs: the parts that transforms share which give a record a struct of another schema."""

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
    doc="What becomes of a null in a field with a default: true puts the default there, false leaves the null.",
)
_new = object.__new__


def struct_like(schema: Schema, fields: Iterable[tuple[str, Schema]], **attributes: Any) -> Schema:
    """Return a struct schema of these fields with the name, version, doc and parameters of another.

    Of ``optional`` and ``default`` it has what is given, not what the other has. Raises SchemaBuilderError.
    """
    return struct_schema(
        fields, name=schema.name, version=schema.version, doc=schema.doc, parameters=schema.parameters, **attributes
    )


def struct_schema(fields: Iterable[tuple[str, Schema]], **attributes: Any) -> Schema:
    """Return a struct schema; raises SchemaBuilderError if two fields have one name, or one has none."""
    named: dict[str, Schema] = {}
    for name, schema in fields:
        if not name:
            raise SchemaBuilderError("fieldName cannot be null.")
        if name in named:
            raise SchemaBuilderError(f"Cannot create field because of field name duplication {name}")
        named[name] = schema
    return Schema.struct(named, **attributes)


def fields_of(schema: Schema) -> tuple[Field, ...]:
    """Return a struct schema's fields; raises DataError for any other schema."""
    if schema.type is not Type.STRUCT:
        raise DataError("Cannot list fields on non-struct type")
    return schema.fields


def struct_of(schema: Schema, values: list[Any]) -> Struct:
    """Return a struct that holds exactly this list, one value for each of the schema's fields in their order, unchecked."""
    struct = _new(Struct)  # what Struct.of does, in half the time
    struct.schema = schema
    struct.values_ = values
    return struct


class Nulls(NamedTuple):
    """What to do about nulls in a list of values, for a loop such as
    ``for at in nulls.positions: if values[at] is None: values[at] = nulls.fill(at)``.
    """

    positions: tuple[int, ...]
    """Where a null is not simply kept."""

    fill: Callable[[int], Any]
    """Returns what stands for a null at a position; raises DataError where there has to be a value."""


def nulls_between(sources: Sequence[Field], targets: Sequence[Field], replace: bool) -> Nulls:
    """Return what becomes of a null that is read from the one field and put into the other at the same position."""
    defaults = {at: source.schema.default if replace else None for at, source in enumerate(sources)}
    kept = {at for at, target in enumerate(targets) if defaults[at] is None and target.schema.optional}

    def fill(at: int) -> Any:
        return _filled(defaults[at], targets[at])

    return Nulls(tuple(at for at in range(len(targets)) if at not in kept), fill)


def _filled(default: Any, target: Field) -> Any:
    """Return what stands for a null; raises DataError where that is nothing, or a struct, whose own schema has no default."""
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
    """Return a function that makes a copy of one struct's values fit another: in place, and in the order of the fields.

    A null becomes the default of the field it was read from (with ``replace``); then comes the function for that position, to
    which a null is given only if the position is among ``with_nulls``. The result raises DataError for a null that is left
    where there has to be a value.
    """
    positions = sorted({*nulls_between(sources, targets, replace).positions, *functions})

    def fill(at: int) -> Any:
        item, function = sources[at].schema.default if replace else None, functions.get(at)
        if function is not None and (item is not None or at in with_nulls):
            item = function(item)
        return _filled(item, targets[at])

    # Written out, one line for each position: several times as quick as a loop over them, and every record passes here.
    lines = [
        f"    values[{at}] = fill({at}) if values[{at}] is None else function_{at}(values[{at}])"
        if at in functions
        else f"    if values[{at}] is None: values[{at}] = fill({at})"
        for at in positions
    ]
    names: dict[str, Any] = {"fill": fill, **{f"function_{at}": function for at, function in functions.items()}}
    exec("\n".join(["def settle(values):", *lines, "    return None"]), names)  # noqa: S102 (of nothing but numbers)
    settle: Callable[[list[Any]], None] = names["settle"]
    return settle

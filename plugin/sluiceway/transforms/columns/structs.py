"""Reads and builds arrays of structs, with the row form's rules for nulls in fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

import pyarrow as pa

from sluiceway.api.columns import ColumnBatch, NotColumnar
from sluiceway.columns.arrow_schema import arrow_type
from sluiceway.columns.constants import with_default
from sluiceway.columns.refused_values import in_field
from sluiceway.data import Field, Schema, Struct

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.util.columnar import ColumnFunction

    ArrayFunction = Callable[[AnyArray], AnyArray]


class FieldCopy(NamedTuple):
    """A field of a struct that becomes a field of another; ``function`` converts its values and leaves nulls."""

    source: Field
    target: Field
    function: ArrayFunction | None = None


def copies(
    sources: Iterable[Field], targets: Iterable[Field], functions: Sequence[ArrayFunction | None] | None = None
) -> list[FieldCopy]:
    """Return the copies of source fields to as many of the target fields."""
    pairs = list(zip(sources, targets, strict=False))
    return [FieldCopy(*pair, function) for pair, function in zip(pairs, functions or [None] * len(pairs), strict=True)]


def children_of(structs: AnyArray) -> list[AnyArray]:
    """Return the arrays of the fields, with nulls where the struct is null."""
    return list(cast(pa.StructArray, structs).flatten())


def copying(fields: Sequence[FieldCopy], changed: Schema, replace: bool) -> ColumnFunction:
    """Return the function that makes structs of ``changed`` of copied fields."""

    def copy(structs: AnyArray, _batch: ColumnBatch) -> AnyArray:
        return struct_array(changed, copied(structs, fields, replace), structs)

    return copy


def copied(structs: AnyArray, fields: Sequence[FieldCopy], replace: bool) -> list[AnyArray]:
    """Return the new arrays of copied fields, as ``settler`` does for the values of one struct.

    Raises NotColumnar for a null in a required field.
    """
    children = children_of(structs)
    return [_copied(children[field.source.index], structs.null_count, field, replace) for field in fields]


def _copied(values: AnyArray, null_structs: int, field: FieldCopy, replace: bool) -> AnyArray:
    if values.null_count > null_structs:
        default = field.source.schema.default if replace else None
        if default is not None:
            if isinstance(default, Struct) and default.schema != field.target.schema:
                raise NotColumnar("a default of another schema", field=field.source.name)
            values = with_default(values, field.source.schema, default)
        elif not field.target.schema.optional:
            raise NotColumnar("null in a required field", field=field.target.name)
    return values if field.function is None else in_field(field.source.name, field.function, values)


def struct_array(schema: Schema, children: Sequence[AnyArray], like: AnyArray) -> AnyArray:
    """Return structs of a schema made of its fields' arrays, null where those in ``like`` are.

    Raises NotColumnar for a field of another type, which only crossing renames can produce.
    """
    type_ = cast(pa.StructType, arrow_type(schema))
    if any(child.type != field.type for child, field in zip(children, type_, strict=True)):
        raise NotColumnar("a field's values have another type than the field")
    if not like.null_count:
        return pa.Array.from_buffers(type_, len(like), [None], 0, children=list(children))
    if not children:
        raise NotColumnar("null structs without fields")
    return pa.StructArray.from_arrays(children, fields=list(type_), mask=like.is_null())

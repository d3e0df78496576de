"""Columnar form of Flatten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sluiceway.api.columns import ColumnBatch, NotColumnar
from sluiceway.columns.constants import null_where, with_default
from sluiceway.data import Field, Schema, Type
from sluiceway.transforms.columns.structs import children_of, struct_array

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.util.columnar import ColumnFunction


class _Found(NamedTuple):
    """The values of a field that is no struct, and whether one is null in a struct that is not."""

    values: AnyArray
    has_null: bool


def flattening(schema: Schema, changed: Schema) -> ColumnFunction:
    """Return the function that makes structs of ``changed`` of the nested fields of structs, depth first."""

    def flatten(structs: AnyArray, _batch: ColumnBatch) -> AnyArray:
        found = list(_leaves(schema, structs))
        for leaf, field in zip(found, changed.fields, strict=True):
            if leaf.has_null and not field.schema.optional:
                raise NotColumnar("null in a required field", field=field.name)
        return struct_array(changed, [leaf.values for leaf in found], structs)

    return flatten


def _leaves(schema: Schema, structs: AnyArray) -> Iterator[_Found]:
    children = children_of(structs)
    for field in schema.fields:
        if field.schema.type is Type.STRUCT:
            yield from _leaves(field.schema, children[field.index])
        else:
            values = field_values(structs, field, field.schema.default, children)
            yield _Found(values, values.null_count > structs.null_count)


def field_values(structs: AnyArray, field: Field, default: Any, children: Sequence[AnyArray] | None = None) -> AnyArray:
    """Return a field's values, with ``default`` for nulls; null where the struct is null."""
    values = (children_of(structs) if children is None else children)[field.index]
    if default is None or values.null_count == structs.null_count:
        return values
    filled = with_default(values, field.schema, default)
    return null_where(filled, structs.is_null()) if structs.null_count else filled

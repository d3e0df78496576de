"""Columnar form of ExtractField."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sluiceway.api.columns import ColumnBatch, NotColumnar
from sluiceway.data import Field
from sluiceway.transforms.columns.flatten import field_values
from sluiceway.transforms.columns.structs import children_of

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray
    from sluiceway.transforms.util.columnar import ColumnFunction


def extracting(path: Sequence[Field], replace: bool) -> ColumnFunction:
    """Return the function that follows a path of fields. ``replace`` applies the last field's default."""
    *outer, last = path

    def extract(structs: AnyArray, _batch: ColumnBatch) -> AnyArray:
        for step in outer:
            inner = children_of(structs)[step.index]
            if step.schema.default is not None and inner.null_count > structs.null_count:
                raise NotColumnar("a default applies", field=step.name)
            structs = inner
        return field_values(structs, last, last.schema.default if replace else None)

    return extract

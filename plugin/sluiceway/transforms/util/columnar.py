"""Contains the base class of key and value transforms with a columnar form."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from sluiceway.api.columns import ColumnBatch, ColumnTransform, row_form
from sluiceway.api.transform import KeyOrValueTransform
from sluiceway.data import Schema

if TYPE_CHECKING:
    from sluiceway.api.columns import AnyArray

    ColumnFunction = Callable[[AnyArray, ColumnBatch], AnyArray]
    """Returns the new keys or values of a batch. Raises NotColumnar."""


class ColumnarTransform(KeyOrValueTransform):
    """A key or value transform with a columnar form. Its schemas are those of ``resolve`` and ``on_null``."""

    reads_records: ClassVar[bool] = False
    """True if the functions that ``resolve`` returns for schemaless values use the record."""

    @abc.abstractmethod
    def column_function(self, schema: Schema, changed: Schema) -> ColumnFunction | None:
        """Return the function from arrays of values of ``schema`` to arrays of the schema that ``resolve`` returned for it.

        Arrays contain nulls only if ``on_null`` returns the changed schema, too. None: there is no columnar form. Raises
        NotColumnar, too.
        """

    def column_transform(self, key_schema: Schema | None, value_schema: Schema | None) -> ColumnTransform | None:
        from sluiceway.transforms.columns.key_or_value import column_transform, schemaless_transform

        schema = key_schema if self.part == "key" else value_schema
        if schema is None:
            return schemaless_transform(self, reads_records=self.reads_records)
        with row_form():
            changed = self.resolve(schema).schema
        function = None if changed is None else self.column_function(schema, changed)
        return None if changed is None or function is None else column_transform(self, schema, changed, function)

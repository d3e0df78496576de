"""Contains the base class of transforms that change fields of a key or value."""

from __future__ import annotations

from typing import Any, ClassVar

from sluiceway.api.transform import ConnectRecord, Resolved
from sluiceway.data import Schema
from sluiceway.transforms.util.columnar import ColumnarTransform
from sluiceway.transforms.util.requirements import require_struct


class FieldTransform(ColumnarTransform):
    """A transform whose values with a schema must be Structs. ``purpose`` completes Connect's error messages."""

    purpose: ClassVar[str]

    def apply_to_other(self, value: Any, record: ConnectRecord, schema: Schema) -> Any:
        """Transform a value that is not a Struct of the record's ``schema``.

        Uses the schema of the Struct itself, as Connect does. Raises DataError for a value that is not a Struct.
        """
        struct = require_struct(value, schema, self.purpose)
        return self.resolve(struct.schema).function(struct, record)

    def refuse_schema(self, schema: Schema) -> Resolved:
        """Return the result for a schema that is not a struct: its error names the class of each value."""
        return Resolved(schema, lambda value, record: self.apply_to_other(value, record, schema))

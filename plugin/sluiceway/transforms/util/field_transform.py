"""The base of the transforms that work on the fields of a key or value."""

from __future__ import annotations

from typing import Any, ClassVar

from sluiceway.api.transform import ConnectRecord, KeyOrValueTransform, Resolved
from sluiceway.data import Schema
from sluiceway.transforms.util.requirements import require_struct


class FieldTransform(KeyOrValueTransform):
    """A transform that wants a Struct where there is a schema, and says in ``purpose`` what for."""

    purpose: ClassVar[str]

    def other(self, value: Any, record: ConnectRecord, schema: Schema) -> Any:
        """Return the result for a value that is not a Struct of ``schema``, the record's.

        Connect goes by the schema of the Struct itself; raises DataError for what is no Struct.
        """
        struct = require_struct(value, schema, self.purpose)
        return self.resolve(struct.schema).function(struct, record)

    def no_struct(self, schema: Schema) -> Resolved:
        """Return the answer for a schema that is not a struct's: which class it should not have been is up to the value."""
        return Resolved(schema, lambda value, record: self.other(value, record, schema))

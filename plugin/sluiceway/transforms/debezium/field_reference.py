"""Names fields of change events, such as ``op`` or ``source.ts_ms:sent``, that become fields or headers of records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sluiceway.data import Schema, Struct
from sluiceway.java.blanks import trim
from sluiceway.transforms.debezium.envelope import SOURCE, cast_to_struct, without_fields
from sluiceway.transforms.util.mappings import java_split

_STRUCTS: dict[str, str | None] = {
    **dict.fromkeys(("op", "ts_ms", "ts_us", "ts_ns"), None),
    **dict.fromkeys(("id", "data_collection_order", "total_order"), "transaction"),
    "updateDescription": "updateDescription",
}
"""The struct that has a field named without one, None for the change event itself; any other field is in ``source``."""


class Found(NamedTuple):
    """A referenced field of the change events of one schema."""

    name: str
    """The name in the record."""

    schema: Schema
    read: Callable[[Struct], Any]


class FieldReference(NamedTuple):
    """A field of change events. ``struct`` is the field that has it, None for the change event itself."""

    struct: str | None
    field: str
    name: str
    """The new name, with its prefix."""

    @classmethod
    def parse(cls, prefix: str, text: str) -> FieldReference:
        """Parse ``field``, ``struct.field`` or either with ``:name``. Raises ValueError, IndexError."""
        parts = java_split(text)
        path = java_split(parts[0], ".")
        field = path[0] if len(path) == 1 else path[1]
        struct = _STRUCTS.get(field, SOURCE) if len(path) == 1 else path[0]
        if len(parts) > 2:
            raise ValueError(f"Unexpected field name: {text}")
        own = field if len(path) == 1 else f"{struct}_{field}"
        return cls(struct, field, prefix + (parts[1] if len(parts) == 2 else own))

    def find(self, envelope: Schema) -> Found | None:
        """Return the field in change events of a schema, None if neither the struct nor the change event has it.

        Raises TypeError if the change events do not have the struct, DataError if it is none.
        """
        parent = envelope
        if self.struct is not None:
            container = envelope.field(self.struct)
            if container is None:
                raise TypeError(f"The change event has no field {self.struct}. Check the options add.fields and add.headers.")
            parent = container.schema
        field = parent.field(self.field) or envelope.field(self.field)
        return None if field is None else Found(self.name, without_fields(field.schema), self._read)

    def _read(self, value: Struct) -> Any:
        parent = value
        if self.struct is not None:
            inner = value.get_without_default(self.struct)
            if inner is None:  # such as the transaction during a snapshot
                return None
            parent = cast_to_struct(inner)
        return (value if parent.schema.field(self.field) is None else parent).get_without_default(self.field)


def field_references(prefix: str, text: str) -> list[FieldReference]:
    """Parse a list of references. Raises ValueError, IndexError."""
    return [FieldReference.parse(prefix, trim(each)) for each in java_split(text, ",")] if text else []

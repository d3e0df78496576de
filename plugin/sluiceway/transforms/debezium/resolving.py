"""Calls one of Kafka's transforms inside a Debezium transform, resolved once for each schema."""

from __future__ import annotations

from typing import Any

from sluiceway.api.transform import ConnectRecord, KeyOrValueTransform, Resolved
from sluiceway.data import Schema

_CACHED = 1000


class Delegate:
    """A configured transform of keys or values, as a function of schema and value."""

    def __init__(self, transform: KeyOrValueTransform, **options: str) -> None:
        """Configure the transform; ``_`` in an option's name stands for a dot."""
        transform.configure({name.replace("_", "."): value for name, value in options.items()})
        self._transform = transform
        self._resolved: dict[Schema | None, Resolved] = {}

    def __call__(self, schema: Schema | None, value: Any, record: ConnectRecord) -> tuple[Schema | None, Any]:
        """Return the new schema and value. Raises what the transform raises."""
        if value is None:
            return self._transform.on_null(schema)
        resolved = self._resolved.get(schema)
        if resolved is None:
            if len(self._resolved) >= _CACHED:
                self._resolved.clear()
            resolved = self._resolved[schema] = self._transform.resolve(schema)
        return resolved.schema, resolved.function(value, record)

"""Decides which schema a value is written with (``schema.compatibility``). No I/O."""

from __future__ import annotations

from collections.abc import Callable

from sluiceway.data import Schema
from sluiceway.errors import SchemaProjectorError


class CurrentSchemas:
    """The schemas of the open files, by topic. Versions are those of the schemas' names, which a Schema Registry counts."""

    def __init__(self, compatibility: str, check: Callable[[Schema | None], None] | None = None) -> None:
        """Take ``check``, which raises DataError for a schema that no file may have."""
        self._compatibility = compatibility
        self._check = check
        self._current: dict[str, Schema] = {}

    def target(self, topic: str, schema: Schema | None) -> Schema | None:
        """Return the schema of the file for a value: its own, or the one that it has to be projected to.

        Raises SchemaProjectorError if the schemas have no versions to compare, or if values with and without schemas alternate.
        """
        if self._check is not None:
            self._check(schema)
        if self._compatibility == "NONE" or schema is None:
            return schema
        current = self._current.get(topic)
        if current is schema:
            return schema
        if schema.version is None:
            raise SchemaProjectorError(f"Schema version required for {self._compatibility} compatibility")
        if current is None or self._replaces(schema.version, current.version or 0):
            self._current[topic] = current = schema
        return current

    def _replaces(self, version: int, current: int) -> bool:
        return version < current if self._compatibility == "FORWARD" else version > current

"""HeaderToValue: copies or moves headers into fields of the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sluiceway.api import Transform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef, Importance, Type, Width
from sluiceway.data import Schema
from sluiceway.errors import ConfigError
from sluiceway.java.blanks import trim
from sluiceway.transforms.debezium.envelope import RecentlyUsed
from sluiceway.transforms.debezium.nested_entries import Entry, schema_with, struct_with
from sluiceway.transforms.debezium.options import (
    Options,
    config_def,
    one_of,
    option,
    required,
    without_empty_elements,
    without_spaces,
)
from sluiceway.transforms.util.requirements import require_struct

_MOVE = "move"
_LISTED = (required, without_empty_elements, without_spaces)
_OPTIONS = (
    option(
        "headers",
        Type.LIST,
        "Header names list",
        "Names of the headers.",
        importance=Importance.HIGH,
        width=Width.NONE,
        checks=_LISTED,
    ),
    option(
        "fields",
        Type.LIST,
        "Field names list",
        "Names of the fields, one for each header, in the same order. Dots separate the structs around a field, as in after.x.",
        importance=Importance.HIGH,
        width=Width.NONE,
        checks=_LISTED,
    ),
    option(
        "operation",
        Type.STRING,
        "Operation: mover or copy",
        "copy keeps the headers; move removes them.",
        importance=Importance.HIGH,
        width=Width.NONE,
        checks=(required, one_of(_MOVE, "copy")),
    ),
)
_CONFIG = config_def(_OPTIONS)
_CACHED = 64


class HeaderToValue(Transform):
    """Copies or moves headers into fields of the value, which must be a struct."""

    java_class = "io.debezium.transforms.HeaderToValue"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = Options(_OPTIONS, config)
        options.require_valid()
        self._fields, self._headers = options.items("fields"), options.items("headers")
        if len(self._headers) != len(self._fields):
            raise ConfigError("'fields' config must have the same number of elements as 'headers' config.")
        self._move = trim(options.text("operation") or "").lower() == _MOVE
        self._schemas: RecentlyUsed[Schema, Schema] = RecentlyUsed(_CACHED)

    def apply(self, record: R) -> R | Sequence[R] | None:
        if record.value is None:
            return record
        value = require_struct(record.value, record.value_schema, "Header field insertion")
        entries = [
            Entry(self._fields[self._headers.index(header.key)], header.schema, header.value)
            for header in record.headers
            if header.key in self._headers
        ]
        if not entries:
            return record
        # As in Debezium, the first record of a schema decides which fields are added to all of them.
        schema = self._schemas.get(value.schema, lambda found: schema_with(found, entries))
        headers = record.headers
        if self._move:
            headers = tuple(header for header in headers if header.key not in self._headers)
        return record.new_record(value_schema=schema, value=struct_with(value, entries, schema), headers=headers)

"""Drops the fields that a header of the record lists from its key and value."""

from __future__ import annotations

from typing import Any

from sluiceway.api.transform import R
from sluiceway.data import Schema
from sluiceway.java.blanks import is_blank
from sluiceway.transforms.debezium.resolving import Delegate
from sluiceway.transforms.replace_field import ReplaceFieldKey, ReplaceFieldValue
from sluiceway.transforms.util.requirements import java_class
from sluiceway.transforms.util.structs import fields_of

_CACHED = 1000


class DroppedFields:
    """Drops fields named in the header ``header``; does nothing without a header name.

    With ``optional_only`` required fields stay, so that the schema remains compatible.
    """

    def __init__(self, header: str | None, *, from_key: bool, optional_only: bool) -> None:
        self._header = header
        self._from_key = from_key
        self._optional_only = optional_only
        self._delegates: dict[tuple[type, str], Delegate] = {}

    def apply(self, record: R) -> R:
        """Return the record without the fields. Raises TypeError if a schema is missing or the header is no list of text."""
        if self._header is None or is_blank(self._header):
            return record
        listed = next((header.value for header in record.headers if header.key == self._header), None)
        if listed is None:
            return record
        names = _texts(listed)
        if not names:
            return record
        if self._from_key and record.key is not None:
            schema, key = self._without(ReplaceFieldKey, names, record.key_schema, record.key, record)
            record = record.new_record(key_schema=schema, key=key)
        schema, value = self._without(ReplaceFieldValue, names, record.value_schema, record.value, record)
        return record.new_record(value_schema=schema, value=value)

    def _without(
        self, kind: type[ReplaceFieldKey | ReplaceFieldValue], names: list[str], schema: Schema | None, data: Any, record: Any
    ) -> tuple[Schema | None, Any]:
        dropped = self._droppable(schema, names) if self._optional_only else names
        if not dropped:
            return schema, data
        exclude = ",".join(dropped)
        delegate = self._delegates.get((kind, exclude))
        if delegate is None:
            if len(self._delegates) >= _CACHED:
                self._delegates.clear()
            delegate = self._delegates[kind, exclude] = Delegate(kind(), exclude=exclude)
        return delegate(schema, data, record)

    def _droppable(self, schema: Schema | None, names: list[str]) -> list[str]:
        if schema is None:
            raise TypeError(
                f"Cannot drop the fields in the header {self._header} from a key or value without a schema. "
                "Set drop.fields.keep.schema.compatible to false, or use a converter with schemas."
            )
        return [field.name for field in fields_of(schema) if field.schema.optional and field.name in names]


def _texts(listed: Any) -> list[str]:
    if not isinstance(listed, (list, tuple)) or not all(isinstance(each, str) for each in listed):
        raise TypeError(f"class {java_class(listed)} cannot be cast to a list of java.lang.String")
    return list(listed)

"""ExtractNewRecordState: replaces a change event by the row after the change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sluiceway.api import Transform
from sluiceway.api.transform import ConnectRecord, R
from sluiceway.config.definition import ConfigDef
from sluiceway.data import STRING_SCHEMA, Header, Schema, Struct
from sluiceway.data import Type as SchemaType
from sluiceway.java.blanks import is_blank, trim
from sluiceway.transforms.debezium.dropped_fields import DroppedFields
from sluiceway.transforms.debezium.envelope import (
    AFTER,
    BEFORE,
    DELETE,
    OPERATION,
    RecentlyUsed,
    cast_to_struct,
    is_envelope,
    require_values,
    typed,
)
from sluiceway.transforms.debezium.field_reference import FieldReference, Found, field_references
from sluiceway.transforms.debezium.options import Options, config_def
from sluiceway.transforms.debezium.record_state_options import OPTIONS, UNDOCUMENTED, Deletes
from sluiceway.transforms.debezium.resolving import Delegate
from sluiceway.transforms.extract_field import ExtractFieldValue
from sluiceway.transforms.insert_field import InsertFieldValue
from sluiceway.transforms.util.requirements import require_struct
from sluiceway.transforms.util.structs import struct_like

_DELETED = "__deleted"
_CONFIG = config_def(OPTIONS)
_CACHED = 64
_REWRITES = (Deletes.REWRITE, Deletes.REWRITE_WITH_TOMBSTONE)


class ExtractNewRecordState(Transform):
    """Replaces a change event by the row after the change, with fields of the event as fields or headers on request."""

    java_class = "io.debezium.transforms.ExtractNewRecordState"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = Options((*OPTIONS, *UNDOCUMENTED), config)
        options.require_all_valid(each.key.name for each in OPTIONS)
        self._fields = field_references(options.text("add.fields.prefix") or "", options.text("add.fields") or "")
        self._headers = field_references(options.text("add.headers.prefix") or "", options.text("add.headers") or "")
        self._route = options.text("route.by.field") or None
        self._deletes = Deletes(trim(options.text("delete.tombstone.handling.mode") or "").lower())
        self._dropped = DroppedFields(
            options.text("drop.fields.header.name"),
            from_key=options.flag("drop.fields.from.key"),
            optional_only=options.flag("drop.fields.keep.schema.compatible"),
        )
        replace = "true" if options.flag("replace.null.with.default") else "false"
        deleted = {"static_field": _DELETED, "replace_null_with_default": replace}
        self._after = Delegate(ExtractFieldValue(), field=AFTER)
        self._before = Delegate(ExtractFieldValue(), field=BEFORE)
        self._as_deleted = Delegate(InsertFieldValue(), static_value="true", **deleted)
        self._as_current = Delegate(InsertFieldValue(), static_value="false", **deleted)
        self._found: RecentlyUsed[tuple[Schema, bool], list[Found]] = RecentlyUsed(2 * _CACHED)
        self._updated: RecentlyUsed[tuple[Schema, str | None], Schema] = RecentlyUsed(_CACHED)

    def apply(self, record: R) -> R | Sequence[R] | None:
        if record.value is None:
            return self._of_tombstone(record)
        schema = record.value_schema
        if schema is None or not is_envelope(schema):
            return record
        if self._headers:
            value = cast_to_struct(record.value)
            added: list[Header] = [
                Header(each.name, each.read(value), each.schema) for each in self._find(value.schema, in_headers=True)
            ]
            record = record.new_record(headers=(*record.headers, *added))
        after_schema, after = self._after(schema, record.value, record)
        if after is not None:
            return self._of_row(record, after_schema, after)
        before_schema, before = self._before(schema, record.value, record)
        if before is None:  # the table was truncated
            return None
        return self._of_delete(record, after_schema, before_schema, before)

    def _event_headers(self, event: Struct) -> list[Header]:
        return [Header(each.name, each.read(event), each.schema) for each in self._find(event.schema, in_headers=True)]

    def _of_tombstone(self, record: R) -> R | None:
        if self._deletes is not Deletes.REWRITE_WITH_TOMBSTONE:
            return None
        added: list[Header] = [Header(each.name, DELETE, STRING_SCHEMA) for each in self._headers if each.field == OPERATION]
        return record.new_record(headers=(*record.headers, *added)) if added else record

    def _of_row(self, record: R, schema: Schema | None, row: Any) -> R:
        if self._deletes in _REWRITES and isinstance(row, Struct):
            schema, row = self._as_current(schema, row, record)
        topic = record.topic
        if self._route is not None:
            struct = require_struct(row, schema, "Read record to set topic routing for CREATE / UPDATE")
            topic = self._routed(struct, topic)
        schema, row = self._with_fields(record, schema, row)
        return self._dropped.apply(_changed(record, topic, schema, row))

    def _of_delete(self, record: R, after_schema: Schema | None, before_schema: Schema | None, before: Any) -> R | None:
        schema, row = after_schema, None
        if self._deletes is Deletes.DROP:
            return None
        if self._deletes is Deletes.DELETE_TO_TOMBSTONE:
            schema = None
        elif self._deletes in _REWRITES:
            schema, row = before_schema, before
            if isinstance(row, Struct):
                schema, row = self._as_deleted(schema, row, record)
        topic = record.topic
        if self._route is not None:
            value = require_struct(record.value, record.value_schema, "Read record to set topic routing for DELETE")
            topic = self._routed(typed(value, BEFORE, SchemaType.STRUCT), topic)
        changed = self._dropped.apply(_changed(record, topic, schema, row))
        if changed.value is None:
            return changed
        return _changed(changed, topic, *self._with_fields(record, changed.value_schema, changed.value))

    def _routed(self, row: Struct, topic: str) -> str:
        name = typed(row, self._route or "", SchemaType.STRING)
        return topic if name is None or is_blank(name) else str(name)

    def _with_fields(self, record: ConnectRecord, schema: Schema | None, row: Any) -> tuple[Schema, Struct]:
        """Return the row with the fields of ``add.fields``. The result is not optional and has no default."""
        struct = require_struct(row, schema, "source field insertion")
        event = cast_to_struct(record.value)
        operation = typed(event, OPERATION, SchemaType.STRING)
        found = self._find(event.schema, in_headers=False) if self._fields else []
        # As in Debezium, change events of the same row and operation share a schema even if their sources differ.
        updated = self._updated.get((struct.schema, operation), lambda _: _with_added(struct.schema, found))
        values = struct.values_ + [None] * (len(updated.fields) - len(struct.values_))
        row_of_values = require_values(updated, values)
        for each in found:
            row_of_values[each.name] = each.read(event)
        return updated, row_of_values

    def _find(self, envelope: Schema, *, in_headers: bool) -> list[Found]:
        references = self._headers if in_headers else self._fields
        return self._found.get((envelope, in_headers), lambda _: _all_found(references, envelope))


def _all_found(references: Sequence[FieldReference], envelope: Schema) -> list[Found]:
    return [found for each in references if (found := each.find(envelope)) is not None]


def _with_added(row: Schema, found: Sequence[Found]) -> Schema:
    return struct_like(
        row, [*((field.name, field.schema) for field in row.fields), *((each.name, each.schema) for each in found)]
    )


def _changed(record: R, topic: str, schema: Schema | None, value: Any) -> R:
    changed = record.with_data(record.key_schema, record.key, schema, value)
    changed.topic = topic
    return changed

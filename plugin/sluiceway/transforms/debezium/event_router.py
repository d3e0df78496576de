"""EventRouter: sends the rows of an outbox table as events to topics that a column names."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sluiceway.api import Transform
from sluiceway.api.transform import R
from sluiceway.config.definition import ConfigDef
from sluiceway.data import STRING_SCHEMA, Header, Schema, Struct, java_text
from sluiceway.data import Type as SchemaType
from sluiceway.errors import ConnectError
from sluiceway.java.blanks import is_blank, trim
from sluiceway.java.regex import compile_java
from sluiceway.transforms.debezium.envelope import (
    AFTER,
    DELETE,
    OPERATION,
    UPDATE,
    RecentlyUsed,
    is_envelope,
    typed,
)
from sluiceway.transforms.debezium.errors import IllegalStateError
from sluiceway.transforms.debezium.event_router_options import (
    ALL,
    CHECKED,
    OPTIONS,
    AdditionalField,
    Placement,
    additional_fields,
)
from sluiceway.transforms.debezium.json_payload import JsonPayloads, parse_json
from sluiceway.transforms.debezium.names import MODES, field_name_adjuster
from sluiceway.transforms.debezium.options import Options, config_def
from sluiceway.transforms.debezium.resolving import Delegate
from sluiceway.transforms.extract_field import ExtractFieldValue
from sluiceway.transforms.util.requirements import require_struct
from sluiceway.transforms.util.structs import struct_schema

log = logging.getLogger(__name__)

_CONFIG = config_def(OPTIONS)
_PAYLOAD = "payload"
_CACHED = 10_000
_PER_MILLI = {
    "io.debezium.time.Timestamp": 1,
    "io.debezium.time.MicroTimestamp": 1000,
    "io.debezium.time.NanoTimestamp": 1_000_000,
}


class _Event(NamedTuple):
    """A row of the outbox table."""

    row: Struct
    schema: Schema
    payload: Any
    payload_schema: Schema | None


class EventRouter(Transform):
    """Makes an event of each row inserted into an outbox table, and drops its updates and deletes."""

    java_class = "io.debezium.transforms.outbox.EventRouter"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return _CONFIG

    def configure(self, config: Mapping[str, str]) -> None:
        options = Options(ALL, config)
        options.require_valid(each.key.name for each in CHECKED)
        self._invalid = _choice(options, "table.op.invalid.behavior")
        self._id = options.text("table.field.event.id") or ""
        self._key = options.text("table.field.event.key") or ""
        self._payload = options.text("table.field.event.payload") or ""
        self._timestamp = options.text("table.field.event.timestamp")
        self._version = options.text("table.field.event.schema.version")
        self._route = options.text("route.by.field") or ""
        self._regex = compile_java(options.text("route.topic.regex") or "")
        self._replacement = options.text("route.topic.replacement") or ""
        self._tombstones = options.flag("route.tombstone.on.empty.payload")
        self._additional = additional_fields(options)
        self._ignores_missing = _choice(options, "table.field.additional.missing") == "ignore"
        self._in_envelope = any(each.placement is Placement.ENVELOPE for each in self._additional)
        self._json = _json_payloads(options) if options.flag("table.expand.json.payload") else None
        self._after = Delegate(ExtractFieldValue(), field=AFTER)
        self._schemas: RecentlyUsed[Schema, Schema] = RecentlyUsed(_CACHED)
        self._versions: dict[int | None, Schema] = {}

    def apply(self, record: R) -> R | Sequence[R] | None:
        if record.value is None:
            return None
        if not is_envelope(record.value_schema):
            return record
        value = require_struct(record.value, record.value_schema, "Detect Debezium Operation")
        operation = typed(value, OPERATION, SchemaType.STRING)
        if operation is None:
            raise TypeError("The change event has no operation.")
        if operation == DELETE:
            return None
        if operation == UPDATE:
            self._refuse_update(record.key)
            return None
        return self._event(record, value)

    def _refuse_update(self, key: Any) -> None:
        if self._invalid == "fatal":
            raise IllegalStateError(f"Unexpected update message received {java_text(key)}, fail.")
        log.log(logging.WARNING if self._invalid == "warn" else logging.ERROR, "An update of the outbox table was dropped.")

    def _event(self, record: R, value: Struct) -> R:
        schema, after = self._after(record.value_schema, record.value, record)
        row = require_struct(after, schema, "Read Outbox Event")
        schema = schema or row.schema
        payload_field = schema.field(self._payload)
        if payload_field is None:
            raise ConnectError(f"Unable to find payload field {self._payload} in event")
        timestamp = self._timestamp_of(value, row)
        event_id, payload = row[self._id], row[self._payload]
        id_field = schema.field(self._id)
        if id_field is None:
            raise ConnectError(f"Unable to find event-id field {self._id} in event")
        event = _Event(row, schema, *self._expanded(payload_field.schema, payload))
        headers: list[Header]
        headers, partition, envelope = self._placed(event)
        if self._tombstones and _is_empty(event.payload):
            new_schema, new_value = None, None
        elif envelope is None:
            new_schema, new_value = event.payload_schema, event.payload
        else:
            new_schema, new_value = envelope.schema, envelope
        key, topic = row[self._key], self._topic_of(row)
        key_field = schema.field(self._key)
        return record.new_record(
            topic=topic,
            kafka_partition=partition,
            key_schema=STRING_SCHEMA if key_field is None else key_field.schema,
            key=key,
            value_schema=new_schema,
            value=new_value,
            timestamp=timestamp,
            headers=(*record.headers, Header("id", event_id, id_field.schema), *headers),
        )

    def _topic_of(self, row: Struct) -> str:
        routed = typed(row, self._route, SchemaType.STRING)
        if routed is None:
            raise TypeError(f"The column {self._route}, which decides the topic, is null. Check the option route.by.field.")
        text = str(routed)
        return self._regex.replace_first(text, self._replacement) if self._regex.matches(text) else text

    def _timestamp_of(self, value: Struct, row: Struct) -> int | None:
        """Return the timestamp in milliseconds, of the column or else of the change event."""
        if self._timestamp is not None:
            field = row.schema.field(self._timestamp)
            if field is None:
                raise ConnectError(f"Unable to find timestamp field {self._timestamp} in event")
            timestamp = typed(row, self._timestamp, SchemaType.INT64)
            if timestamp is not None:
                name = field.schema.name
                if name is None:
                    raise ConnectError("Unsupported field type INT64 (without logical schema name) for event timestamp")
                if name not in _PER_MILLI:
                    raise ConnectError(f"Unsupported field type {name} for event timestamp")
                per_milli = _PER_MILLI[name]
                return -(-timestamp // per_milli) if timestamp < 0 else int(timestamp // per_milli)
        return typed(value, "ts_ms", SchemaType.INT64)  # type: ignore[no-any-return]

    def _expanded(self, schema: Schema, payload: Any) -> tuple[Any, Schema | None]:
        """Return the payload and its schema, parsed if it is JSON text and the config asks for it."""
        if self._json is None or not isinstance(payload, str):
            if self._json is not None and payload is not None:
                log.warning("Expand JSON payload is turned on but the payload is not a string.")
            return payload, schema
        inferred: Schema | None = schema
        try:
            document = parse_json(payload)
            inferred = self._json.schema_of(self._payload, document)
            return self._json.struct_of(document, inferred), inferred
        except (ConnectError, ValueError, TypeError, RecursionError) as error:
            log.warning("JSON expansion failed: %s", error)
        return payload, inferred  # as in Debezium, a text may have the schema of its JSON

    def _placed(self, event: _Event) -> tuple[list[Header], int | None, Struct | None]:
        """Return the headers and the partition that columns become, and the value with its fields if there is an envelope."""
        headers: list[Header] = []
        partition: int | None = None
        envelope = self._envelope(event)
        for each in self._additional:
            if self._ignores_missing and event.row.schema.field(each.column) is None:
                continue
            if each.placement is None:
                raise TypeError(f"The column {each.column} has an unknown placement: use header, envelope or partition.")
            if each.placement is Placement.PARTITION:
                partition = typed(event.row, each.column, SchemaType.INT32)
                continue
            value = event.row[each.column]
            if each.placement is Placement.HEADER:
                headers.append(Header(each.name, value, _column_schema(event.schema, each)))
            elif envelope is not None:
                envelope[each.name] = value
        return headers, partition, envelope

    def _envelope(self, event: _Event) -> Struct | None:
        """Return the struct with the payload, None if no column goes beside it."""
        if not self._in_envelope:
            return None
        if self._version is None:
            topic = typed(event.row, self._route, SchemaType.STRING)
            if event.payload_schema is None:
                raise TypeError("The payload has no schema.")
            # As in Debezium, the first event of a payload schema decides the schema of all of them, with its topic in the name.
            schema = self._schemas.get(event.payload_schema, lambda _: self._schema(event, topic))
        else:
            version = typed(event.row, self._version, SchemaType.INT32)
            topic = typed(event.row, self._route, SchemaType.STRING)
            if version not in self._versions:
                self._versions[version] = self._schema(event, topic).replace(version=version)
            schema = self._versions[version]
        return Struct(schema).put(_PAYLOAD, event.payload)

    def _schema(self, event: _Event, topic: str | None) -> Schema:
        if event.payload_schema is None:
            raise TypeError("The payload has no schema.")
        fields = [(_PAYLOAD, event.payload_schema)]
        for each in self._additional:
            if each.placement is Placement.ENVELOPE:
                field = event.schema.field(each.column)
                if field is not None:
                    fields.append((each.name, field.schema))
                elif not self._ignores_missing:
                    raise ConnectError(f"Unable to find field {each.column} in event")
        return struct_schema(fields, name=_schema_name(event.schema.name, topic))


def _choice(options: Options, name: str) -> str:
    return trim(options.text(name) or "").lower()


def _json_payloads(options: Options) -> JsonPayloads:
    mode = _choice(options, "field.name.adjustment.mode")
    if mode not in MODES:
        raise TypeError(f"field.name.adjustment.mode must be one of {', '.join(MODES)}.")
    return JsonPayloads(
        nulls_as_bytes=_choice(options, "table.json.payload.null.behavior") == "optional_bytes",
        empty_as_text=_choice(options, "table.json.payload.empty.array.behavior") == "optional_string",
        field_name=field_name_adjuster(mode),
    )


def _schema_name(name: str | None, topic: str | None) -> str:
    """Return the name of the table's schema with the topic before the last part."""
    if name is None:
        return java_text(topic)
    head, dot, tail = name.rpartition(".")
    return f"{head}{dot}{java_text(topic)}.{tail}"


def _column_schema(schema: Schema, column: AdditionalField) -> Schema:
    field = schema.field(column.column)
    if field is None:
        raise TypeError(f"The event has no column {column.column}.")
    return field.schema


def _is_empty(payload: Any) -> bool:
    return payload is None or (isinstance(payload, str) and is_blank(payload))

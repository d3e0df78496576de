"""Defines the schemas of Debezium's records: envelope, transaction block, heartbeat, transaction and notification. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from sluiceway.data import Schema, Type
from sluiceway.data.schema import (
    INT64_SCHEMA,
    OPTIONAL_INT64_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
)

_COMMON = "io.debezium.connector.common."

READ, CREATE, UPDATE, DELETE, TRUNCATE, MESSAGE = "r", "c", "u", "d", "t", "m"

FIRST, FIRST_IN_TABLE, TRUE, LAST_IN_TABLE, LAST = "first", "first_in_data_collection", "true", "last_in_data_collection", "last"
INCREMENTAL = "incremental"

SNAPSHOT_SCHEMA = Schema(
    Type.STRING,
    name="io.debezium.data.Enum",
    version=1,
    optional=True,
    default="false",
    parameters={"allowed": "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"},
)

TRANSACTION_BLOCK = Schema.struct(
    [("id", STRING_SCHEMA), ("total_order", INT64_SCHEMA), ("data_collection_order", INT64_SCHEMA)],
    name="event.block",
    version=1,
    optional=True,
)

HEARTBEAT_KEY = Schema.struct([("serverName", STRING_SCHEMA)], name=f"{_COMMON}ServerNameKey", version=1)
HEARTBEAT_VALUE = Schema.struct([("ts_ms", INT64_SCHEMA)], name=f"{_COMMON}Heartbeat", version=1)

TRANSACTION_KEY = Schema.struct([("id", STRING_SCHEMA)], name=f"{_COMMON}TransactionMetadataKey", version=1)
COLLECTION = Schema.struct(
    [("data_collection", STRING_SCHEMA), ("event_count", INT64_SCHEMA)], name="event.collection", version=1, optional=True
)
TRANSACTION_VALUE = Schema.struct(
    [
        ("status", STRING_SCHEMA),
        ("id", STRING_SCHEMA),
        ("event_count", OPTIONAL_INT64_SCHEMA),
        ("data_collections", Schema.array(COLLECTION, optional=True)),
        ("ts_ms", INT64_SCHEMA),
    ],
    name=f"{_COMMON}TransactionMetadataValue",
    version=1,
)

NOTIFICATION_KEY = Schema.struct([("id", STRING_SCHEMA)], name=f"{_COMMON}NotificationKey", version=1)
NOTIFICATION_VALUE = Schema.struct(
    [
        ("id", STRING_SCHEMA),
        ("type", STRING_SCHEMA),
        ("aggregate_type", STRING_SCHEMA),
        ("additional_data", Schema.map(STRING_SCHEMA, STRING_SCHEMA, optional=True)),
        ("timestamp", INT64_SCHEMA),
    ],
    name=f"{_COMMON}Notification",
    version=1,
)


def source_schema(name: str, fields: Iterable[tuple[str, Schema]]) -> Schema:
    """Return the schema of a connector's source block: the common fields, then the connector's own."""
    common = [
        ("version", STRING_SCHEMA),
        ("connector", STRING_SCHEMA),
        ("name", STRING_SCHEMA),
        ("ts_ms", INT64_SCHEMA),
        ("snapshot", SNAPSHOT_SCHEMA),
        ("db", STRING_SCHEMA),
        ("sequence", OPTIONAL_STRING_SCHEMA),
        ("ts_us", OPTIONAL_INT64_SCHEMA),
        ("ts_ns", OPTIONAL_INT64_SCHEMA),
    ]
    return Schema.struct([*common, *fields], name=name, version=1)


def envelope_schema(name: str, row: Schema, source: Schema) -> Schema:
    """Return the schema of a table's change events. ``row`` is the optional schema of its rows."""
    fields = [
        ("before", row),
        ("after", row),
        ("source", source),
        ("transaction", TRANSACTION_BLOCK),
        ("op", STRING_SCHEMA),
        ("ts_ms", OPTIONAL_INT64_SCHEMA),
        ("ts_us", OPTIONAL_INT64_SCHEMA),
        ("ts_ns", OPTIONAL_INT64_SCHEMA),
    ]
    return Schema.struct(fields, name=name, version=2)

"""Makes the records of logical messages (``pg_logical_emit_message``). No I/O but the clock."""

from __future__ import annotations

import time

from sluiceway.api import Offset, SourceRecord
from sluiceway.connectors.cdc.envelope import MESSAGE, TRANSACTION_BLOCK
from sluiceway.connectors.cdc.postgres.source import SOURCE
from sluiceway.data import Schema, Struct
from sluiceway.data.schema import OPTIONAL_BYTES_SCHEMA, OPTIONAL_INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA

_NAME = "io.debezium.connector.postgresql.Message"
_CONTENT = Schema.struct([("prefix", OPTIONAL_STRING_SCHEMA), ("content", OPTIONAL_BYTES_SCHEMA)], name=_NAME, version=1)
_KEY = Schema.struct([("prefix", OPTIONAL_STRING_SCHEMA)], name=f"{_NAME}Key", version=1)
_VALUE = Schema.struct(
    [
        ("op", STRING_SCHEMA),
        ("ts_ms", OPTIONAL_INT64_SCHEMA),
        ("source", SOURCE),
        ("transaction", TRANSACTION_BLOCK),
        ("message", _CONTENT),
    ],
    name=f"{_NAME}Value",
    version=1,
)


def message_record(
    topic: str, partition: dict[str, str], prefix: str, content: bytes, source: Struct, transaction: Struct | None, offset: Offset
) -> SourceRecord:
    """Return the record of a logical message."""
    message = Struct.of(_CONTENT, [prefix, content])
    value = Struct.of(_VALUE, [MESSAGE, time.time_ns() // 1_000_000, source, transaction, message])
    return SourceRecord(partition, offset, topic, value, _VALUE, Struct.of(_KEY, [prefix]), _KEY)

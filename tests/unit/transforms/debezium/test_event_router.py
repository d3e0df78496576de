from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import SourceRecord
from sluiceway.data import OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Header, Schema, Struct, Type
from sluiceway.errors import ConnectError
from sluiceway.transforms.debezium.event_router import EventRouter
from unit.transforms.transforming import configured, plain

ROW = Schema.struct(
    {
        "id": STRING_SCHEMA,
        "aggregatetype": STRING_SCHEMA,
        "aggregateid": STRING_SCHEMA,
        "type": STRING_SCHEMA,
        "payload": OPTIONAL_STRING_SCHEMA,
    },
    name="db.public.outbox.Value",
    optional=True,
)
EVENT = Schema.struct(
    {"before": ROW, "after": ROW, "op": STRING_SCHEMA, "ts_ms": Schema(Type.INT64, optional=True)},
    name="db.public.outbox.Envelope",
)


def inserted(payload: Any, operation: str = "c") -> SourceRecord:
    row = Struct.of(ROW, ["e1", "order", "7", "OrderCreated", payload])
    return SourceRecord({}, {}, "db.public.outbox", Struct.of(EVENT, [None, row, operation, 99]), EVENT)


def routed(payload: Any, **options: str) -> SourceRecord:
    record = configured(EventRouter, **options).apply(inserted(payload))
    assert isinstance(record, SourceRecord)
    return record


def test_a_row_becomes_an_event_in_the_topic_of_its_type() -> None:
    record = routed("hello")
    assert (record.topic, record.key, record.value, record.timestamp) == ("outbox.event.order", "7", "hello", 99)
    assert record.headers == (Header("id", "e1", STRING_SCHEMA),)


def test_json_text_becomes_a_struct() -> None:
    record = routed('{"a": 1, "b": {"c": [true]}, "n": null}', table_expand_json_payload="true")
    assert record.value["a"] == 1
    assert record.value["b"]["c"] == [True]
    assert "n" not in record.value
    assert routed("no json", table_expand_json_payload="true").value == "no json"


def test_columns_go_into_headers_the_envelope_and_the_partition() -> None:
    record = routed("p", table_fields_additional_placement="type:header:kind,type:envelope:eventType")
    assert plain(record.value) == {"payload": "p", "eventType": "OrderCreated"}
    assert record.headers[1] == Header("kind", "OrderCreated", STRING_SCHEMA)
    assert record.value.schema.name == "db.public.outbox.order.Value"


def test_an_empty_payload_becomes_a_tombstone_on_request() -> None:
    assert routed(" ", route_tombstone_on_empty_payload="true").value_schema is None
    assert routed(" ").value == " "


def test_deletes_tombstones_and_updates_are_dropped() -> None:
    transform = configured(EventRouter)
    assert [transform.apply(inserted("p", operation)) for operation in "du"] == [None, None]
    assert transform.apply(SourceRecord({}, {}, "t", None)) is None
    with pytest.raises(ConnectError, match="Unexpected update message received null, fail"):
        configured(EventRouter, table_op_invalid_behavior="fatal").apply(inserted("p", "u"))


def test_a_missing_column_is_an_error_with_its_name() -> None:
    with pytest.raises(ConnectError, match="Unable to find payload field body in event"):
        routed("p", table_field_event_payload="body")

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import SinkRecord
from sluiceway.data import INT32_SCHEMA, INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Header, Schema, Struct, Type
from sluiceway.errors import ConfigError, ConnectError
from sluiceway.transforms.debezium.extract_new_record_state import ExtractNewRecordState
from unit.transforms.transforming import configured, plain

ROW = Schema.struct({"id": INT32_SCHEMA, "name": OPTIONAL_STRING_SCHEMA}, name="shop.people.Value", optional=True)
SOURCE = Schema.struct({"table": STRING_SCHEMA, "ts_ms": INT64_SCHEMA}, name="Source")
EVENT = Schema.struct(
    {"before": ROW, "after": ROW, "source": SOURCE, "op": STRING_SCHEMA, "ts_ms": Schema(Type.INT64, optional=True)},
    name="shop.people.Envelope",
)
MODE = "delete.tombstone.handling.mode"


def event(operation: str, before: Any = None, after: Any = None) -> SinkRecord:
    rows = [None if row is None else Struct(ROW, {"id": row[0], "name": row[1]}) for row in (before, after)]
    source = Struct(SOURCE, {"table": "people", "ts_ms": 5})
    return SinkRecord("people", 0, 1, Struct.of(EVENT, [*rows, source, operation, 7]), EVENT)


def unwrapped(record: SinkRecord, **options: str) -> SinkRecord:
    result = configured(ExtractNewRecordState, **options).apply(record)
    assert isinstance(result, SinkRecord)
    return result


def test_a_change_becomes_the_new_row_with_a_required_schema() -> None:
    record = unwrapped(event("u", (1, "a"), (1, "b")))
    assert plain(record.value) == {"id": 1, "name": "b"}
    assert record.value_schema == ROW.replace(optional=False)


def test_fields_and_headers_of_the_event_are_added() -> None:
    record = unwrapped(event("c", None, (1, "a")), add_fields="op,table,source.ts_ms,ts_ms:sent", add_headers="op")
    assert plain(record.value) == {"id": 1, "name": "a", "__op": "c", "__table": "people", "__source_ts_ms": 5, "__sent": 7}
    assert record.headers == (Header("__op", "c", OPTIONAL_STRING_SCHEMA),)


@pytest.mark.parametrize(
    ("mode", "value", "has_schema"),
    [
        ("tombstone", None, True),
        ("delete-to-tombstone", None, False),
        ("rewrite", {"id": 1, "name": "a", "__deleted": "true"}, True),
        ("rewrite-with-tombstone", {"id": 1, "name": "a", "__deleted": "true"}, True),
    ],
)
def test_a_delete(mode: str, value: Any, has_schema: bool) -> None:
    transform = ExtractNewRecordState()
    transform.configure({MODE: mode})
    record = transform.apply(event("d", (1, "a")))
    assert isinstance(record, SinkRecord)
    assert (value if record.value is None else plain(record.value)) == value
    assert (record.value_schema is not None) is has_schema


@pytest.mark.parametrize(
    ("mode", "kept"),
    [("drop", 0), ("tombstone", 0), ("rewrite", 0), ("rewrite-with-tombstone", 1), ("delete-to-tombstone", 0)],
)
def test_the_tombstone_after_a_delete(mode: str, kept: int) -> None:
    transform = ExtractNewRecordState()
    transform.configure({MODE: mode, "add.headers": "op"})
    record = transform.apply(SinkRecord("people", 0, 1, None))
    assert (record is not None) == bool(kept)
    if isinstance(record, SinkRecord):
        assert record.headers == (Header("__op", "d", STRING_SCHEMA),)


def test_other_records_pass_and_truncations_are_dropped() -> None:
    transform = configured(ExtractNewRecordState)
    other = SinkRecord("people", 0, 1, {"after": None})
    assert transform.apply(other) is other
    assert transform.apply(event("t")) is None


def test_a_column_routes_and_a_header_drops_fields() -> None:
    record = event("c", None, (1, "a")).new_record(headers=(Header("drop", ["name"], Schema.array(STRING_SCHEMA)),))
    changed = unwrapped(record, route_by_field="name", drop_fields_header_name="drop")
    assert (changed.topic, plain(changed.value)) == ("a", {"id": 1})


def test_the_record_itself_does_not_change() -> None:
    record = event("c", None, (1, "a"))
    unwrapped(record, add_headers="op", add_fields="op")
    assert (record.headers, record.value.schema) == ((), EVENT)


def test_an_unknown_mode_is_refused_by_validation_and_by_the_transform() -> None:
    definition = ExtractNewRecordState.config_def()
    assert "Value must be one of" in definition.validate({MODE: "x"})[MODE].errors[0]
    with pytest.raises(ConnectError, match=r"^Unable to validate config\.$"):
        ExtractNewRecordState().configure({MODE: "x"})
    with pytest.raises(ConfigError):
        definition.parse({MODE: "x"})

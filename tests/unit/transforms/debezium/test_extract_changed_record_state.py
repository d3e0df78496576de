"""ExtractChangedRecordState beyond single records, which the recorded cases have: a delete and its tombstone."""

from __future__ import annotations

import pytest

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.data import Header, Schema, Struct
from sluiceway.data.schema import INT32_SCHEMA, STRING_SCHEMA
from sluiceway.transforms.debezium.extract_changed_record_state import ExtractChangedRecordState

_ROW = Schema.struct([("id", INT32_SCHEMA)], name="t.Value", optional=True)
_ENVELOPE = Schema.struct([("before", _ROW), ("after", _ROW), ("op", STRING_SCHEMA)], name="t.Envelope")
_OWN = (Header("own", 1, INT32_SCHEMA),)


def _change(op: str, key: int) -> SourceRecord:
    row = Struct.of(_ROW, [key])
    value = Struct.of(_ENVELOPE, [None if op == "c" else row, None if op == "d" else row, op])
    return SourceRecord({}, {}, "t", value, _ENVELOPE, key, INT32_SCHEMA, headers=_OWN)


def _tombstone(key: int, topic: str = "t") -> SourceRecord:
    return SourceRecord({}, {}, topic, None, None, key, INT32_SCHEMA, headers=_OWN)


def _transform(**names: str) -> ExtractChangedRecordState:
    transform = ExtractChangedRecordState()
    transform.configure({f"header.{name}.name": value for name, value in names.items()})
    return transform


def _headers(transform: ExtractChangedRecordState, *records: SourceRecord) -> list[list[str]]:
    return [[header.key for header in transform.apply(record).headers] for record in records]  # type: ignore[union-attr]


def test_a_tombstone_has_the_headers_of_its_delete() -> None:
    transform = _transform(changed="changed", unchanged="unchanged")
    all_three = ["own", "changed", "unchanged"]
    assert _headers(transform, _change("d", 1), _tombstone(1), _change("c", 1)) == [all_three] * 3


@pytest.mark.parametrize(
    "records",
    [
        [_tombstone(1)],
        [_change("d", 2), _tombstone(1)],
        [_change("d", 1), _tombstone(1, "other")],
        [_change("d", 1), _change("c", 1), _tombstone(1)],
        [_change("d", 1), _tombstone(1), _tombstone(1)],
        [_change("u", 1), _tombstone(1)],
    ],
)
def test_other_tombstones_stay_as_they_are(records: list[SourceRecord]) -> None:
    assert _headers(_transform(changed="changed"), *records)[-1] == ["own"]


def test_a_tombstone_stays_as_it_is_without_headers_to_add() -> None:
    assert _headers(_transform(), _change("d", 1), _tombstone(1))[-1] == ["own"]


def test_a_sinks_records_are_not_related() -> None:
    transform = _transform(changed="changed")
    transform.apply(_change("d", 1))
    record = SinkRecord("t", 0, 5, None, None, 1, INT32_SCHEMA)
    assert transform.apply(record) is record

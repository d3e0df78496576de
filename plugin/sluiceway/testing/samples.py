"""Sample records of many types, for the contracts of transforms and predicates."""

from __future__ import annotations

import datetime as dt

from sluiceway.api import ConnectRecord, SinkRecord, SourceRecord
from sluiceway.data import FLOAT64_SCHEMA, INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Header, Schema, Struct, Type
from sluiceway.data.instant import Instant

_ADDRESS = Schema.struct({"city": STRING_SCHEMA, "zip": OPTIONAL_STRING_SCHEMA}, name="example.Address")
_PERSON = Schema.struct(
    {
        "id": INT64_SCHEMA,
        "name": STRING_SCHEMA,
        "score": FLOAT64_SCHEMA,
        "nick": OPTIONAL_STRING_SCHEMA,
        "tags": Schema.array(STRING_SCHEMA),
        "address": _ADDRESS,
    },
    name="example.Person",
    version=1,
)
_ID = Schema.struct({"id": INT64_SCHEMA})
_HEADERS = (Header("trace", "a", STRING_SCHEMA), Header("trace", "b", STRING_SCHEMA), Header("hops", 3, INT64_SCHEMA))


def _person(number: int) -> Struct:
    address = Struct(_ADDRESS, {"city": "Grange", "zip": None})
    values = {"id": number, "name": f"n{number}", "score": 0.5, "nick": None, "tags": ["x", "y"], "address": address}
    return Struct(_PERSON, values)


def _map(number: int) -> dict[str, object]:
    return {"id": number, "name": f"n{number}", "nick": None, "tags": ["x"], "address": {"city": "Grange"}}


def source_records() -> list[SourceRecord]:
    """Return new source records: structs, maps, strings, numbers, bytes and nulls, with and without a schema."""
    partition = {"table": "people"}

    def record(position: int, value: object, schema: Schema | None, **more: object) -> SourceRecord:
        return SourceRecord(partition, {"position": position}, "people", value, schema, **more)  # type: ignore[arg-type]

    return [
        record(1, _person(1), _PERSON, key=Struct(_ID, {"id": 1}), key_schema=_ID, headers=_HEADERS, timestamp=1_700_000_000_000),
        record(2, _person(2), _PERSON, key=Struct(_ID, {"id": 2}), key_schema=_ID, kafka_partition=0),
        record(3, _map(3), None, key={"id": 3}, timestamp=0),
        record(4, _map(4), None, key="4"),
        record(5, "text", STRING_SCHEMA, key="k", key_schema=STRING_SCHEMA),
        record(6, "text", None, key=6),
        record(7, 2**40, INT64_SCHEMA, key=7, key_schema=INT64_SCHEMA),
        record(8, b"\x00\xff", Schema(Type.BYTES)),
        record(9, ["a", None], Schema.array(OPTIONAL_STRING_SCHEMA)),
        record(10, {"a": 1}, Schema.map(STRING_SCHEMA, INT64_SCHEMA)),
        record(11, dt.datetime(2024, 2, 29, tzinfo=dt.timezone.utc), None),
        record(12, Instant(2**53), None),  # outside the range of datetime
        record(13, None, None, key="tombstone"),
        record(14, None, OPTIONAL_STRING_SCHEMA, key=None, key_schema=OPTIONAL_STRING_SCHEMA),
    ]


def sink_records() -> list[SinkRecord]:
    """Return the same samples as sink records. The last one was routed to another topic by a transform."""
    records = [
        SinkRecord(one.topic, 0, position, one.value, one.value_schema, one.key, one.key_schema, one.timestamp, 1, one.headers)
        for position, one in enumerate(source_records())
    ]
    return [*records, records[0].new_record(topic="elsewhere", kafka_partition=5)]


def all_records() -> list[ConnectRecord]:
    """Return the source records and the sink records."""
    return [*source_records(), *sink_records()]

"""Configs and records for each of Debezium's transforms, for comparisons of the published classes with ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from sluiceway.api import SourceRecord
from sluiceway.data import OPTIONAL_INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, Schema, Struct, Type, timestamp_schema
from support.debezium_events import Events

Config = Mapping[str, str]


def _named(type_: Type, name: str, *, optional: bool = True) -> Schema:
    return Schema(type_, optional=optional, name=name, version=1)


_TIMES = {
    "t1": _named(Type.INT64, "io.debezium.time.Timestamp"),
    "t2": _named(Type.INT64, "io.debezium.time.MicroTimestamp"),
    "t3": _named(Type.INT64, "io.debezium.time.NanoTimestamp"),
    "t4": _named(Type.STRING, "io.debezium.time.ZonedTimestamp"),
    "n": OPTIONAL_INT64_SCHEMA,
}
_MORE_TIMES = {
    **_TIMES,
    "t5": _named(Type.STRING, "io.debezium.time.ZonedTime", optional=False),
    "t6": timestamp_schema(optional=True),
    "t7": _named(Type.INT32, "io.debezium.time.Date"),
    "t8": _named(Type.INT32, "some.Other"),
}
_OUTBOX = {**_TIMES, "payload": _named(Type.STRING, "io.debezium.data.Json")}


def _each(base: Config, *changes: Config) -> Iterator[Config]:
    yield base
    for change in changes:
        yield {**base, **change}


def _with(base: Config, option: str, *values: str) -> Iterator[Config]:
    for value in values:
        yield {**base, option: value}


_MODE = "delete.tombstone.handling.mode"
_REWRITE = {_MODE: "rewrite"}
_ADD = {"add.fields": "op,table,source.ts_ms,source.db:database,transaction.id,total_order,lsn,ts_us"}
_HEADERS = {"add.headers": "op,source.snapshot,ts_ms:sent,connector,id", "add.headers.prefix": "H-"}
_DROP = {"drop.fields.header.name": "drop"}
_FROM_KEY = {"drop.fields.from.key": "true"}
_ALL_FIELDS = {"drop.fields.keep.schema.compatible": "false"}


def _new_record_state() -> Iterator[Config]:
    yield from _each({}, _ADD, _HEADERS, {**_ADD, **_REWRITE}, {**_HEADERS, _MODE: "drop"})
    yield from _with(
        {}, _MODE, "drop", "tombstone", "rewrite", "rewrite-with-tombstone", "delete-to-tombstone", " REWRITE ", "x", ""
    )
    yield {**_ADD, **_HEADERS, _MODE: "rewrite-with-tombstone", "add.fields.prefix": ""}
    names = (
        "before",
        "source",
        "a:b:c",
        ".",
        ":",
        "op,op",
        " , ",
        "a.b.c",
        "op:",
        "before.id,after.name,none,source.none,nowhere.x",
    )
    yield from _with({}, "add.fields", *names)
    yield {"add.fields": "op:name", "add.fields.prefix": ""}
    yield {"add.headers": "source,transaction,op.x"}
    yield from _with({}, "route.by.field", "name", "id")
    yield from _with(_REWRITE, "route.by.field", "name", "none")
    yield from _each(
        _DROP, {**_REWRITE, **_ADD}, {_MODE: "delete-to-tombstone"}, {**_REWRITE, **_FROM_KEY, **_ALL_FIELDS}, _FROM_KEY
    )
    yield {"drop.fields.header.name": " "}
    yield {"drop.fields.from.key": "maybe"}
    yield from _with(_REWRITE, "replace.null.with.default", "false", "x")
    yield {"delete.handling.mode": "rewrite", "drop.tombstones": "false"}


_TOPIC = {"topic.regex": r"(.*)\.public\.orders.*", "topic.replacement": "$1.all"}
_ANY_TOPIC = {"topic.regex": "(.*)", "topic.replacement": "9-é😀_$1"}
_SIZE, _ADJUST = "logical.destination.cache.size", "schema.name.adjustment.mode"


def _routers() -> Iterator[Config]:
    keys = {"key.field.regex": r".*_(..)", "key.field.replacement": "$1"}
    yield from _each(_TOPIC, {"key.enforce.uniqueness": "false"}, keys)
    yield from _with(_TOPIC, "key.field.regex", ".*_(..)", "(", " ")
    yield from _with(_TOPIC, "key.field.name", "id", "")
    yield from _with(_TOPIC, _SIZE, "1", "0", "x")
    yield from _with(_TOPIC, "logical.table.cache.size", "1", "x")
    yield from _with(_ANY_TOPIC, _ADJUST, "none", " Avro", "avro_unicode", "x")
    yield from _with(_ANY_TOPIC, "topic.replacement", "same", "", "$2")
    yield {**_ANY_TOPIC, "topic.replacement": "same", _SIZE: "1"}
    yield from ({}, {"topic.regex": ".*"}, {"topic.regex": "(", "topic.replacement": "x"})


_COPY = {"headers": "h1,h2", "fields": "f1,after.f2", "operation": "copy"}


def _header_to_value() -> Iterator[Config]:
    yield from _with(_COPY, "operation", "copy", "move", " Move ", "x")
    paths = ("f1,name", "after.x.y,after.x.z", "op.x,before.f2", "new.a,new.b", "a.b.c,a.b.d", "id,name")
    yield from _with(_COPY, "fields", *paths, "a", "a,b c", "a,,b", "")
    yield from ({}, {**_COPY, "headers": ""})
    yield {"headers": "h1,h2,h3,loose", "fields": "a,b,c,d", "operation": "copy"}
    yield {"headers": "h1,h1", "fields": "a,b", "operation": "move"}
    for field in ("name.x", "source.lsn", ".", "payload", "after.after"):
        yield {"headers": "h1", "fields": field, "operation": "move"}
    yield {"headers": "h3,h1", "fields": "source.table,source.after.x", "operation": "move"}


_PARTITION = {"partition.payload.fields": "change.name,source.table", "partition.topic.num": "7"}
_MANY_PARTITIONS = {**_PARTITION, "partition.topic.num": "1000003"}
_HASHED = (
    *(
        "after.id",
        " source . lsn ",
        "op",
        "ts_ms,ts_us",
        "none.x",
        "after.none",
        "before.name",
        "change.name",
        ".",
        "change.name.x",
    ),
    *("transaction.id, transaction.total_order", "change.t1,change.t2", "change.t5", "change.t6,change.n", "change.c0,change.c1"),
)


def _partitions() -> Iterator[Config]:
    yield from _each(_PARTITION)
    yield from _with(_PARTITION, "partition.hash.function", "murmur", " MURMUR ", "x")
    yield from _with(_PARTITION, "partition.topic.num", "0", "x", "")
    yield from _with(_PARTITION, "partition.payload.fields", "a,,b", "")
    yield from ({"partition.topic.num": "3"}, {"partition.payload.fields": "a"})
    for function in ("java", "murmur"):
        yield from _with({**_MANY_PARTITIONS, "partition.hash.function": function}, "partition.payload.fields", *_HASHED)


_WARSAW = {"converted.timezone": "Europe/Warsaw"}


def _time_zones() -> Iterator[Config]:
    regions = ("Europe/Warsaw", "America/Los_Angeles", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Apia", "Etc/GMT+5", "UTC")
    others = ("+08:00", "-03:30:15", "GMT", "Z", "EST", "PST", "+25:00", "bad", "Europe/warsaw", "", "+8")
    yield from _with({}, "converted.timezone", *regions, *others)
    includes = (
        *(
            "source:orders",
            "source:orders:t1,source:people:t2",
            "topic:shop.public.orders:t1,topic:other",
            "source:orders:t1,people:t2",
        ),
        *("orders:t1, people:before.t4", "source:orders:source.ts_ms,source:people:source.ts_us", "TOPIC:other:t1"),
        *("(", "a:b:c:d", "", "orders:source.snapshot"),
    )
    yield from _with(_WARSAW, "include.list", *includes)
    yield from _with(
        _WARSAW, "exclude.list", "source:orders", "source:orders:t1", "topic:other:after.t2", "source:orders:source.ts_ms"
    )
    yield {**_WARSAW, "include.list": "a:b", "exclude.list": "b:c"}
    yield {}


def _schema_changes() -> Iterator[Config]:
    excluded = ("DROP", "CREATE, ALTER", "DATABASE", "TRUNCATE,DROP", "", "x", "drop", "DROP,")
    yield from _with({}, "schema.change.event.exclude.list", *excluded)
    yield {}


_EVENT = {"table.field.event.id": "id", "table.field.event.key": "name", "route.by.field": "name"}
_EXPAND = {**_EVENT, "table.expand.json.payload": "true"}
_PLACED = "table.fields.additional.placement"
_BYTES = {"table.json.payload.null.behavior": "optional_bytes"}
_TEXT = {"table.json.payload.empty.array.behavior": "Optional_String"}


def _outbox() -> Iterator[Config]:
    yield from ({}, _EVENT)
    yield from _each(_EXPAND, _BYTES, _TEXT, {**_BYTES, **_TEXT, "field.name.adjustment.mode": "avro"})
    yield from _with(_EXPAND, "field.name.adjustment.mode", "avro_unicode", "x")
    yield from _with({**_EXPAND, "route.tombstone.on.empty.payload": "true"}, _PLACED, "id:envelope", "id:header")
    yield {**_EXPAND, _PLACED: "id:envelope"}
    placed = ("id:envelope:nr,t1:header:T,id:partition", "none:header", "none:envelope", "none:partition", "name:partition")
    odd = ("id:nowhere", "id", "a:b:c:d", "", "id : Envelope , t2 : header : x y", "payload:envelope:payload")
    yield from _with(_EVENT, _PLACED, *placed, *odd)
    missing = "none:header,none:envelope:x,none:partition,name:header"
    yield from _with({**_EVENT, _PLACED: missing}, "table.field.additional.missing", "ignore", "x")
    yield from _with({**_EVENT, _PLACED: "id:envelope"}, "table.field.event.schema.version", "id", "name")
    yield from _with(_EVENT, "table.field.event.timestamp", "t1", "t2", "t3", "t4", "none", "n")
    yield from _with(_EVENT, "table.op.invalid.behavior", "fatal", "error", "x")
    yield from _with(_EVENT, "route.topic.regex", "(", "(?<routedByValue>.).*")
    yield from _with(_EVENT, "route.topic.replacement", "$2", "x")
    yield from _with(_EVENT, "table.field.event.payload", "c0", "t1")
    yield from _with(_EVENT, "table.field.event.id", "none")
    yield from _with(_EVENT, "table.field.event.key", "none", "c0")
    yield from ({**_EVENT, "route.by.field": "id"}, {**_EVENT, "table.expand.json.payload": "x"})


def _changed() -> Iterator[Config]:
    yield from ({}, {"header.changed.name": "C"}, {"header.changed.name": "C", "header.unchanged.name": "U"})
    yield {"header.unchanged.name": " "}


CASES: Mapping[str, Sequence[Config]] = {
    "ExtractNewRecordState": list(_new_record_state()),
    "ByLogicalTableRouter": list(_routers()),
    "ToLogicalTopicRouter": list(_routers()),
    "HeaderToValue": list(_header_to_value()),
    "ExtractChangedRecordState": list(_changed()),
    "partitions.PartitionRouting": list(_partitions()),
    "TimezoneConverter": list(_time_zones()),
    "SchemaChangeEventFilter": list(_schema_changes()),
    "outbox.EventRouter": list(_outbox()),
}
"""Configs by the transform's name in Debezium's package ``io.debezium.transforms``."""

_COLUMNS = {"TimezoneConverter": _MORE_TIMES, "partitions.PartitionRouting": _MORE_TIMES, "outbox.EventRouter": _OUTBOX}


def records_for(name: str, rng: Random, count: int, *, recorded: bool = False) -> list[SourceRecord]:
    """Return records for a transform; with ``recorded`` only some whose results do not depend on the time of year."""
    simple = name == "partitions.PartitionRouting"  # Java's hashes of bytes and structs differ from process to process
    columns = {column: schema for column, schema in _COLUMNS.get(name, {}).items() if not recorded or column != "t5"}
    records = Events(rng, columns=columns, simple=simple).records(count)
    return [*_schema_change_records(), *records] if name == "SchemaChangeEventFilter" else records


def _schema_change_records() -> Iterator[SourceRecord]:
    change = Schema.struct({"type": OPTIONAL_STRING_SCHEMA, "id": OPTIONAL_STRING_SCHEMA}, name="x.Change")
    fields = {"ddl": OPTIONAL_STRING_SCHEMA, "tableChanges": Schema.array(change, optional=True)}
    schema = Schema.struct(fields, name="io.debezium.connector.mariadb.SchemaChangeValue")
    lists = [[Struct(change, {"type": kind})] for kind in ("CREATE", "ALTER", "DROP", "TRUNCATE", "x", None)]
    values = [*(Struct(schema, {"tableChanges": each}) for each in (*lists, [])), Struct(schema), None]
    yield from (SourceRecord({}, {}, "t", value, schema) for value in values)
    text = Schema.struct({"tableChanges": OPTIONAL_STRING_SCHEMA}, name="a.SchemaChangeKey")
    none = Schema.struct({"ddl": OPTIONAL_STRING_SCHEMA}, name="a.SchemaChangeKey")
    yield from (SourceRecord({}, {}, "t", Struct(each), each) for each in (text, none))

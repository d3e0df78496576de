"""AvroConverter's columnar form against its row form; ``make test-columns`` takes 10,000 random values."""

from __future__ import annotations

import datetime as dt
import io
import itertools
import json
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from sluiceway.api.columns import NotColumnar
from sluiceway.columns.arrays import to_array
from sluiceway.converters import column_runs
from sluiceway.converters.registry import avro_column_reader, columns
from sluiceway.converters.registry.avro import AvroConverter
from sluiceway.data import INT32_SCHEMA, INT64_SCHEMA, STRING_SCHEMA, Schema, Struct, Type, date_schema, decimal_schema
from sluiceway.data.avro_schema import ENUM
from sluiceway.errors import ConnectError, RetriableError
from support.column_forms import EXAMPLES, Tolerant, decoded_alike, encoded_alike
from support.random_data import random_schema, random_value
from support.schema_registry import Registry, schema_registry

BATCH = 25


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with schema_registry() as running:
        running.levels[""] = "NONE"
        yield running


@pytest.fixture(autouse=True)
def runs_of_any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "SMALLEST_RUN", 1)
    monkeypatch.setattr(columns, "CHUNK", 10)
    monkeypatch.setattr(column_runs, "_MOST_SHORT_RUNS", 10**6)
    monkeypatch.setattr(column_runs.RunReader, "MOST_FAILURES", 10**6)


def converter(registry: Registry, **options: str) -> AvroConverter:
    made = AvroConverter()
    made.configure({"schema.registry.url": registry.url, **options}, is_key=False)
    return made


def with_avro_names(schema: Schema, numbers: Iterator[int]) -> Schema:
    """Return the schema with names that are valid in Avro, each struct with its own."""
    if schema.type is Type.STRUCT:
        fields = {f"f{field.index}": with_avro_names(field.schema, numbers) for field in schema.fields}
        return Schema.struct(fields, name=f"com.example.Type{next(numbers)}", optional=schema.optional)
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        return Schema.array(with_avro_names(schema.value_schema, numbers), optional=schema.optional)
    if schema.type is Type.MAP:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        name = None if schema.key_schema.type is Type.STRING else f"com.example.Map{next(numbers)}"
        values = with_avro_names(schema.value_schema, numbers)
        return Schema.map(schema.key_schema, values, optional=schema.optional, name=name)
    return schema


def encodable(made: AvroConverter, topic: str, schema: Schema, values: list[Any]) -> list[tuple[Any, bytes | None]]:
    """Return the values that the row form encodes, with their messages."""
    found = []
    for value in values:
        try:
            found.append((value, made.from_connect_data(topic, schema, value)))
        except ConnectError:  # a default that Avro's JSON cannot hold, or null for a required schema with a default
            continue
    return found


def damaged(rng: Random, message: bytes) -> bytes:
    """Return a message with bytes after its prefix replaced, missing or added."""
    at = rng.randrange(5, len(message) + 1)
    inserted = rng.choice([b"", b"\x00", b"\x01", b"\x02", b"\x80", b"\xff" * 9, b"\xff" * 10, rng.randbytes(2)])
    return message[:at] + inserted + message[at + rng.randrange(3) :]


@pytest.mark.timeout(0)  # 10,000 records take minutes on a busy machine
def test_random_records(registry: Registry) -> None:
    found: Counter[str] = Counter()
    made = converter(registry)
    for seed in range(max(EXAMPLES // BATCH, 8)):
        rng = Random(seed)  # noqa: S311
        schema = with_avro_names(random_schema(rng), itertools.count())
        values = [random_value(rng, schema) for _ in range(BATCH)]
        pairs = encodable(made, "t", schema, values)
        if not pairs:
            continue
        found["records"] += len(pairs)
        found["encoded"] += encoded_alike(made, schema, [value for value, _ in pairs])
        encoded_alike(made, schema, values)
        messages = [message for _, message in pairs]
        found["decoded"] += decoded_alike(Tolerant(made), messages)
        odd = [damaged(rng, message) for message in messages if message is not None]
        for message in odd:
            found["damaged"] += 1
            found["damaged decoded"] += decoded_alike(Tolerant(made), [message])
        decoded_alike(Tolerant(made), odd)
    print(dict(found))
    assert found["encoded"] > found["records"] // 2
    assert found["decoded"] > found["records"] // 2


INNER = Schema.struct({"x": INT32_SCHEMA, "tags": Schema.map(STRING_SCHEMA, INT64_SCHEMA)}, name="com.example.Inner")
RECORD = Schema.struct(
    {
        "id": INT64_SCHEMA,
        "text": Schema(Type.STRING, optional=True),
        "price": decimal_schema(2, optional=True),
        "color": Schema(Type.STRING, parameters={ENUM: "com.example.Color", f"{ENUM}.RED": "RED", f"{ENUM}.BLUE": "BLUE"}),
        "lines": Schema.array(INNER),
        "day": date_schema(),
    },
    name="com.example.Record",
)


def record(number: int) -> Struct:
    inner = [Struct(INNER, {"x": at, "tags": {"a": at, "é" * at: 1}}) for at in range(number % 4)]
    return Struct(
        RECORD,
        {
            "id": 1 << (number % 63),
            "text": None if number % 3 == 0 else "x" * number,
            "price": Decimal(number - 150).scaleb(-2),
            "color": "BLUE" if number % 2 else "RED",
            "lines": inner,
            "day": dt.date(1960, 1, 1) + dt.timedelta(number),
        },
    )


def test_runs_by_schema_id(registry: Registry) -> None:
    made = converter(registry, **{"enhanced.avro.schema.support": "true"})
    values = [record(number) for number in range(300)]
    assert encoded_alike(made, RECORD, values) == 300
    records = [made.from_connect_data("t", RECORD, value) for value in values]
    texts = [made.from_connect_data("t2", STRING_SCHEMA, f"text {number}") for number in range(100)]
    decode = made.column_decoder("t")
    assert decode is not None
    runs = decode(pa.array([*records, None, *texts, b"\x00\x00", *records], pa.binary()))
    assert [(run.start, run.end, run.column is not None) for run in runs] == [
        (0, 300, True),
        (300, 301, True),
        (301, 401, True),
        (401, 402, False),
        (402, 702, True),
    ]
    assert decoded_alike(Tolerant(made), [*records[:9], None, *texts[:9], b"\x00\x00", *records]) == 319


def payload(node: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(node), value)
    return out.getvalue()


def decoded(registry: Registry, node: Any, payloads: list[bytes]) -> int:
    """Assert that both forms read messages of a schema alike; return how many the columnar form read."""
    prefix = b"\x00" + registry.register("odd", json.dumps(node)).to_bytes(4, "big")
    made = converter(registry)
    found = decoded_alike(Tolerant(made), [prefix + data for data in payloads])
    assert decoded_alike(Tolerant(made), [prefix + data for data in payloads] * 3) == 3 * found
    made.close()
    return found


def named(node: Any) -> dict[str, Any]:
    return {"type": "record", "name": "R", "namespace": "com.example", "fields": [{"name": "f", "type": node}]}


NUMBERS = [0, 1, -1, 63, 64, -64, -65, 2**31 - 1, -(2**31), 2**62, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize(
    ("node", "values", "count"),
    [
        ("long", NUMBERS, 12),
        ("int", NUMBERS[:9], 9),
        (["string", "null"], ["a", None, "b"], 3),
        (["null", "bytes"], [b"a", None, b""], 3),
        ({"type": "fixed", "name": "F", "size": 3}, [b"abc", b"\x00\xff\x80"], 2),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, ["B", "A"], 2),
        ({"type": "map", "values": ["null", "double"]}, [{"a": 1.5, "b": None}, {}, {"a": -0.0}], 3),
        ({"type": "array", "items": {"type": "array", "items": "float"}}, [[[1.5], []], [], [[2.0, -2.0]]], 3),
        ({"type": "array", "items": "null"}, [[None]], 0),
        ({"type": "array", "items": "int"}, [list(range(65)), []], 0),
        (["null", "int", "string"], [None, 1, "a"], 0),
        ({"type": "record", "name": "N", "fields": []}, [{}], 0),
    ],
    ids=str,
)
def test_types(registry: Registry, node: Any, values: list[Any], count: int) -> None:
    wrapped = named(node)
    assert decoded(registry, wrapped, [payload(wrapped, {"f": value}) for value in values]) == count
    kind = node if isinstance(node, str) else node["type"] if isinstance(node, dict) else "union"
    if kind != "record" and count:
        assert decoded(registry, node, [payload(node, value) for value in values]) == count


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
SMALL = {"type": "int", "connect.type": "int8"}


@pytest.mark.parametrize(
    ("node", "data", "count"),
    [
        ("bytes", b"any bytes", 1),
        (DECIMAL, b"\x01", 0),
        (named(DECIMAL), b"\x02\x80", 1),
        (named(DECIMAL), b"\x04\x00\x01", 1),
        (named(DECIMAL), b"\x00", 0),
        (named(DECIMAL), b"\x22" + b"\x01" * 17, 0),
        (named(DECIMAL), b"\x20\x7f" + b"\xff" * 15, 0),
        ("boolean", b"\x02", 0),
        ("boolean", b"\x01\x00", 0),
        ("int", payload("long", 2**31), 0),
        (SMALL, payload("int", 127), 1),
        (SMALL, payload("int", 128), 0),
        ("long", b"\x80\x00", 1),
        ("long", b"\xff" * 9 + b"\x03", 0),
        ("long", b"\x80", 0),
        ("string", b"\x04a", 0),
        ("string", b"\x03", 0),
        ("string", b"\x02\xff", 0),
        ("string", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 0),
        ({"type": "array", "items": "int"}, b"\x03\x04\x02\x02\x00", 0),
        ({"type": "array", "items": "int"}, b"\x02\x02\x02\x02\x00", 0),
        ({"type": "map", "values": "int"}, b"\x04\x02a\x02\x02a\x04\x00", 0),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02", 0),
        ({"type": "int", "logicalType": "time-millis"}, payload("int", 86_400_000), 0),
        ({"type": "long", "logicalType": "timestamp-millis"}, payload("long", 2**60), 0),
    ],
    ids=str,
)
def test_unusual_data_is_left_to_the_row_form(registry: Registry, node: Any, data: bytes, count: int) -> None:
    assert decoded(registry, node, [data]) == count


def test_a_record_is_not_read_beyond_its_end(registry: Registry) -> None:
    text = named("string")
    assert decoded(registry, text, [b"\x06a", b"bc", b"\x02d"]) == 0
    assert decoded(registry, text, [b"\x02a", b"\x00b\x02", b"c"]) == 0


def test_nested_lists_are_read_in_order(registry: Registry) -> None:
    node = {"type": "array", "items": named({"type": "map", "values": {"type": "array", "items": "string"}})}
    rng = Random(0)  # noqa: S311
    values = [
        [{"f": {str(key): ["x" * rng.randrange(9)] * rng.randrange(3) for key in range(rng.randrange(3))}} for _ in range(length)]
        for length in [3, 0, 1, 5, 0, 2]
    ]
    assert decoded(registry, node, [payload(node, value) for value in values]) == 6


def test_references(registry: Registry) -> None:
    inner = {"type": "record", "name": "Inner", "namespace": "com.example", "fields": [{"name": "x", "type": "int"}]}
    registry.register("inner", inner)
    body = {
        "schema": json.dumps(named("com.example.Inner")),
        "schemaType": "AVRO",
        "references": [{"name": "com.example.Inner", "subject": "inner", "version": 1}],
    }
    number = registry.handle("POST", "/subjects/outer/versions", body)["id"]
    prefix = b"\x00" + number.to_bytes(4, "big")
    assert decoded_alike(converter(registry), [prefix + b"\x02", prefix + b"\x04"]) == 2


def test_no_columnar_form(registry: Registry) -> None:
    class Own(AvroConverter):
        pass

    own = Own()
    own.configure({"schema.registry.url": registry.url}, is_key=False)
    assert own.column_decoder("t") is None
    assert own.column_encoder("t", INT32_SCHEMA) is None
    made = converter(registry)
    assert made.column_encoder("t", None) is None
    assert made.column_encoder("t", Schema.map(INT32_SCHEMA, INT32_SCHEMA)) is None
    assert made.column_encoder("t", decimal_schema(2)) is None
    foreign = converter(registry, **{"auto.register.schemas": "false", "use.latest.version": "true"})
    assert foreign.column_encoder("t", INT32_SCHEMA) is None


def test_schemaless_records_are_left_to_the_row_form(registry: Registry) -> None:
    made = converter(registry)
    assert decoded_alike(made, [made.from_connect_data("t", None, value) for value in (1, "a", [True])]) == 0


def test_a_registry_that_is_away_is_reported_by_the_row_form() -> None:
    made = AvroConverter()
    made.configure({"schema.registry.url": "http://127.0.0.1:9", "max.retries": "0"}, is_key=False)
    decode = made.column_decoder("t")
    assert decode is not None
    message = b"\x00\x00\x00\x00\x01\x02"
    with pytest.raises(NotColumnar):
        decode(pa.array([message] * 3, pa.binary()))
    with pytest.raises(RetriableError):
        made.to_connect_data("t", message)
    encode = made.column_encoder("t", INT32_SCHEMA)
    assert encode is not None
    with pytest.raises(NotColumnar):
        encode(to_array(INT32_SCHEMA, [1]))


def test_long_lists(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    node = {"type": "array", "items": "int"}
    assert decoded(registry, node, [payload(node, [1] * 64)]) == 1
    monkeypatch.setattr(avro_column_reader, "_MOST_ITEMS", 1)
    assert decoded(registry, node, [payload(node, [1, 2])]) == 0

"""Values, schemas and records that cross to Java and back, and Java transforms, predicates and converters called from Python."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import (
    INT32_SCHEMA,
    STRING_SCHEMA,
    BigInteger,
    Float32,
    Header,
    Int8,
    Int16,
    Int32,
    Schema,
    Struct,
)
from sluiceway.errors import DataError
from sluiceway.java_plugins.classes import plugin_class
from sluiceway.java_plugins.hosts import task_host
from sluiceway.java_plugins.index import JavaPlugin
from sluiceway.java_plugins.stages import JavaTransforms, StageFailure
from support.java_plugins import fetch_runtime
from support.random_data import random_schema, random_value

_KAFKA = "org.apache.kafka.connect."


@pytest.fixture(scope="module", autouse=True)
def _host() -> Iterator[None]:
    fetch_runtime()
    with task_host("values"):
        yield


def stage(kind: str, name: str, **config: str) -> Any:
    """Return a configured plugin of Kafka's own, as the Python class of a Java plugin."""
    found = plugin_class(JavaPlugin(_KAFKA + name, kind, "4.3.0", None, ()))  # type: ignore[arg-type]  # on the class path
    assert found is not None
    made = found()
    made.configure({key.replace("_", "."): value for key, value in config.items()})
    return made


@pytest.fixture
def unchanged() -> Iterator[JavaTransforms]:
    """A transform in Java that changes no record."""
    router = stage("transformation", "transforms.RegexRouter", regex="none", replacement="none")
    transforms = JavaTransforms([router.spec])
    yield transforms
    transforms.close()


def through(transforms: JavaTransforms, *records: Any) -> list[Any]:
    return transforms.apply(records)


def test_random_values_come_back_equal_with_equal_schemas(unchanged: JavaTransforms) -> None:
    rng = Random(7)  # noqa: S311
    sent = []
    for _ in range(400):
        schema, key = random_schema(rng), random_schema(rng)
        sent.append(SinkRecord("t", 0, 1, random_value(rng, schema), schema, random_value(rng, key), key))
    for record, back in zip(sent, unchanged.apply(sent), strict=True):
        assert not isinstance(back, StageFailure), back
        assert back is not None
        assert (back.value_schema, back.key_schema) == (record.value_schema, record.key_schema)
        assert repr((back.value, back.key)) == repr((record.value, record.key))


def test_random_values_have_the_same_json_in_java_and_python() -> None:
    java, python = stage("converter", "json.JsonConverter"), JsonConverter()
    python.configure({})
    rng = Random(11)  # noqa: S311
    pairs = []
    for _ in range(150):
        schema = random_schema(rng)
        pairs.append((schema, random_value(rng, schema)))
    java.encode_ahead({"t": pairs})
    for schema, value in pairs:
        assert java.from_connect_data("t", schema, value) == python.from_connect_data("t", schema, value)
    java.close()


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -(1 << 63),
        1.5,
        "Zoë",
        b"\x00\xff",
        [1, [None, "a"], {}],
        {"a": {"b": [1.5]}, "": None},
        Int8(1),
        Int16(-2),
        Int32(3),
        Float32(0.5),
        BigInteger(1 << 70),
        Decimal("12.30"),
        dt.datetime(2020, 1, 2, 3, 4, 5, 678000, tzinfo=dt.timezone.utc),
        {"in a map": Struct(Schema.struct({"x": INT32_SCHEMA}), {"x": 1})},
    ],
)
def test_values_without_a_schema_keep_their_types(unchanged: JavaTransforms, value: Any) -> None:
    (back,) = through(unchanged, SourceRecord({"p": 1}, {"o": [value] if isinstance(value, int) else 2}, "t", value))
    assert (type(back.value), back.value) == (type(value), value)
    assert (back.value_schema, back.source_partition) == (None, {"p": 1})


def test_the_parts_of_a_record_come_back(unchanged: JavaTransforms) -> None:
    headers = (Header("a", 1, INT32_SCHEMA), Header("a", None, None), Header("b", {"x": "y"}, None))
    (source,) = through(unchanged, SourceRecord({"f": "x"}, {"at": 5}, "t", 1, INT32_SCHEMA, "k", STRING_SCHEMA, 3, 99, headers))
    assert (source.topic, source.kafka_partition, source.timestamp, source.headers) == ("t", 3, 99, headers)
    assert (source.source_partition, source.source_offset) == ({"f": "x"}, {"at": 5})
    read = SinkRecord("t", 3, 7, None, None, None, None, None, 0, headers)
    (sink,) = through(unchanged, read.new_record(topic="u", kafka_partition=9))
    assert (sink.topic, sink.kafka_partition, sink.original_topic_partition, sink.original_kafka_offset) == ("u", 9, ("t", 3), 7)


def test_many_schemas_are_forgotten_on_both_sides(unchanged: JavaTransforms) -> None:
    for start in range(0, 2400, 300):
        schemas = [Schema.struct({f"field_{number}": INT32_SCHEMA}) for number in range(start, start + 300)]
        records = [SinkRecord("t", 0, 0, Struct.of(schema, [index]), schema) for index, schema in enumerate(schemas)]
        back = through(unchanged, *records)
        assert [(each.value_schema, each.value.values_) for each in back] == [(s, [i]) for i, s in enumerate(schemas)]


def test_an_invalid_value_fails_its_record_only(unchanged: JavaTransforms) -> None:
    good, wrong = (SinkRecord("t", 0, 0, value, INT32_SCHEMA) for value in (1, 1 << 40))
    outcomes = through(unchanged, good, wrong, good)
    assert [type(each) for each in outcomes] == [SinkRecord, StageFailure, SinkRecord]
    assert isinstance(outcomes[1].error, DataError)


def test_a_failing_transform_says_which_and_leaves_the_others(unchanged: JavaTransforms) -> None:
    hoist = stage("transformation", "transforms.HoistField$Value", field="h")
    extract = stage("transformation", "transforms.ExtractField$Value", field="missing")
    outcomes = through(JavaTransforms([hoist.spec, extract.spec]), SinkRecord("t", 0, 0, "x", STRING_SCHEMA))
    assert (outcomes[0].step, str(outcomes[0].error)) == (1, "Unknown field: missing")
    assert outcomes[0].error.java_class == "java.lang.IllegalArgumentException"


def test_single_calls_of_a_transform_and_a_predicate() -> None:
    hoist = stage("transformation", "transforms.HoistField$Value", field="h")
    assert hoist.apply(SinkRecord("t", 0, 0, 5)).value == {"h": 5}
    named = stage("predicate", "transforms.predicates.TopicNameMatches", pattern="t")
    assert [named.test(SinkRecord(topic, 0, 0, None)) for topic in ("t", "u")] == [True, False]
    assert [key.name for key in type(hoist).config_def()] == ["field"]
    hoist.close()
    named.close()


def test_a_header_converter_converts_both_ways() -> None:
    simple = stage("header_converter", "storage.SimpleHeaderConverter")
    assert simple.from_connect_header("t", "k", INT32_SCHEMA, 5) == b"5"
    schema, value = simple.to_connect_header("t", "k", b"[1, 2]")
    assert (schema.type.name, value) == ("ARRAY", [1, 2])
    simple.close()


def test_an_error_of_a_batch_is_raised_once_and_a_retry_converts_again() -> None:
    java = stage("converter", "json.JsonConverter", schemas_enable="false")
    java.decode_ahead({"t": [b"{bad", b"1", b"1"]})
    assert java.to_connect_data("t", b"1").value == 1
    for _ in range(2):
        with pytest.raises(DataError, match="Converting byte"):
            java.to_connect_data("t", b"{bad")
    java.close()

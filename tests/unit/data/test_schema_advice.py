"""Each advice to get schemas leads to records that a sink for columns can write."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest

from sluiceway.api import SinkRecord, SinkTask
from sluiceway.connectors.files.formats.avro import AvroFormat
from sluiceway.connectors.files.formats.base import struct_schema
from sluiceway.connectors.files.hive.columns import table_schema
from sluiceway.converters.json_converter import JsonConverter
from sluiceway.data import INT64_SCHEMA, Schema
from sluiceway.data.schema_advice import advised, schema_advice
from sluiceway.discovery import connector_class
from sluiceway.errors import DataError
from sluiceway.transforms.hoist_field import HoistFieldValue

SCHEMA = {"type": "struct", "fields": [{"field": "id", "type": "int64"}]}
PLAIN = b'{"id": 1}'


def converter(**config: str) -> JsonConverter:
    made = JsonConverter()
    made.configure({name.replace("_", "."): value for name, value in config.items()}, is_key=False)
    return made


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"schemas_enable": "true"}, json.dumps({"schema": SCHEMA, "payload": {"id": 1}}).encode()),
        ({"schemas_enable": "true", "schema_content": json.dumps(SCHEMA)}, PLAIN),
    ],
)
def test_json_with_the_advised_settings_has_columns(config: dict[str, str], message: bytes) -> None:
    schema, value = converter(**config).to_connect_data("t", message)
    assert struct_schema(schema, "Parquet").fields[0].name == "id"
    assert value["id"] == 1


@pytest.mark.parametrize("part", ["key", "value"])
def test_a_sink_that_needs_schemas_does_not_advise_to_do_without(part: str) -> None:
    with pytest.raises(DataError) as plain:
        converter(schemas_enable="true").to_connect_data("t", PLAIN)
    assert "set schemas.enable=false" in str(plain.value), "Kafka Connect's own words for all others"
    text = str(advised(plain.value, part))
    assert "schemas.enable=false" not in text
    assert f"set {part}.converter.schema.content" in text
    other = DataError("something else")
    assert advised(other, part) is other


@pytest.mark.parametrize(
    "refuse",
    [
        lambda: struct_schema(None, "Parquet"),
        lambda: AvroFormat({}).rows("t", None, [{}]),
        lambda: table_schema(None, ()),
    ],
)
def test_records_without_a_schema_are_refused_with_the_advice(refuse: Any) -> None:
    with pytest.raises(DataError) as refused:
        refuse()
    assert schema_advice() in str(refused.value)
    assert "HoistField" not in str(refused.value), "it makes a map of values without a schema, which has no columns"


def test_a_value_that_is_no_struct_has_columns_with_the_advised_transform() -> None:
    checks: list[Callable[[Schema], object]] = [lambda each: struct_schema(each, "Parquet"), lambda each: table_schema(each, ())]
    for check in checks:
        with pytest.raises(DataError, match="HoistField"):
            check(INT64_SCHEMA)
        assert _hoisted(INT64_SCHEMA).fields[0].name == "id"
        check(_hoisted(INT64_SCHEMA))


def _hoisted(schema: Schema) -> Schema:
    hoist: Any = HoistFieldValue()
    hoist.configure({"field": "id"})
    record = hoist.apply(SinkRecord("t", 0, 0, 1, schema, None, None))
    assert record.value_schema is not None
    return record.value_schema


def test_sinks_say_whether_they_need_schemas() -> None:
    sinks = ["JdbcSink", "ParquetSink", "SparkSink", "FileStreamSink", "JsonFileSink", "TextSink"]
    tasks = [cast(type[SinkTask], connector_class(each).task_class) for each in sinks]
    config = {"connection.url": "jdbc:sqlite:x", "path": "/x", "format": "parquet", "name": "x"}
    assert [task.needs_schemas(config) for task in tasks] == [True, True, True, False, False, False]

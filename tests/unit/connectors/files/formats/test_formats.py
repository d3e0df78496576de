"""Every type of Connect in every format."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import fastavro
import pytest

from sluiceway.connectors.files.filesystem import Output
from sluiceway.connectors.files.formats.avro import AvroFormat
from sluiceway.data import (
    BOOLEAN_SCHEMA,
    BYTES_SCHEMA,
    FLOAT32_SCHEMA,
    FLOAT64_SCHEMA,
    INT8_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Struct,
    Type,
)
from sluiceway.data.avro_schema import ENUM, AvroOptions, to_avro
from sluiceway.data.logical import date_schema, decimal_schema, time_schema, timestamp_schema
from sluiceway.errors import DataError
from support.file_sinks import all_rows, data_files, file_sink, record

INNER = Schema.struct({"x": INT32_SCHEMA, "y": OPTIONAL_INT32_SCHEMA}, name="inner")
MOMENT = dt.datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=dt.timezone.utc)
FLAT: dict[str, tuple[Schema, Any]] = {
    "i8": (INT8_SCHEMA, -128),
    "i16": (INT16_SCHEMA, 32767),
    "i32": (INT32_SCHEMA, -5),
    "i64": (INT64_SCHEMA, 2**62),
    "f32": (FLOAT32_SCHEMA, 1.5),
    "f64": (FLOAT64_SCHEMA, 0.1),
    "b": (BOOLEAN_SCHEMA, True),
    "s": (STRING_SCHEMA, 'ü, "quoted"\nline'),
    "n": (OPTIONAL_INT32_SCHEMA, None),
    "dec": (decimal_schema(2), Decimal("-12345.67")),
    "day": (date_schema(), dt.date(2024, 2, 29)),
    "ts": (timestamp_schema(), MOMENT),
    "ts_null": (timestamp_schema(optional=True), None),
}
NESTED: dict[str, tuple[Schema, Any]] = {
    **FLAT,
    "raw": (BYTES_SCHEMA, b"\x00\xff"),
    "time": (time_schema(), dt.time(1, 2, 3, 4000)),
    "list": (Schema.array(STRING_SCHEMA), ["a", "b"]),
    "map": (Schema.map(STRING_SCHEMA, INT32_SCHEMA), {"k": 1}),
    "in": (INNER, Struct(INNER, {"x": 1})),
    "ins": (Schema.array(INNER), [Struct(INNER, {"x": 1, "y": 2})]),
}
FORMS = pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value


def written(folder: Path, connector: str, fields: dict[str, tuple[Schema, Any]], columns: bool) -> dict[str, Any]:
    schema = Schema.struct({name: kind for name, (kind, _) in fields.items()}, name="all.types", version=1)
    value = Struct(schema, {name: value for name, (_, value) in fields.items()})
    with file_sink(folder, connector, reports=False) as sink:
        sink.put([record(0, value, schema)], columns=columns)
        sink.end()
    [found] = all_rows(folder)
    return dict(found)


@FORMS
@pytest.mark.parametrize("connector", ["ParquetSink", "OrcSink", "AvroFileSink"])
def test_every_type_is_read_back(tmp_path: Path, connector: str, columns: bool) -> None:
    found = written(tmp_path, connector, NESTED, columns)
    expected = {name: plain(value) for name, (_, value) in NESTED.items()}
    if connector == "OrcSink":
        expected["time"] = 3_723_004
        expected["ts"] = expected["ts"].replace(tzinfo=None)  # ORC's type for Spark and Hive has no time zone
    if connector != "AvroFileSink":
        found["map"] = dict(found["map"])
    assert found == expected


@FORMS
def test_csv_has_texts(tmp_path: Path, columns: bool) -> None:
    fields = {**FLAT, "s": (STRING_SCHEMA, 'ü, "quoted"')}
    assert written(tmp_path, "CsvSink", fields, columns) == {
        "i8": "-128",
        "i16": "32767",
        "i32": "-5",
        "i64": str(2**62),
        "f32": "1.5",
        "f64": "0.1",
        "b": "true",
        "s": 'ü, "quoted"',
        "n": "",
        "dec": "-12345.67",
        "day": "2024-02-29",
        "ts": "2024-02-29T12:30:15.250Z",
        "ts_null": "",
    }


@FORMS
def test_csv_refuses_what_has_no_text(tmp_path: Path, columns: bool) -> None:
    with pytest.raises(DataError, match=r"CSV files cannot hold the field raw of type BYTES"):
        written(tmp_path, "CsvSink", NESTED, columns)


@FORMS
def test_json_is_that_of_json_converter(tmp_path: Path, columns: bool) -> None:
    found = written(tmp_path, "JsonFileSink", NESTED, columns)
    assert found["ts"] == int(MOMENT.timestamp() * 1000)
    assert (found["raw"], found["in"]) == ("AP8=", {"x": 1, "y": None})
    assert found["list"] == ["a", "b"]


SCHEMALESS = [{"id": 0, "x": [1.5, None, "é\n"]}, "text", 1, None, {"id": 4}, {}, [True], {"id": "\U0001f600"}]


@pytest.mark.parametrize("connector", ["JsonFileSink", "TextSink"])
def test_lines_take_values_without_a_schema(tmp_path: Path, connector: str) -> None:
    found = {}
    for columns in (False, True):
        folder = tmp_path / str(columns)
        with file_sink(folder, connector, flush_size="3", behavior_on_null_values="ignore") as sink:
            sink.put([record(number, value, None) for number, value in enumerate(SCHEMALESS)], columns=columns)
            assert not sink.context.reported
            sink.end()
        found[columns] = [(path.name, path.read_bytes()) for path in data_files(folder)]
    assert found[False] == found[True]
    assert len(found[True]) == 3
    if connector == "JsonFileSink":
        assert all_rows(tmp_path / "True") == [value for value in SCHEMALESS if value is not None]


@FORMS
@pytest.mark.parametrize("connector", ["ParquetSink", "CsvSink", "OrcSink"])
def test_columns_need_a_schema(tmp_path: Path, connector: str, columns: bool) -> None:
    with file_sink(tmp_path, connector) as sink:
        sink.put([record(number, {"id": number}, None) for number in range(2)], columns=columns)
        assert len(sink.context.reported) == 2
        assert "need records with a schema" in str(sink.context.reported[0][1])


@FORMS
def test_values_without_a_schema_are_partitioned_by_their_fields(tmp_path: Path, columns: bool) -> None:
    with file_sink(tmp_path, "JsonFileSink", partitioner_class="FieldPartitioner", partition_field_name="id") as sink:
        sink.put([record(number, {"id": number % 2}, None) for number in range(4)], columns=columns)
        sink.end()
    assert sorted(path.parent.name for path in data_files(tmp_path)) == ["id=0", "id=1"]
    assert sorted(found["id"] for found in all_rows(tmp_path)) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "fields",
    [
        {"id": INT64_SCHEMA, "inner": Schema.struct({"x": INT32_SCHEMA}, name="a.Inner")},
        {"count": Schema(Type.INT32, default=5), "maybe": Schema(Type.INT32, default=5, optional=True)},
        {"note": Schema(Type.STRING, doc="what it is", optional=True), "small": INT8_SCHEMA, "day": date_schema()},
        {"dec": decimal_schema(2), "by_number": Schema.map(INT32_SCHEMA, STRING_SCHEMA), "list": Schema.array(INT8_SCHEMA)},
        {"code": Schema(Type.BYTES, name="a.Code", parameters={"connect.fixed.size": "2"})},
    ],
    ids=["nested", "defaults", "properties", "containers", "fixed"],
)
@pytest.mark.parametrize("name", [None, "shop.Order"])
def test_the_schema_of_an_avro_file_is_the_converters(fields: dict[str, Schema], name: str | None) -> None:
    schema = Schema.struct(fields, name=name)
    output = BytesIO()
    AvroFormat({"avro.codec": "null"}).open(cast("Output", output), "t", schema).close()
    output.seek(0)
    written = json.loads(fastavro.reader(output).metadata["avro.schema"])
    assert fastavro.parse_schema(written) == fastavro.parse_schema(cast("Any", to_avro(schema, AvroOptions())))


@pytest.mark.parametrize(
    ("schema", "good", "bad", "message"),
    [
        (Schema(Type.BYTES, parameters={"connect.fixed.size": "2"}), b"ab", b"abc", "it has 3 bytes, not 2"),
        (
            decimal_schema(2).replace(parameters={"scale": "2", "connect.decimal.precision": "4", "connect.fixed.size": "2"}),
            Decimal("-1.00"),
            Decimal("400.00"),
            "it has 3 bytes, not 2",
        ),
        (Schema(Type.STRING, parameters={ENUM: "a.Color", f"{ENUM}.RED": "RED"}), "RED", "BLUE", "'BLUE' is not one of RED"),
    ],
    ids=["fixed", "fixed decimal", "enum"],
)
def test_what_a_named_type_of_avro_cannot_hold_is_a_bad_record(
    tmp_path: Path, schema: Schema, good: Any, bad: Any, message: str
) -> None:
    whole = Schema.struct({"x": schema})
    values = [Struct(whole, {"x": each}) for each in (good, bad, good)]
    with file_sink(tmp_path, "AvroFileSink", given={"enhanced.avro.schema.support": "true"}) as sink:
        sink.put([record(number, value, whole) for number, value in enumerate(values)])
        [(_, error)] = sink.context.reported
        assert f"Avro files cannot hold the field x: {message}" in str(error)
        sink.end()
    assert all_rows(tmp_path) == [{"x": good}] * 2


def test_avro_takes_every_schema_and_names_that_it_may_have(tmp_path: Path) -> None:
    with file_sink(tmp_path, "AvroFileSink") as sink:
        sink.put([record(0, "text", STRING_SCHEMA), record(1, {"a-b": 1}, Schema.struct({"a-b": INT32_SCHEMA}))])
        [(_, error)] = sink.context.reported
        assert "Avro does not allow the name 'a-b'" in str(error)
        sink.end()
    assert all_rows(tmp_path) == ["text"]


@FORMS
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {},
            {
                "connect.name": "orders",
                "color": {
                    "type": "string",
                    "connect.parameters": {ENUM: "a.Color", f"{ENUM}.RED": "RED", f"{ENUM}.BLUE": "BLUE"},
                },
                "labels": "array",
            },
        ),
        (
            {"connect.meta.data": "false", "enhanced.avro.schema.support": "true", "allow.optional.map.keys": "true"},
            {"color": {"type": "enum", "name": "a.Color", "symbols": ["RED", "BLUE"]}, "again": "a.Color", "labels": "map"},
        ),
    ],
    ids=["default", "all"],
)
def test_options_of_avro_data_decide_on_properties_enums_and_maps(
    tmp_path: Path, options: dict[str, str], expected: dict[str, Any], columns: bool
) -> None:
    color = Schema(Type.STRING, parameters={ENUM: "a.Color", f"{ENUM}.RED": "RED", f"{ENUM}.BLUE": "BLUE"})
    labels = Schema.map(OPTIONAL_STRING_SCHEMA, INT32_SCHEMA)
    schema = Schema.struct({"color": color, "again": color, "labels": labels}, name="orders")
    value = Struct(schema, {"color": "BLUE", "again": "RED", "labels": {"a": 1}})
    with file_sink(tmp_path, "AvroFileSink", reports=False, given=options) as sink:
        sink.put([record(0, value, schema)], columns=columns)
        sink.end()
    [path] = data_files(tmp_path)
    [found] = all_rows(tmp_path)
    with path.open("rb") as file:
        written: Any = fastavro.reader(file).writer_schema
    fields = {field["name"]: field["type"] for field in written["fields"]}
    assert (found["color"], found["again"]) == ("BLUE", "RED")
    assert found["labels"] == ({"a": 1} if options else [{"key": "a", "value": 1}])
    assert {key: fields.get(key, written.get(key)) for key in expected} | {"labels": fields["labels"]["type"]} == expected
    assert ("connect.name" in written) == (not options)


def test_a_bad_record_among_good_ones_is_reported_alone(tmp_path: Path) -> None:
    schema = Schema.struct({"id": INT64_SCHEMA, "dec": decimal_schema(2)})
    values = [Struct.of(schema, [number, Decimal("1.00") if number != 3 else Decimal("1.000")]) for number in range(6)]
    with file_sink(tmp_path) as sink:
        sink.put([record(number, value, schema) for number, value in enumerate(values)])
        assert [each.original_kafka_offset for each, _ in sink.context.reported] == [3]
        sink.end()
    assert [found["id"] for found in all_rows(tmp_path)] == [0, 1, 2, 4, 5]

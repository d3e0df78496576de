"""``replace.null.with.default`` of every sink: whether a null of an optional field is written as the field's default."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from sluiceway.api import ColumnBatch, NotColumnar, SinkRecord
from sluiceway.columns.arrays import to_array, to_values
from sluiceway.columns.defaults import with_defaults
from sluiceway.columns.rows import column_batches
from sluiceway.connectors.files.partitioners import FieldPartitioner
from sluiceway.connectors.jdbc.debezium.connector import DEBEZIUM, translate
from sluiceway.connectors.jdbc.dialects import dialect_of
from sluiceway.connectors.jdbc.sink.column_rows import rows_of
from sluiceway.connectors.jdbc.sink.columns import layout_of
from sluiceway.connectors.jdbc.sink.config import SinkOptions
from sluiceway.connectors.jdbc.sink.types import binder_of
from sluiceway.data import STRING_SCHEMA, Schema, Struct, Type
from sluiceway.data.null_values import null_value_schema
from sluiceway.discovery import connector_class
from sluiceway.errors import DataError
from sluiceway.spark.rounds.reading import _columns_of, _table_of
from support.column_cases import Cases, struct_schema, value_of
from support.file_sinks import all_rows, file_sink
from support.table_sink import Lake, Task

OPTIONAL, REQUIRED = Schema(Type.INT32, optional=True, default=7), Schema(Type.INT32, default=8)
INNER = Schema.struct({"m": OPTIONAL, "id": Schema(Type.INT32)}, name="inner")
FLAT = {"n": OPTIONAL, "r": REQUIRED, "id": Schema(Type.INT32)}
VALUE = Schema.struct({**FLAT, "in": INNER, "ins": Schema.array(INNER), "by": Schema.map(STRING_SCHEMA, INNER)}, name="v")
ROW = Schema.struct(FLAT, name="row")
NULLS = {"n": None, "r": 8, "id": 1}
DEFAULTS = {"n": 7, "r": 8, "id": 1}

replaced = pytest.mark.parametrize("replace", [True, False], ids=["default", "null"])
forms = pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])


def inner() -> Struct:
    return Struct(INNER, {"id": 1})


def row() -> Struct:
    return Struct(ROW, {"id": 1})


def value() -> Struct:
    return Struct(VALUE, {"id": 1, "in": inner(), "ins": [inner()], "by": {"k": inner()}})


def sink_record(struct: Struct, topic: str = "orders") -> SinkRecord:
    return SinkRecord(topic, 0, 0, struct, struct.schema)


def batch_of(struct: Struct) -> ColumnBatch:
    [batch] = column_batches([sink_record(struct)])
    assert isinstance(batch, ColumnBatch)
    return batch


def expected(replace: bool) -> dict[str, Any]:
    """Return what a sink with nested columns writes for ``value``."""
    nested = {"m": 7 if replace else None, "id": 1}
    return {**(DEFAULTS if replace else NULLS), "in": nested, "ins": [nested], "by": {"k": nested}}


def plain(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its map as a dict, as which not every format's reader returns it."""
    return {**found, "by": dict(found["by"])}


@replaced
@forms
@pytest.mark.parametrize("connector", ["ParquetSink", "OrcSink", "AvroFileSink", "JsonFileSink"])
def test_files(tmp_path: Path, connector: str, columns: bool, replace: bool) -> None:
    written = Struct(
        VALUE, {**value(), "r": 8}
    )  # JsonConverter, which writes JSON files, has no default for a required null then
    written["n"] = None
    with file_sink(tmp_path, connector, reports=False, replace_null_with_default=str(replace).lower()) as sink:
        sink.put([sink_record(written)], columns=columns)
        sink.end()
    [found] = all_rows(tmp_path)
    assert plain(found) == expected(replace)


@replaced
@forms
def test_csv_files(tmp_path: Path, columns: bool, replace: bool) -> None:
    with file_sink(tmp_path, "CsvSink", reports=False, replace_null_with_default=str(replace).lower()) as sink:
        sink.put([sink_record(row())], columns=columns)
        sink.end()
    assert all_rows(tmp_path) == [{"n": "7" if replace else "", "r": "8", "id": "1"}]


@replaced
def test_a_value_that_is_projected_to_the_schema_of_the_file(tmp_path: Path, replace: bool) -> None:
    newer, older = ROW.replace(version=2), Schema.struct({"n": OPTIONAL, "id": Schema(Type.INT32)}, name="row", version=1)
    option = str(replace).lower()
    with file_sink(tmp_path, reports=False, replace_null_with_default=option, schema_compatibility="BACKWARD") as sink:
        values = [Struct(newer, {"id": 1}), Struct(older, {"id": 1})]
        sink.put([SinkRecord("orders", 0, offset, each, each.schema) for offset, each in enumerate(values)])
        sink.end()
    assert all_rows(tmp_path) == [DEFAULTS if replace else NULLS] * 2


def test_a_folder_is_named_after_what_the_file_holds() -> None:
    assert FieldPartitioner(["n"]).encode(sink_record(row()), 0) == "n=7"
    with pytest.raises(DataError, match="n with the value None"):
        FieldPartitioner(["n"], replace_nulls=False).encode(sink_record(row()), 0)
    assert FieldPartitioner(["r"], replace_nulls=False).encode(sink_record(row()), 0) == "r=8"


@replaced
@pytest.mark.parametrize("format_name", ["iceberg", "delta"])
def test_tables(tmp_path: Path, format_name: str, replace: bool) -> None:
    lake = Lake(format_name, tmp_path)
    config = {**lake.config(), "replace.null.with.default": str(replace).lower()}
    task = Task(lake, config, [("orders", 0)])  # type: ignore[list-item]
    task.put(sink_record(value()))
    task.commit(1, topic="orders")
    [found] = task.rows()
    assert plain(found) == expected(replace)
    task.task.stop()


def test_apaches_name_of_the_option_of_the_iceberg_sink(tmp_path: Path) -> None:
    lake = Lake("iceberg", tmp_path)
    for config, replace in (({}, True), ({"tables_replace-null-with-default": "false"}, False)):
        assert lake.connector.options_of(lake.config(**config)).replace_nulls is replace


@replaced
@pytest.mark.parametrize("keys", [{}, {"pk.mode": "record_key", "pk.fields": "key"}], ids=["value", "key"])
def test_jdbc(replace: bool, keys: dict[str, str]) -> None:
    config = {"connection.url": "jdbc:sqlite:t.db", "replace.null.with.default": str(replace).lower(), **keys}
    layout = layout_of(SinkOptions.of(config), functools.partial(binder_of, dialect_of("sqlite"), ZoneInfo("UTC")), OPTIONAL, ROW)
    record = SinkRecord("orders", 0, 0, row(), ROW, None, OPTIONAL)
    wanted = tuple((DEFAULTS if replace else NULLS).values())
    assert layout.row(record) == ((7 if replace else None, *wanted) if keys else wanted)
    [batch] = column_batches([record])
    assert isinstance(batch, ColumnBatch)
    assert rows_of(layout, batch) == [layout.row(record)]


def test_debeziums_jdbc_sink_writes_null_unless_it_is_told_otherwise() -> None:
    config = {"connection.url": "jdbc:sqlite:t.db", "topics": "orders"}
    assert DEBEZIUM.parse(config)["replace.null.with.default"] is False
    assert not SinkOptions.of(translate(config)).replace_nulls
    assert SinkOptions.of(translate({**config, "replace.null.with.default": "true"})).replace_nulls


@replaced
def test_data_frames(replace: bool) -> None:
    struct = value()
    wanted = expected(replace) | {"by": [("k", expected(replace)["in"])]}
    assert _table_of(null_value_schema(VALUE, replace=replace), [struct]).to_pylist() == [wanted]
    assert _columns_of(batch_of(struct), replace_nulls=replace).to_pylist() == [wanted]


@pytest.mark.parametrize(
    ("name", "default"),
    [
        *(
            (f"{kind}Sink", "true")
            for kind in ("Parquet", "Orc", "AvroFile", "Csv", "JsonFile", "Jdbc", "Iceberg", "Delta", "Spark")
        ),
        ("io.confluent.connect.s3.S3SinkConnector", "true"),
        ("io.debezium.connector.jdbc.JdbcSinkConnector", "false"),
    ],
)
def test_every_sink_has_the_option_with_the_default_of_its_peer(name: str, default: str) -> None:
    definition = connector_class(name).config_def()
    assert json.dumps(definition["replace.null.with.default"].default) == default


@pytest.mark.parametrize("seed", range(40))
def test_defaults_of_columns_are_those_of_structs_at_random(seed: int) -> None:
    rng = Cases(f"defaults {seed}")
    schema = struct_schema(rng, 3)
    for replace in (True, False):
        wanted = null_value_schema(schema, replace=replace)
        values = [value_of(rng, schema, nulls=0.4) for _ in range(5)]
        try:
            array = to_array(schema, values)
        except NotColumnar:
            continue
        filled = to_values(schema, with_defaults(wanted, array))
        assert repr(filled) == repr([_filled(wanted, each) for each in values])


def _filled(schema: Schema, given: Any) -> Any:
    """Return a value with the defaults of a schema, one part after the other."""
    found = schema.default if given is None else given
    if found is None:
        return None
    if isinstance(found, Struct):
        parts = [_filled(field.schema, part) for field, part in zip(schema.fields, found.values_, strict=True)]
        return Struct.of(found.schema, parts)
    items = schema.value_schema
    if schema.type is Type.ARRAY and items is not None:
        return [_filled(items, item) for item in found]
    if schema.type is Type.MAP and items is not None:
        return {key: _filled(items, item) for key, item in found.items()}
    return found

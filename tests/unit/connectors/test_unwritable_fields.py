"""Fields that a format of files or tables cannot hold: bad records, named by field, that change no file and no table."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import NotColumnar, SinkRecord, TopicPartition
from sluiceway.columns.rows import column_batches
from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Schema, Struct, decimal_schema
from sluiceway.errors import DataError
from sluiceway.spark.rounds.reading import _columns_of, _table_of
from support.file_sinks import all_rows, file_sink
from support.table_sink import Lake, Task

EMPTY = Schema.struct({}, name="Empty")
OPTIONAL_EMPTY = Schema.struct({}, name="Empty", optional=True)
HOLDER = Schema.struct({"in": EMPTY}, name="Holder")
WIDE = decimal_schema(2).replace(parameters={"scale": "2", "connect.decimal.precision": "50"})

ROW = Schema.struct({"id": INT32_SCHEMA}, name="row")
GOOD = Struct(ROW, {"id": 1})

UNWRITABLE: dict[str, tuple[Schema, Any, str]] = {
    "empty struct": (EMPTY, Struct(EMPTY), "odd"),
    "null empty struct": (OPTIONAL_EMPTY, None, "odd"),
    "empty struct in a struct": (HOLDER, Struct(HOLDER, {"in": Struct(EMPTY)}), r"odd\.in"),
    "empty struct in an array": (Schema.array(EMPTY), [Struct(EMPTY)], "odd"),
    "empty struct in an empty array": (Schema.array(EMPTY), [], "odd"),
    "empty struct in a map": (Schema.map(STRING_SCHEMA, EMPTY), {"k": Struct(EMPTY)}, "odd"),
}
TEXTS = Schema.array(STRING_SCHEMA)
INNER = Schema.struct({"in": INT32_SCHEMA}, name="Inner")
# What no format holds, although Connect does: converters leave out what is absent, and JSON has halves of pairs.
UNFIT: dict[str, tuple[Schema, Any, str]] = {
    "null": (STRING_SCHEMA, None, "odd"),
    "null struct": (INNER, None, "odd"),
    "null in a struct": (INNER, Struct.of(INNER, [None]), "odd.in"),
    "null in an array": (TEXTS, ["a", None], "odd"),
    "null in a map": (Schema.map(STRING_SCHEMA, STRING_SCHEMA), {"k": None}, "odd"),
    "half of a pair": (STRING_SCHEMA, "a\ud800", "odd"),
    "half of a pair in an array": (TEXTS, ["\udc00"], "odd"),
    "half of a pair in a key": (Schema.map(STRING_SCHEMA, STRING_SCHEMA), {"\ud800": "v"}, "odd"),
}
WIDE_DECIMAL = (WIDE, Decimal("1.00"), "odd")


def odd(schema: Schema, value: Any) -> Struct:
    return Struct.of(Schema.struct({"id": INT32_SCHEMA, "odd": schema}, name="row"), [2, value])


def record(offset: int, value: Struct) -> SinkRecord:
    return SinkRecord("orders", 0, offset, value, value.schema)


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize(
    ("connector", "case"),
    [*(("ParquetSink", case) for case in UNWRITABLE), ("OrcSink", "wide decimal"), *(("CsvSink", case) for case in UNWRITABLE)],
)
def test_a_file_does_not_hold_the_field(tmp_path: Path, connector: str, case: str, columns: bool) -> None:
    schema, value, field = UNWRITABLE.get(case, WIDE_DECIMAL)
    with file_sink(tmp_path, connector) as sink:
        sink.put([record(0, GOOD), record(1, odd(schema, value)), record(2, GOOD)], columns=columns)
        assert sink.end() == {TopicPartition("orders", 0): 3}
    [(bad, error)] = sink.context.reported
    assert (bad.kafka_offset, type(error)) == (1, DataError)
    assert f"{connector[:3].upper()}" in str(error).upper()
    assert f"the field {field.replace(chr(92), '').split('.')[0]}" in str(error)
    assert [int(row["id"]) for row in all_rows(tmp_path)] == [1, 1]


@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("connector", ["ParquetSink", "OrcSink", "AvroFileSink"])
@pytest.mark.parametrize("case", UNFIT)
def test_a_value_that_fits_no_file_is_a_bad_record(tmp_path: Path, connector: str, case: str, columns: bool) -> None:
    schema, value, field = UNFIT[case]
    with file_sink(tmp_path, connector) as sink:
        sink.put([record(0, GOOD), record(1, odd(schema, value)), record(2, GOOD)], columns=columns)
        assert sink.end() == {TopicPartition("orders", 0): 3}
    [(bad, error)] = sink.context.reported
    assert (bad.kafka_offset, type(error)) == (1, DataError)
    assert connector != "AvroFileSink" or f"Avro files cannot hold the field {field}: " in str(error)
    assert [int(row["id"]) for row in all_rows(tmp_path)] == [1, 1]


@pytest.mark.parametrize("format_name", ["iceberg", "delta"])
@pytest.mark.parametrize("upsert", [False, True], ids=["append", "upsert"])
@pytest.mark.parametrize("case", [*UNWRITABLE, "wide decimal"])
@pytest.mark.parametrize("exists", [True, False], ids=["changed", "created"])
def test_a_table_does_not_get_the_field(tmp_path: Path, format_name: str, case: str, upsert: bool, exists: bool) -> None:
    schema, value, field = UNWRITABLE.get(case, WIDE_DECIMAL)
    lake = Lake(format_name, tmp_path)
    more = {"tables_upsert-mode-enabled": "true", "tables_default-id-columns": "id"} if upsert else {}
    task = Task(lake, lake.config(**more), [TopicPartition("orders", 0)], reports=True)
    if exists:
        task.put(record(0, GOOD))
        assert task.commit(1, topic="orders") == {TopicPartition("orders", 0): 1}
    task.put(record(1, odd(schema, value)))
    [(bad, error)] = task.context.reported
    assert bad.kafka_offset == 1
    with pytest.raises(DataError, match=rf"Field {field}[a-z.]* cannot be written"):
        raise error
    if not exists:
        assert lake.table(task.config) is None
    task.put(record(2, GOOD))
    task.commit(3, topic="orders")
    assert lake.read(task.config).column_names == ["id"]
    assert len(task.rows()) == (1 if upsert or not exists else 2)
    task.task.stop()


@pytest.mark.parametrize("format_name", ["iceberg", "delta"])
def test_a_table_is_not_changed_for_a_batch_of_which_another_field_does_not_fit(tmp_path: Path, format_name: str) -> None:
    lake = Lake(format_name, tmp_path)
    task = Task(lake, lake.config(), [TopicPartition("orders", 0)], reports=True)
    task.put(record(0, GOOD))
    task.commit(1, topic="orders")
    both = Schema.struct({"id": STRING_SCHEMA, "new": INT32_SCHEMA}, name="row")
    task.put(record(1, Struct(both, {"id": "not a number", "new": 1})))
    [(_, error)] = task.context.reported
    assert "does not fit column id" in str(error)
    task.put(record(2, GOOD))
    task.commit(3, topic="orders")
    assert lake.read(task.config).column_names == ["id"]
    task.task.stop()


@pytest.mark.parametrize("exists", [True, False], ids=["changed", "created"])
@pytest.mark.parametrize("nested", [True, False], ids=["nested", "top"])
def test_fields_that_differ_by_case_alone_are_bad_records_of_delta(tmp_path: Path, exists: bool, nested: bool) -> None:
    lake = Lake("delta", tmp_path)
    task = Task(lake, lake.config(), [TopicPartition("orders", 0)], reports=True)
    if exists:
        task.put(record(0, GOOD))
        task.commit(1, topic="orders")
    inner = Schema.struct({"a": INT32_SCHEMA, "A": INT32_SCHEMA}, name="inner")
    value = Struct(inner, {"a": 1, "A": 2})
    task.put(record(1, odd(inner, value) if nested else value))
    [(_, error)] = task.context.reported
    assert f"Field {'odd.' if nested else ''}A cannot be written: Delta takes it for" in str(error)
    task.put(record(2, GOOD))
    task.commit(3, topic="orders")
    assert lake.read(task.config).column_names == ["id"]
    task.task.stop()


@pytest.mark.parametrize("format_name", ["iceberg", "delta"])
def test_no_table_changes_for_a_batch_that_another_table_refuses(tmp_path: Path, format_name: str) -> None:
    lake = Lake(format_name, tmp_path)
    other = Task(lake, lake.config("other", "db.b"), [TopicPartition("orders", 0)])
    text = Schema.struct({"id": Schema.array(INT32_SCHEMA)}, name="row")
    other.put(record(0, Struct(text, {"id": [1]})))
    other.commit(1, topic="orders")
    other.task.stop()
    task = Task(lake, lake.config("both", "db.a,db.b"), [TopicPartition("orders", 0)], reports=True)
    task.put(record(0, odd(STRING_SCHEMA, "x")))
    [(_, error)] = task.context.reported
    assert "does not fit column id" in str(error)
    assert lake.table(task.config, "db.a") is None
    assert lake.read(task.config, "db.b").column_names == ["id"]
    task.task.stop()


@pytest.mark.parametrize("container", ["array", "map"])
def test_a_field_that_delta_cannot_add_is_a_bad_record(tmp_path: Path, container: str) -> None:
    def value(fields: dict[str, Schema]) -> Struct:
        inner = Schema.struct(fields, name="inner")
        item = Struct(inner, dict.fromkeys(fields, 1))
        whole = Schema.array(inner) if container == "array" else Schema.map(STRING_SCHEMA, inner)
        return odd(whole, [item] if container == "array" else {"k": item})

    lake = Lake("delta", tmp_path)
    task = Task(lake, lake.config(), [TopicPartition("orders", 0)], reports=True)
    task.put(record(0, value({"x": INT32_SCHEMA})))
    task.put(record(1, value({"x": INT32_SCHEMA, "y": INT32_SCHEMA})))
    task.put(record(2, value({"x": INT32_SCHEMA})))
    [(bad, error)] = task.context.reported
    assert bad.kafka_offset == 1
    assert "odd." in str(error) and ".y cannot be added: Delta" in str(error)  # noqa: PT018 (one text)
    task.commit(3, topic="orders")
    assert len(task.rows()) == 2
    task.task.stop()


@pytest.mark.parametrize("case", UNWRITABLE)
def test_spark_does_not_get_the_field(case: str) -> None:
    schema, value, _ = UNWRITABLE[case]
    bad = odd(schema, value)
    with pytest.raises(DataError, match=r"Field odd: .*without fields"):
        _table_of(bad.schema, [bad])
    [batch] = column_batches([record(0, bad)])
    if not isinstance(batch, list):
        with pytest.raises(NotColumnar, match="without fields"):
            _columns_of(batch, replace_nulls=True)

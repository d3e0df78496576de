"""Tests of what OpenLineage is told about the data sets of a run."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.data import Schema, SchemaBuilder, Struct
from sluiceway.data.logical import timestamp_schema
from sluiceway.data.schema import INT32_SCHEMA, STRING_SCHEMA
from sluiceway.provider.lineage.datasets import DataSet, Description, Lineage
from sluiceway.provider.lineage.observed import describe
from sluiceway.provider.lineage.shapes import FieldShape, TopicShape, fields_of
from sluiceway.provider.progress.run_summary import RunSummary

TABLE, FILE = DataSet("postgres://db:5432", "shop.public.orders"), DataSet("file", "/out")
ID = FieldShape("id", "int32")


def kafka(topic: str) -> DataSet:
    return DataSet("kafka://broker:9092", topic)


def test_both_ends_of_a_source_have_its_rows_and_fields() -> None:
    shapes = {"orders": TopicShape((ID,), 20.0)}
    found = describe(
        Lineage((TABLE,), (kafka("orders"),)), {}, sink=False, shapes=shapes, moved=RunSummary(1000, 2.0)
    ).descriptions
    assert found == {kafka("orders"): Description((ID,), 1000, 20_000), TABLE: Description((ID,), 1000, None)}


def test_transforms_make_the_fields_of_the_other_end_unknown() -> None:
    shapes = {"orders": TopicShape((ID,), 20.0)}
    lineage = Lineage((kafka("orders"),), (TABLE,))
    found = describe(lineage, {"transforms": "mask"}, sink=True, shapes=shapes, moved=RunSummary(7, 1.0)).descriptions
    assert found[kafka("orders")].fields == (ID,)
    assert found[TABLE] == Description((), 7)


def test_before_the_end_no_rows_are_known() -> None:
    found = describe(Lineage((kafka("t"),), (FILE,)), {}, sink=True, shapes={}, moved=None).descriptions
    assert found == {kafka("t"): Description(), FILE: Description()}


def change(topic: str, before: int | None, after: int) -> Any:
    return (
        {"kafka_topic": topic, "kafka_partition": 0},
        None if before is None else {"kafka_offset": before},
        {"kafka_offset": after},
    )


def test_the_rows_of_a_sinks_topics_come_from_its_offsets() -> None:
    moved = RunSummary(60, 1.0, (change("a", 10, 30), change("b", 0, 40), change("c", None, 5)))
    topics = (kafka("a"), kafka("b"), kafka("c"))
    found = describe(Lineage(topics, (FILE,)), {}, sink=True, shapes={}, moved=moved).descriptions
    assert [found[topic].rows for topic in topics] == [20, 40, None], "where the offsets of c began is unknown"
    assert found[FILE].rows == 60, "one file for all topics"


def test_several_tables_belong_to_their_topics() -> None:
    tables = (DataSet("mysql://db", "a"), DataSet("mysql://db", "b"))
    moved = RunSummary(3, 1.0, (change("a", 0, 1), change("b", 0, 2)))
    found = describe(Lineage((kafka("a"), kafka("b")), tables), {}, sink=True, shapes={}, moved=moved).descriptions
    assert [found[table].rows for table in tables] == [1, 2]


STRUCT: Schema = (
    SchemaBuilder.struct().field("id", INT32_SCHEMA).field("at", timestamp_schema()).field("name", STRING_SCHEMA).build()
)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (STRUCT, Struct(STRUCT), [("id", "int32"), ("at", "Timestamp"), ("name", "string")]),
        (STRING_SCHEMA, "x", [("value", "string")]),
        (None, {"a": 1, "b": [True], "c": None}, [("a", "int64"), ("b", "array"), ("c", "")]),
        (None, 1.5, [("value", "double")]),
        (None, None, []),
    ],
)
def test_the_fields_of_a_value(schema: Schema | None, value: Any, expected: list[tuple[str, str]]) -> None:
    assert [(each.name, each.type) for each in fields_of(schema, value)] == expected


def test_a_topics_shape_has_the_average_size_and_the_newest_fields() -> None:
    shape = TopicShape()
    shape.add(10, (ID,))
    shape.add(20, (FieldShape("key", "string"),))
    shape.add(0, ())
    assert shape.record_bytes == pytest.approx(10)
    assert shape.fields == (FieldShape("key", "string"),)

"""The built-in connectors, converters, transforms and predicates fulfill the contracts of sluiceway.testing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sluiceway import discovery
from sluiceway.api import ConnectRecord, SchemaAndValue, SinkRecord
from sluiceway.connectors.file.sink import FileStreamSinkConnector
from sluiceway.connectors.file.source import FileStreamSourceConnector
from sluiceway.data import (
    BOOLEAN_SCHEMA,
    FLOAT64_SCHEMA,
    INT16_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    OPTIONAL_BYTES_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Header,
    Schema,
    Struct,
    Type,
)
from sluiceway.errors import ConnectError
from sluiceway.testing import (
    ConverterContract,
    PredicateContract,
    SinkConnectorContract,
    SourceConnectorContract,
    TransformContract,
)
from sluiceway.testing.samples import source_records
from support.debezium_events import Events

_JAVAS = (ConnectError, ValueError, TypeError, IndexError)
"""The errors of Connect's own classes: Connect's and Java's."""


class TestFileStreamSource(SourceConnectorContract):
    connector_class = FileStreamSourceConnector
    record_count = 4

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        file = tmp_path / "lines.txt"
        file.write_text("one\nzwei ü\n\nfour\n", encoding="utf-8")
        return {"file": str(file), "topic": "lines", "batch.size": "2"}


class TestFileStreamSink(SinkConnectorContract):
    connector_class = FileStreamSinkConnector

    @pytest.fixture
    def config(self, tmp_path: Path) -> dict[str, str]:
        return {"file": str(tmp_path / "out.txt")}

    def check_written(self, config: Mapping[str, str], records: Sequence[SinkRecord]) -> None:
        lines = Path(config["file"]).read_text(encoding="utf-8").splitlines()
        assert {record.value for record in records} <= set(lines)


_OPTIONS: dict[str, Mapping[str, str]] = {
    "Cast": {"spec": "id:string"},
    "DropHeaders": {"headers": "trace"},
    "ExtractField": {"field": "id"},
    "Filter": {},
    "Flatten": {"delimiter": "_"},
    "HeaderFrom": {"fields": "id", "headers": "h", "operation": "move"},
    "HoistField": {"field": "it"},
    "InsertField": {"topic.field": "topic!", "timestamp.field": "at", "static.field": "s", "static.value": "v"},
    "InsertHeader": {"header": "h", "value.literal": "300"},
    "MaskField": {"fields": "id"},
    "RegexRouter": {"regex": "peo(.*)", "replacement": "other-$1"},
    "ReplaceField": {"exclude": "nick", "renames": "id:number"},
    "SetSchemaMetadata": {"schema.name": "n", "schema.version": "2"},
    "TimestampConverter": {"target.type": "string", "format": "yyyy-MM-dd"},
    "TimestampRouter": {},
    "ValueToKey": {"fields": "id"},
}
_DEBEZIUM: dict[str, Mapping[str, str]] = {
    "ByLogicalTableRouter": {"topic.regex": "(.*)", "topic.replacement": "all"},
    "EventRouter": {"table.field.event.key": "id", "route.by.field": "name", "table.field.event.payload": "name"},
    "ExtractChangedRecordState": {"header.changed.name": "changed", "header.unchanged.name": "unchanged"},
    "ExtractNewRecordState": {"delete.tombstone.handling.mode": "rewrite", "add.fields": "op,table", "add.headers": "op"},
    "HeaderToValue": {"headers": "h1,h2", "fields": "f1,after.f2", "operation": "move"},
    "PartitionRouting": {"partition.payload.fields": "change.name", "partition.topic.num": "3"},
    "SchemaChangeEventFilter": {"schema.change.event.exclude.list": "DROP"},
    "TimezoneConverter": {"converted.timezone": "Europe/Warsaw"},
    "ToLogicalTopicRouter": {"topic.regex": "(.*)", "topic.replacement": "all"},
}
_TRANSFORMS = discovery.plugins("sluiceway.transforms")


def _family(alias: str) -> str:
    return alias if alias in _OPTIONS else alias.removesuffix("Key").removesuffix("Value")


for _alias, _class in _TRANSFORMS.items():
    if _class.__module__.startswith("sluiceway."):
        _contract: dict[str, Any] = {"transform_class": _class, "allowed_errors": _JAVAS}
        if _alias in _DEBEZIUM:
            _contract |= {"options": _DEBEZIUM[_alias], "records": lambda _: Events(Random(1)).records(40), "stateful": True}  # noqa: S311
        else:
            _contract["options"] = _OPTIONS[_family(_alias)]
        globals()[f"Test{_alias}"] = type(f"Test{_alias}", (TransformContract,), _contract)


def test_every_transform_of_kafka_connect_is_built_in() -> None:
    assert {_family(alias) for alias in _TRANSFORMS} >= set(_OPTIONS)


class TestHasHeaderKey(PredicateContract):
    predicate_class = discovery.predicate_class("HasHeaderKey")
    options = {"name": "trace"}

    def matching(self) -> Sequence[ConnectRecord]:
        return [source_records()[0], source_records()[1].new_record(headers=(Header("trace", None),))]

    def others(self) -> Sequence[ConnectRecord]:
        return [source_records()[1]]


class TestRecordIsTombstone(PredicateContract):
    predicate_class = discovery.predicate_class("RecordIsTombstone")

    def matching(self) -> Sequence[ConnectRecord]:
        return [record for record in source_records() if record.value is None]

    def others(self) -> Sequence[ConnectRecord]:
        return [record for record in source_records() if record.value is not None]


class TestTopicNameMatches(PredicateContract):
    predicate_class = discovery.predicate_class("TopicNameMatches")
    options = {"pattern": "peo.*"}

    def matching(self) -> Sequence[ConnectRecord]:
        return source_records()

    def others(self) -> Sequence[ConnectRecord]:
        return [record.new_record(topic="my-people") for record in source_records()]


_PERSON = Schema.struct({"id": INT64_SCHEMA, "tags": Schema.array(OPTIONAL_STRING_SCHEMA)}, name="p", optional=True)


class _OurConverter(ConverterContract):
    allowed_errors = _JAVAS


class TestJsonConverterWithSchemas(_OurConverter):
    converter_class = discovery.converter_class("JsonConverter")

    def samples(self) -> Sequence[SchemaAndValue]:
        return [
            SchemaAndValue(_PERSON, Struct(_PERSON, {"id": 1, "tags": ["ü", None]})),
            SchemaAndValue(_PERSON, None),
            SchemaAndValue(STRING_SCHEMA, "text"),
            SchemaAndValue(Schema(Type.BYTES), b"\x00\xff"),
            SchemaAndValue(Schema.map(STRING_SCHEMA, FLOAT64_SCHEMA), {"a": 0.1, "b": -1e300}),
        ]


class TestJsonConverterWithoutSchemas(_OurConverter):
    converter_class = discovery.converter_class("JsonConverter")
    options = {"schemas.enable": "false"}

    def samples(self) -> Sequence[SchemaAndValue]:
        values: list[Any] = [{"a": [1, None, True]}, "text", 2**40, 0.5, []]
        return [SchemaAndValue(None, value) for value in values]


class TestStringConverter(_OurConverter):
    converter_class = discovery.converter_class("StringConverter")

    def samples(self) -> Sequence[SchemaAndValue]:
        return [SchemaAndValue(STRING_SCHEMA, "ü"), SchemaAndValue(INT64_SCHEMA, 5), SchemaAndValue(None, {"a": 1})]

    def expected(self, sample: SchemaAndValue) -> SchemaAndValue:
        text = sample.value if isinstance(sample.value, str) else "{a=1}" if sample.schema is None else "5"
        return SchemaAndValue(OPTIONAL_STRING_SCHEMA, text)


class TestByteArrayConverter(_OurConverter):
    converter_class = discovery.converter_class("ByteArrayConverter")

    def samples(self) -> Sequence[SchemaAndValue]:
        return [SchemaAndValue(OPTIONAL_BYTES_SCHEMA, b"\x00\xff"), SchemaAndValue(OPTIONAL_BYTES_SCHEMA, b"")]


class _OptionalScalar(_OurConverter):
    """Expects optional values, whatever the schema with which they were written."""

    sample: SchemaAndValue

    def samples(self) -> Sequence[SchemaAndValue]:
        return [self.sample, SchemaAndValue(self.sample.schema, type(self.sample.value)(0))]

    def expected(self, sample: SchemaAndValue) -> SchemaAndValue:
        assert sample.schema is not None
        return SchemaAndValue(Schema(sample.schema.type, optional=True), sample.value)


class TestShortConverter(_OptionalScalar):
    converter_class = discovery.converter_class("ShortConverter")
    sample = SchemaAndValue(INT16_SCHEMA, -300)


class TestIntegerConverter(_OptionalScalar):
    converter_class = discovery.converter_class("IntegerConverter")
    sample = SchemaAndValue(INT32_SCHEMA, 70_000)


class TestLongConverter(_OptionalScalar):
    converter_class = discovery.converter_class("LongConverter")
    sample = SchemaAndValue(INT64_SCHEMA, 2**40)


class TestFloatConverter(_OptionalScalar):
    converter_class = discovery.converter_class("FloatConverter")
    sample = SchemaAndValue(Schema(Type.FLOAT32), 0.5)


class TestDoubleConverter(_OptionalScalar):
    converter_class = discovery.converter_class("DoubleConverter")
    sample = SchemaAndValue(FLOAT64_SCHEMA, 0.1)


class TestBooleanConverter(_OptionalScalar):
    converter_class = discovery.converter_class("BooleanConverter")
    sample = SchemaAndValue(BOOLEAN_SCHEMA, True)

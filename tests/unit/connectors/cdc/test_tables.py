"""Keys of tables that share a topic."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.columns import Column, FieldType
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.source import SOURCE
from sluiceway.connectors.cdc.tables import TableSchema
from sluiceway.data import INT32_SCHEMA
from unit.connectors.cdc.test_incremental import CONFIG

_NAMING = {
    "topic.naming.strategy": "io.debezium.schema.DefaultRegexTopicNamingStrategy",
    "topic.regex": r"(.*)\.ord_\d",
    "topic.replacement": "$1.orders",
}


def _table(name: str, key: list[str], **more: str) -> TableSchema:
    columns = [Column(name=each, field=FieldType(INT32_SCHEMA, int, 0), optional=False) for each in ("a", "id")]
    common = postgres_config({**CONFIG, **_NAMING, **{k.replace("_", "."): v for k, v in more.items()}}).common
    return common.schemas(SOURCE).build(TableId("public", name), columns, key)


@pytest.mark.parametrize("key", [["id"], ["id", "a"], []])
def test_keys_of_tables_in_one_topic_differ(key: list[str]) -> None:
    one, other = (_table(name, key) for name in ("ord_1", "ord_2"))
    assert one.topic == other.topic
    assert one.key is not None
    assert other.key is not None
    assert one.key.schema == other.key.schema
    assert [field.name for field in one.key.schema.fields] == [*key, "__dbz__physicalTableIdentifier"]
    assert one.key(["5", "7"]) != other.key(["5", "7"])
    assert one.key(["5", "7"]).values_[-1] == f"{one.topic.removesuffix('orders')}ord_1"


def test_the_identity_of_rows_in_windows_has_the_key_columns_alone() -> None:
    table = _table("ord_1", ["id"])
    assert table.identity is not None
    assert [field.name for field in table.identity.schema.fields] == ["id"]


def test_without_uniqueness_keys_are_those_of_the_table() -> None:
    assert _table("ord_1", [], topic_key_enforce_uniqueness="false").key is None
    found = _table("ord_1", ["id"], topic_key_enforce_uniqueness="false").key
    assert found is not None
    assert [field.name for field in found.schema.fields] == ["id"]

"""SparkSource's config, validation and offsets."""

from __future__ import annotations

from typing import Any

import pytest

from sluiceway.api import ExactlyOnceSupport
from sluiceway.connectors.spark.source import SparkSourceConnector
from sluiceway.connectors.spark.source_config import SourceConfig
from sluiceway.errors import ConfigError, ConnectError

CONFIG = {"format": "jdbc", "option.url": "jdbc:x", "table": '"shop"."orders"', "topic": "o", "incrementing.column.name": "id"}


def errors(config: dict[str, str]) -> dict[str, list[str]]:
    return {name: each.errors for name, each in SparkSourceConnector.validate(config).items() if each.errors}


def test_a_table_by_a_column() -> None:
    config = SourceConfig.of(CONFIG)
    assert (config.options, config.column, config.by_timestamp) == ({"url": "jdbc:x"}, "id", False)
    assert config.partition == {"table": '"shop"."orders"'}
    assert config.schema_name == "orders"
    assert not errors(CONFIG)


def test_a_folder_is_read_by_file_unless_a_column_is_given() -> None:
    folder = {"format": "parquet", "path": "/in", "topic": "t"}
    assert SourceConfig.of(folder).by_file
    assert not SourceConfig.of({**folder, "incrementing.column.name": "id"}).by_file
    assert not SourceConfig.of({**folder, "format": "delta"}).by_file
    assert SourceConfig.of(folder).partition == {"path": "/in"}


def test_validation_names_the_key() -> None:
    assert list(errors({**CONFIG, "path": "/in"})) == ["path"]
    assert "Exactly one of path, table and query must be set" in str(errors({**CONFIG, "path": "/in"}))
    assert list(errors({**CONFIG, "timestamp.column.name": "at"})) == ["timestamp.column.name"]
    query = {"format": "parquet", "query": "select 1", "topic": "t"}
    assert list(errors(query)) == ["query"]
    assert list(errors({**CONFIG, "format": ""})) == ["format"]
    with pytest.raises(ConfigError, match="Exactly one of"):
        SparkSourceConnector().start({"format": "parquet", "topic": "t"})


@pytest.mark.parametrize(
    ("more", "is_enough"),
    [
        ({"format": "mongodb", "option.collection": "orders"}, True),
        ({"format": "mongodb"}, False),
        ({"format": "Parquet", "option.compression": "zstd"}, False),
        ({"format": "jdbc", "option.url": "jdbc:x"}, False),
    ],
)
def test_the_options_of_a_packages_format_may_say_where(more: dict[str, str], is_enough: bool) -> None:
    config = {"topic": "t", **more}
    assert bool(errors(config)) is not is_enough
    if is_enough:
        assert SourceConfig.of(config).partition == {"format": "mongodb"}
        assert not SourceConfig.of(config).by_file
    else:
        with pytest.raises(ConfigError, match="Exactly one of"):
            SourceConfig.of(config)


def test_one_task_reads_everything_and_timestamps_are_at_least_once() -> None:
    connector = SparkSourceConnector()
    connector.start(CONFIG)
    assert connector.task_configs(8) == [CONFIG]
    assert connector.exactly_once_support(CONFIG) is ExactlyOnceSupport.SUPPORTED
    by_time = {**CONFIG, "incrementing.column.name": "", "timestamp.column.name": "at"}
    assert connector.exactly_once_support(by_time) is ExactlyOnceSupport.UNSUPPORTED


_TABLE = {"table": '"shop"."orders"'}


@pytest.mark.parametrize("offset", [{"incrementing": 5}, None, {}])
def test_offsets_that_can_be_set(offset: dict[str, Any] | None) -> None:
    assert SparkSourceConnector().alter_offsets(CONFIG, [(_TABLE, offset)])


@pytest.mark.parametrize(
    ("partition", "offset"),
    [
        ({"table": "other"}, {"incrementing": 5}),
        (_TABLE, {"incrementing": "5"}),
        (_TABLE, {"round": 1}),
        ({**_TABLE, "split": 0}, {"round": "x"}),
    ],
)
def test_offsets_that_are_refused(partition: dict[str, Any], offset: dict[str, Any]) -> None:
    with pytest.raises(ConnectError):
        SparkSourceConnector().alter_offsets(CONFIG, [(partition, offset)])


def test_a_file_is_read_again_once_its_offset_is_deleted() -> None:
    folder = {"format": "parquet", "path": "/in", "topic": "t"}
    assert SparkSourceConnector().alter_offsets(folder, [({"path": "/in", "file": "file:/in/a"}, None)])

"""The catalog keys of Apache's sink as PyIceberg's properties."""

from __future__ import annotations

import pytest

from sluiceway.connectors.iceberg.catalog import catalog_properties
from sluiceway.connectors.iceberg.partitions import partition_transforms
from sluiceway.connectors.tables.config import partition_fields
from sluiceway.errors import ConfigError


def test_a_rest_catalog() -> None:
    given = {"type": "rest", "uri": "https://c", "credential": "a:b", "warehouse": "s3a://lake/w", "io-impl": "org.S3FileIO"}
    expected = {"type": "rest", "uri": "https://c", "credential": "a:b", "warehouse": "s3://lake/w"}
    assert catalog_properties(given) == expected


def test_path_style_access_is_the_opposite_of_virtual_addressing() -> None:
    given = {"type": "rest", "s3.path-style-access": "true"}
    assert catalog_properties(given) == {"type": "rest", "s3.force-virtual-addressing": "false"}


def test_a_warehouse_in_hdfs_needs_no_java() -> None:
    given = {"type": "rest", "warehouse": "hdfs://lab/lake"}
    assert catalog_properties(given) == {**given, "py-io-impl": "sluiceway.connectors.iceberg.file_io.HdfsFileIO"}
    assert catalog_properties({**given, "py-io-impl": "own.IO"}) == {**given, "py-io-impl": "own.IO"}


@pytest.mark.parametrize(
    ("url", "more", "expected"),
    [
        ("jdbc:postgresql://h:1/d", {"jdbc.user": "u", "jdbc.password": "p@"}, "postgresql+psycopg://u:p%40@h:1/d"),
        ("jdbc:sqlite:/a/b.db", {}, "sqlite:////a/b.db"),
        ("postgresql+psycopg://h/d", {}, "postgresql+psycopg://h/d"),
    ],
)
def test_jdbc_urls(url: str, more: dict[str, str], expected: str) -> None:
    given = {"catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog", "uri": url, **more}
    assert catalog_properties(given) == {"type": "sql", "uri": expected}


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"type": "hadoop"}, "iceberg.catalog.type"),
        ({"catalog-impl": "org.apache.iceberg.nessie.NessieCatalog"}, "iceberg.catalog.catalog-impl"),
        ({"catalog-impl": "com.acme.Own"}, "iceberg.catalog.catalog-impl"),
        ({}, "iceberg.catalog.type"),
        ({"type": "sql", "uri": "jdbc:oracle:thin"}, "iceberg.catalog.uri"),
    ],
)
def test_catalogs_that_are_refused(given: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as refused:
        catalog_properties(given)
    assert refused.value.name == key


def test_partition_fields() -> None:
    fields = partition_fields("a, day(at),hours(t), bucket(id, 16), bucket(4, k), truncate(s,3)")
    found = [(column, str(transform)) for column, transform in partition_transforms(fields)]
    assert found == [
        ("a", "identity"),
        ("at", "day"),
        ("t", "hour"),
        ("id", "bucket[16]"),
        ("k", "bucket[4]"),
        ("s", "truncate[3]"),
    ]
    with pytest.raises(ConfigError, match="is no partition field"):
        partition_transforms(["week(at)"])

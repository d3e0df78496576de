"""A validation, which a preview begins with, creates no file: not what the connector writes to, and no catalog of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.discovery import connector_class

_CATALOG = {"iceberg.catalog.type": "sql", "iceberg.catalog.uri": "sqlite:///{}/catalog.db", "iceberg.tables": "a.b"}
_CATALOG["iceberg.catalog.warehouse"] = "file://{}/warehouse"

CONFIGS = {
    "IcebergSink": {"topics": "t", **_CATALOG, "iceberg.tables.auto-create-enabled": "true"},
    "IcebergSource": {"topic": "t", **_CATALOG},
    "DeltaSink": {"topics": "t", "delta.path": "{}/lake", "delta.tables": "b", "delta.tables.auto-create-enabled": "true"},
    "DeltaSource": {"topic": "t", "delta.path": "{}/lake", "delta.tables": "b"},
    "JdbcSink": {"topics": "t", "connection.url": "jdbc:sqlite:{}/copy.db", "auto.create": "true"},
    "JdbcSource": {"topic.prefix": "t", "connection.url": "jdbc:sqlite:{}/shop.db", "mode": "bulk"},
    "SparkSink": {"topics": "t", "format": "parquet", "path": "{}/rows"},
    "SparkSource": {"topic": "t", "format": "parquet", "path": "{}/rows"},
    "FileStreamSink": {"topics": "t", "file": "{}/copy.txt"},
    **{name: {"topics": "t", "path": "{}/files"} for name in ("AvroFileSink", "JsonFileSink", "ParquetSink", "TextSink")},
}
#: Connectors that read what must exist, and what they say is missing.
MISSING = {
    "IcebergSource": "Table a.b does not exist",
    "DeltaSource": "does not exist",
    "JdbcSource": "shop.db does not exist",
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_validation_creates_no_file(name: str, tmp_path: Path) -> None:
    config = {key: value.format(tmp_path) for key, value in CONFIGS[name].items()}
    found = connector_class(name, None).validate({"name": "n", "connector.class": name, **config})
    errors = " ".join(error for each in found.values() for error in each.errors)
    assert MISSING[name] in errors if name in MISSING else not errors
    assert list(tmp_path.iterdir()) == []

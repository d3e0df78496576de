"""Keys of the Hive integration, and those that do not go with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.connectors.files.hive.config import HiveOptions, addresses
from sluiceway.discovery import connector_class
from sluiceway.errors import ConnectError

HIVE = {
    "connector.class": "ParquetSink",
    "path": "/lake",
    "hive.integration": "true",
    "hive.metastore.uris": "thrift://127.0.0.1:1",
    "schema.compatibility": "BACKWARD",
}
HDFS = {**HIVE, "connector.class": "HdfsSinkConnector", "store.url": "hdfs://lab", "flush.size": "1"}


@pytest.mark.parametrize(
    ("config", "more", "key"),
    [
        (HIVE, {"schema.compatibility": "NONE"}, "schema.compatibility"),
        (HIVE, {"hive.metastore.uris": ""}, "hive.metastore.uris"),
        (HIVE, {"hive.metastore.uris": "metastore:9083"}, "hive.metastore.uris"),
        (HIVE, {"hive.table.name": "all"}, "hive.table.name"),
        (HIVE, {"hive.logical.types.enabled": "false"}, "hive.logical.types.enabled"),
        (HIVE, {"directory.delim": "+"}, "directory.delim"),
        (HIVE, {"partitioner.class": "FieldPartitioner", "partition.field.name": "a.b"}, "partition.field.name"),
        (HIVE, {"partitioner.class": "FieldPartitioner", "partition.field.name": "a,A"}, "partition.field.name"),
        (
            HIVE,
            {"partitioner.class": "TimeBasedPartitioner", "path.format": "YYYY/MM", "partition.duration.ms": "1000"},
            "path.format",
        ),
        (HDFS, {"format.class": "io.confluent.connect.hdfs.json.JsonFormat"}, "hive.integration"),
        (HIVE, {"connector.class": "CsvSink"}, "hive.integration"),
    ],
)
def test_what_does_not_go_together_is_refused_at_its_key(config: dict[str, str], more: dict[str, str], key: str) -> None:
    merged = {**config, **more}
    found = connector_class(merged["connector.class"]).validate(merged)
    assert [name for name, each in found.items() if each.errors] == [key]


def test_confluents_words_for_a_missing_compatibility() -> None:
    found = connector_class("ParquetSink").validate({**HIVE, "schema.compatibility": "NONE"})
    [error] = found["schema.compatibility"].errors
    assert "Hive Integration requires schema compatibility to be BACKWARD, FORWARD or FULL" in error


def test_addresses() -> None:
    assert addresses("thrift://one:9084, thrift://two") == [("one", 9084), ("two", 9083)]


def test_names_of_tables() -> None:
    assert HiveOptions("", "", "default", "raw_${topic}").table_of("Orders.v1-new") == "raw_orders_v1_new"


def test_a_metastore_with_kerberos_is_refused(tmp_path: Path) -> None:
    setting = "<property><name>hive.metastore.sasl.enabled</name><value>true</value></property>"
    (tmp_path / "hive-site.xml").write_text(f"<configuration>{setting}</configuration>")
    with pytest.raises(ConnectError, match="Kerberos is not supported"):
        HiveOptions("thrift://one", str(tmp_path), "default", "").addresses()

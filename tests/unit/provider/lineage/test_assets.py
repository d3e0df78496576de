"""Tests of the assets that a run updates."""

from __future__ import annotations

import pytest

from sluiceway.provider.lineage.assets import connector_uri, topic_uri, written_uris

SOURCE = {"connector.class": "FileStreamSource", "file": "/in", "topic": "t"}
SINK = {"connector.class": "FileStreamSink", "file": "/out", "topics": "t"}


def test_a_run_has_the_uris_of_what_it_has_written_to() -> None:
    assert connector_uri("a b") == "sluiceway://connectors/a%20b"
    assert topic_uri("SASL_SSL://k:1,l:2", "t") == "kafka://k:1/t"
    more = {"airflow.outlets": "s3://b/k"}
    assert written_uris("c", {**SOURCE, **more}, sink=False, bootstrap_servers="k:1", topics=["u", "t"]) == [
        "sluiceway://connectors/c",
        "kafka://k:1/t",
        "kafka://k:1/u",
        "s3://b/k",
    ]
    assert written_uris("c", SINK, sink=True, bootstrap_servers="k:1", topics=[]) == ["sluiceway://connectors/c", "file:///out"]


@pytest.mark.parametrize(
    ("config", "uris"),
    [
        ({"path": "/data"}, ["file:///data/topics/a", "file:///data/topics/b"]),
        ({"path": "s3://lake/raw/", "topics.dir": "in"}, ["s3://lake/raw/in/a", "s3://lake/raw/in/b"]),
        ({"path": "hdfs://nn:8020/data"}, ["hdfs://nn:8020/data/topics/a", "hdfs://nn:8020/data/topics/b"]),
        ({"path": "sftp://me:hidden@host/data"}, ["sftp://host/data/topics/a", "sftp://host/data/topics/b"]),
        ({"path": "s3://lake/${airflow:run:ds}"}, []),
        ({"path": "relative"}, []),
        ({"path": "s3://lake/table", "format": "parquet"}, ["s3://lake/table"]),
        ({"s3.bucket.name": "lake"}, ["s3://lake/topics/a", "s3://lake/topics/b"]),
        ({"gcs.bucket.name": "lake"}, ["gs://lake/topics/a", "gs://lake/topics/b"]),
        ({"hdfs.url": "hdfs://nn:8020"}, ["hdfs://nn:8020/topics/a", "hdfs://nn:8020/topics/b"]),
        (
            {"azblob.container.name": "c", "azblob.account.name": "me", "topics": "a"},
            ["abfss://c@me.dfs.core.windows.net/topics/a"],
        ),
        ({"delta.path": "s3://lake/d", "delta.tables": "db.t"}, ["s3://lake/d/db/t"]),
        ({"iceberg.tables": "db.t", "iceberg.catalog.uri": "http://me:hidden@rest:8181/x"}, ["iceberg://rest:8181/db.t"]),
        ({"iceberg.tables": "db.t", "iceberg.catalog": "prod"}, ["iceberg://prod/db.t"]),
        (
            {"connection.url": "jdbc:postgresql://db/shop"},
            ["postgres://db:5432/shop/public/a", "postgres://db:5432/shop/public/b"],
        ),
        ({"connection.url": "jdbc:mysql://db/shop", "topics": "a"}, ["mysql://db:3306/shop/a"]),
    ],
)
def test_a_sinks_run_has_the_uris_of_its_folders_and_tables(config: dict[str, str], uris: list[str]) -> None:
    given = {"topics": "a,b", **config}
    assert written_uris("c", given, sink=True, bootstrap_servers="k:1", topics=[]) == ["sluiceway://connectors/c", *uris]
    read = {key: value for key, value in given.items() if key != "connection.url"}
    assert written_uris("c", read, sink=False, bootstrap_servers="k:1", topics=[]) == ["sluiceway://connectors/c"]

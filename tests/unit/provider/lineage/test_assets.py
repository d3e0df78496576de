"""Tests of the assets that a run updates."""

from __future__ import annotations

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

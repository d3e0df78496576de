"""The files and lines that file sinks show in a preview."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.connectors.file.sink import FileStreamSinkConnector
from sluiceway.discovery import connector_class
from support.file_sinks import record, row


@pytest.mark.parametrize(
    ("connector", "line"),
    [
        ("JsonFileSink", 'orders+0+0000000007+0000000007.json: {"id":7,"name":"n7"}'),
        ("TextSink", "orders+0+0000000007+0000000007.txt: Struct{id=7,name=n7}"),
        ("ParquetSink", "orders+0+0000000007+0000000007.parquet: Struct{id=7,name=n7}"),
        ("CsvSink", "orders+0+0000000007+0000000007.csv: Struct{id=7,name=n7}"),
    ],
)
def test_each_record_shows_its_file_and_content(tmp_path: Path, connector: str, line: str) -> None:
    config = {"name": "s", "path": str(tmp_path), "flush.size": "1"}
    (text,) = connector_class(connector).preview(config, [row(7)])  # type: ignore[attr-defined]
    assert text.endswith(f"/orders/partition=0/{line}")
    assert str(tmp_path) in text
    assert list(tmp_path.iterdir()) == []


def test_records_that_are_skipped_or_refused_say_so(tmp_path: Path) -> None:
    config = {"name": "s", "path": str(tmp_path), "flush.size": "1"}
    sink = connector_class("CsvSink")
    null, text = sink.preview(config, [record(1), record(2, "text", None)])  # type: ignore[attr-defined]
    assert null == "orders-0@1 cannot be written, because it has no value"
    assert text.startswith("orders-0@2 cannot be written: CSV files need records with a schema")
    (skipped,) = sink.preview({**config, "behavior.on.null.values": "ignore"}, [record(1)])  # type: ignore[attr-defined]
    assert skipped == "orders-0@1 is skipped, because it has no value"


def test_the_file_stream_sink_shows_its_file_and_line() -> None:
    assert FileStreamSinkConnector.preview({"file": "/f"}, [record(1, "text", None)]) == ["/f: text"]
    assert FileStreamSinkConnector.preview({}, [record(1, "text", None)]) == ["standard output: text"]

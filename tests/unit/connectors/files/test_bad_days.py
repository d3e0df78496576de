"""File sinks whose storage is full or read-only, whose config changes, and whose fields have unusual names."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluiceway.connectors.files.filesystem import StorageError
from sluiceway.data import INT64_SCHEMA, STRING_SCHEMA, Schema
from support.bad_storage import folder_of_nobody, full_disk, read_only
from support.file_sinks import P0, all_rows, data_files, file_sink, ids, names, record, row, rows

FORMATS = ["ParquetSink", "OrcSink", "AvroFileSink", "CsvSink", "JsonFileSink"]


@pytest.mark.parametrize("connector", FORMATS)
def test_a_full_disk_loses_nothing(tmp_path: Path, connector: str) -> None:
    with file_sink(tmp_path, connector, flush_size="10") as sink:
        sink.put(rows(0, 15))
        for _ in range(2):
            with full_disk(), pytest.raises(StorageError, match=r"Cannot \w+ .*: File too large\."):
                sink.put(rows(15, 30))
        sink.put(rows(15, 30))
        assert sink.next == {P0: 10}
        sink.put(rows(10, 30))
        assert sink.end() == {P0: 30}
    assert ids(tmp_path) == list(range(30))
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_read_only_folder_loses_nothing() -> None:
    with folder_of_nobody() as folder, file_sink(folder, flush_size="10") as sink:
        sink.put(rows(0, 15))
        with (
            read_only(folder),
            pytest.raises(StorageError, match=r"Permission denied\. Let the user that runs the task do so\.$"),
        ):
            sink.put(rows(15, 30))
        sink.put([])
        sink.put(rows(10, 30))
        assert sink.end() == {P0: 30}
        assert ids(folder) == list(range(30))


def test_a_changed_partitioner_or_format_continues_after_the_files(tmp_path: Path) -> None:
    with file_sink(tmp_path) as sink:
        sink.put(rows(0, 3))
        sink.end()
    with file_sink(tmp_path, partitioner_class="FieldPartitioner", partition_field_name="name") as sink:
        assert sink.next == {P0: 3}
        sink.put(rows(3, 5))
        sink.end()
    with file_sink(tmp_path, "JsonFileSink") as sink:
        assert sink.next == {P0: 5}
        sink.put([row(5)])
        sink.end()
    assert ids(tmp_path) == list(range(6))
    assert [name.split("/")[1] for name in names(tmp_path)] == ["name=n3", "name=n4", "partition=0", "partition=0"]
    assert {path.suffix for path in data_files(tmp_path)} == {".parquet", ".json"}


@pytest.mark.parametrize("connector", FORMATS)
def test_reserved_words_and_unicode_in_names(tmp_path: Path, connector: str) -> None:
    fields = ["select", "größe", "ключ"] if connector != "AvroFileSink" else ["select", "from", "null"]
    schema = Schema.struct({"id": INT64_SCHEMA, **dict.fromkeys(fields, STRING_SCHEMA)})
    values = {"id": 0, **{name: f"{name} =/%" for name in fields}}
    with file_sink(tmp_path, connector, partitioner_class="FieldPartitioner", partition_field_name=",".join(fields)) as sink:
        sink.put([record(0, values, schema)])
        sink.end()
    [found] = all_rows(tmp_path)
    assert {name: str(value) for name, value in found.items()} == {name: str(value) for name, value in values.items()}
    [path] = names(tmp_path)
    assert path.split("/")[1:-1] == [f"{name}={name} %3D%2F%25" for name in fields]

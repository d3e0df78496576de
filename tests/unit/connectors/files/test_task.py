"""The file sinks' task: files, exactly-once commits, rotation, schemas, tombstones, failures."""

from __future__ import annotations

import json
import logging
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import TopicPartition
from sluiceway.connectors.files import partition_writer
from sluiceway.connectors.files.commit_log import CommitLog
from sluiceway.connectors.files.filesystem import StorageError
from sluiceway.connectors.files.filesystem.local import LocalFileSystem
from sluiceway.data import INT32_SCHEMA, INT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.discovery import connector_class
from sluiceway.errors import ConnectError, DataError, FencedError, SchemaProjectorError
from support.file_sinks import ROW, TOPIC, all_rows, data_files, file_sink, ids, names, read, record, row, rows

P0 = TopicPartition(TOPIC, 0)
FORMS = pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
FORMATS = pytest.mark.parametrize("connector", ["ParquetSink", "OrcSink", "AvroFileSink", "CsvSink", "JsonFileSink"])


@FORMS
@FORMATS
def test_each_format_holds_the_records_exactly_once(tmp_path: Path, connector: str, columns: bool) -> None:
    with file_sink(tmp_path, connector, flush_size="100") as sink:
        sink.put(rows(0, 250), columns=columns)
        assert sink.commit() == {P0: 200}
        sink.put(rows(250, 260), columns=columns)
        assert sink.end() == {P0: 260}
    extension = data_files(tmp_path)[0].suffix
    assert names(tmp_path) == [
        f"{TOPIC}/partition=0/{TOPIC}+0+{first:010d}+{last:010d}{extension}" for first, last in [(0, 99), (100, 199), (200, 259)]
    ]
    assert [len(read(path)) for path in data_files(tmp_path)] == [100, 100, 60]
    expected = [{"id": number, "name": f"n{number}"} for number in range(260)]
    assert [{"id": int(found["id"]), "name": found["name"]} for found in all_rows(tmp_path)] == expected


def test_a_new_task_continues_after_the_files_whatever_the_group_says(tmp_path: Path) -> None:
    with file_sink(tmp_path, flush_size="10") as sink:
        sink.put(rows(0, 25))
    with file_sink(tmp_path, flush_size="10") as sink:
        assert sink.next == {P0: 20}
        sink.put(rows(20, 30))
    assert ids(tmp_path) == list(range(30))
    assert not list(tmp_path.rglob("*.tmp"))


@FORMS
def test_records_that_come_twice_are_written_once(tmp_path: Path, columns: bool) -> None:
    with file_sink(tmp_path, flush_size="1000") as sink:
        sink.put(rows(0, 30), columns=columns)
        sink.put(rows(20, 50), columns=columns)
        sink.put(rows(0, 10), columns=columns)
        sink.end()
    assert ids(tmp_path) == list(range(50))


@FORMS
def test_offsets_set_by_a_user_win_over_the_files(tmp_path: Path, columns: bool) -> None:
    with file_sink(tmp_path, flush_size="10") as sink:
        sink.put(rows(0, 50), columns=columns)
        config = sink.config
        sink.end()
    connector = connector_class("ParquetSink")()
    assert connector.alter_offsets(config, {P0: 30})  # type: ignore[attr-defined]
    with file_sink(tmp_path, flush_size="10") as sink:
        assert sink.next == {P0: 30}
        sink.put(rows(30, 60), columns=columns)
        sink.end()
    assert ids(tmp_path) == sorted([*range(60), *range(30, 50)])
    assert f"{TOPIC}/partition=0/{TOPIC}+0+0000000030+0000000039.e1.parquet" in names(tmp_path)


def test_offsets_that_were_reset_are_left_to_the_group(tmp_path: Path) -> None:
    with file_sink(tmp_path, flush_size="10") as sink:
        sink.put(rows(0, 10))
        config = sink.config
    connector = connector_class("ParquetSink")()
    for offsets in ({P0: None}, {}):  # the group may have forgotten the partition
        connector.alter_offsets(config, offsets)  # type: ignore[attr-defined]
        with file_sink(tmp_path) as sink:
            assert sink.next == {}
            sink.put(rows(0, 5))
            sink.end()
    with pytest.raises(ConnectError, match="must not be negative"):
        connector.alter_offsets(config, {P0: -1})  # type: ignore[attr-defined]


@FORMS
def test_a_topic_that_was_created_again_is_written_as_new_records(
    tmp_path: Path, columns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with file_sink(tmp_path, flush_size="10") as sink:
        sink.put(rows(0, 20), columns=columns)
    with file_sink(tmp_path, flush_size="10") as sink, caplog.at_level(logging.WARNING):
        sink.put(rows(0, 20), columns=columns)
        sink.end()
    assert ids(tmp_path) == sorted([*range(20), *range(20)])
    assert "the topic was created again" in caplog.text


def test_a_task_that_lost_its_partition_writes_nothing_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with file_sink(tmp_path, flush_size="10") as zombie, file_sink(tmp_path, flush_size="10") as owner:
        zombie.put(rows(0, 15))
        assert zombie.commit() == {}
        owner.put(rows(0, 12))
        zombie.put(rows(15, 30))
        assert zombie.commit() == {}
        owner.put(rows(12, 20))
        assert owner.end() == {P0: 20}
        now = time.monotonic()
        monkeypatch.setattr("sluiceway.connectors.files.task.time.monotonic", lambda: now + 61)
        with pytest.raises(FencedError, match="same name"):
            zombie.put([])
    assert ids(tmp_path) == list(range(20))


class Killed(BaseException):
    """Stands for SIGKILL at a point in the code."""


@pytest.mark.parametrize("point", ["temporary", "planned", "half published", "published"])
def test_a_kill_at_any_point_of_a_commit_loses_and_repeats_nothing(
    tmp_path: Path, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: dict[str, Any] = {"flush_size": "50", "partitioner_class": "FieldPartitioner", "partition_field_name": "name"}
    schema = Schema.struct({"id": INT64_SCHEMA, "name": STRING_SCHEMA})
    records = [record(number, {"id": number, "name": f"f{number % 3}"}, schema) for number in range(100)]
    fs, log = LocalFileSystem, CommitLog
    calls = {"publish": 0}

    def dying(*_: Any, **__: Any) -> Any:
        raise Killed

    def half(self: LocalFileSystem, temporary: str, path: str) -> bool:
        calls["publish"] += 1
        if calls["publish"] == 5:
            raise Killed
        return publish(self, temporary, path)

    publish = fs.publish
    with file_sink(tmp_path, **keys) as sink:
        sink.put(records[:40])
        with monkeypatch.context() as patch:
            if point == "temporary":
                patch.setattr(log, "append", dying)
            elif point == "planned":
                patch.setattr(log, "publish", dying)
            elif point == "half published":
                patch.setattr(fs, "publish", half)
                calls["publish"] = 3
            else:
                patch.setattr(partition_writer.log, "info", dying)
            with pytest.raises(Killed):
                sink.put(records[40:])
    with file_sink(tmp_path, **keys) as sink:
        start = sink.next.get(P0, 0)
        assert start == (0 if point == "temporary" else 50)
        sink.put(records[start:])
        sink.end()
    assert ids(tmp_path) == list(range(100))
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_storage_that_fails_is_tried_again_with_the_records_since_the_last_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with file_sink(tmp_path, flush_size="10", retry_backoff_ms="70") as sink:
        sink.put(rows(0, 15))
        with monkeypatch.context() as patch:
            patch.setattr("sluiceway.connectors.files.filesystem.local.os.link", _full)
            for _ in range(2):
                with pytest.raises(StorageError, match=r"No space left on device. Free some space"):
                    sink.put(rows(15, 30))
        assert sink.context.timeouts[-1] == 70
        sink.put(rows(15, 30))
        assert sink.next == {P0: 10}
        sink.put(rows(10, 30))
        assert sink.end() == {P0: 30}
    assert ids(tmp_path) == list(range(30))


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_a_storage_that_fails_for_too_long_ends_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with file_sink(tmp_path, flush_size="10", sluiceway_unreachable_timeout_ms="0") as sink:
        monkeypatch.setattr("sluiceway.connectors.files.filesystem.local.os.link", _full)
        with pytest.raises(ConnectError, match=r"more than sluiceway\.unreachable\.timeout\.ms allows") as raised:
            sink.put(rows(0, 10))
        assert not isinstance(raised.value, StorageError)


def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "topics" / TOPIC / "partition=0"
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    with file_sink(tmp_path, flush_size="5") as sink:
        sink.put(rows(0, 5))
        (folder / f"{TOPIC}+0+0000000005+0000000009.parquet").write_text("foreign")
        with pytest.raises(ConnectError, match="exists already and is not from this connector"):
            sink.put(rows(5, 10))
    assert (folder / "notes.txt").read_text() == "mine"
    assert (folder / f"{TOPIC}+0+0000000005+0000000009.parquet").read_text() == "foreign"


# --- tombstones and bad records ---


@FORMS
def test_tombstones_are_skipped_or_reported(tmp_path: Path, columns: bool) -> None:
    records = [row(0), record(1), row(2), record(3)]
    with file_sink(tmp_path, behavior_on_null_values="ignore") as sink:
        sink.put(records, columns=columns)
        assert sink.end() == {P0: 4}
    assert ids(tmp_path) == [0, 2]
    with file_sink(tmp_path / "b", reports=False) as sink, pytest.raises(DataError, match=r"behavior\.on\.null\.values=ignore"):
        sink.put(records, columns=columns)
    with file_sink(tmp_path / "c") as sink:
        sink.put(records, columns=columns)
        assert [each.original_kafka_offset for each, _ in sink.context.reported] == [1, 3]
        assert sink.end() == {P0: 4}
    assert ids(tmp_path / "c") == [0, 2]


def test_only_tombstones_move_the_offset_without_a_file(tmp_path: Path) -> None:
    with file_sink(tmp_path, behavior_on_null_values="ignore") as sink:
        sink.put([record(0), record(1)])
        assert sink.commit() == {P0: 2}
    assert names(tmp_path) == []


@pytest.mark.parametrize("connector", ["ParquetSink", "OrcSink", "AvroFileSink", "CsvSink"])
def test_formats_with_columns_refuse_values_without_schemas(tmp_path: Path, connector: str) -> None:
    with file_sink(tmp_path, connector) as sink:
        sink.put([row(0), record(1, {"id": 1}, None), row(2)])
        [(bad, error)] = sink.context.reported
        assert bad.original_kafka_offset == 1
        assert "schemas.enable=true" in str(error)
        sink.end()
    assert ids(tmp_path) == [0, 2]


def test_parquet_refuses_values_that_are_no_structs(tmp_path: Path) -> None:
    with file_sink(tmp_path, reports=False) as sink, pytest.raises(DataError, match="HoistField"):
        sink.put([record(0, "text", STRING_SCHEMA)], columns=True)


def test_json_and_text_take_values_without_schemas(tmp_path: Path) -> None:
    with file_sink(tmp_path / "json", "JsonFileSink", compression_type="gzip") as sink:
        sink.put([record(0, {"a": [1, None]}, None), record(1, "x", None), row(2)])
        sink.end()
    assert all_rows(tmp_path / "json") == [{"a": [1, None]}, "x", {"id": 2, "name": "n2"}]
    assert names(tmp_path / "json")[0].endswith(".json.gz")
    with file_sink(tmp_path / "text", "TextSink") as sink:
        sink.put([record(0, "héllo", STRING_SCHEMA), record(1, {"a": 1}, None), row(2)], columns=True)
        sink.end()
    assert all_rows(tmp_path / "text") == ["héllo", "{a=1}", "Struct{id=2,name=n2}"]


def test_a_report_that_fails_fails_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failed: Future[None] = Future()
    failed.set_exception(ConnectError("no dead letter queue"))
    with file_sink(tmp_path, flush_size="2") as sink:
        monkeypatch.setattr(sink.context.errant_record_reporter, "report", lambda *_: failed)
        with pytest.raises(ConnectError, match="no dead letter queue"):
            sink.put([record(0), row(1), row(2)])
    assert names(tmp_path) == []


# --- schemas ---

V2 = Schema.struct({"id": INT64_SCHEMA, "name": OPTIONAL_STRING_SCHEMA, "more": OPTIONAL_STRING_SCHEMA}, name="row", version=2)


@FORMS
def test_schemas_have_files_of_their_own(tmp_path: Path, columns: bool) -> None:
    records = [row(0), record(1, {"id": 1, "more": "x"}, V2), row(2), record(3, {"id": 3}, V2)]
    with file_sink(tmp_path) as sink:
        sink.put(records, columns=columns)
        sink.end()
    assert [[found["id"] for found in read(path)] for path in data_files(tmp_path)] == [[0, 2], [1, 3]]


@FORMS
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("BACKWARD", [["id", "name"], ["id", "name", "more"]]),
        ("FULL", [["id", "name"], ["id", "name", "more"]]),
        ("FORWARD", [["id", "name"]]),
    ],
)
def test_other_versions_are_projected(tmp_path: Path, mode: str, expected: list[list[str]], columns: bool) -> None:
    records = [row(0), record(1, {"id": 1, "more": "x"}, V2), row(2), record(3, {"id": 3}, V2)]
    with file_sink(tmp_path, schema_compatibility=mode) as sink:
        sink.put(records, columns=columns)
        sink.end()
    assert [list(read(path)[0]) for path in data_files(tmp_path)] == expected
    assert ids(tmp_path) == [0, 1, 2, 3]


def test_compatibility_needs_versions_and_types_that_fit(tmp_path: Path) -> None:
    plain = Schema.struct({"id": INT64_SCHEMA})
    needed = pytest.raises(SchemaProjectorError, match="Schema version required for BACKWARD compatibility")
    with file_sink(tmp_path, schema_compatibility="BACKWARD", reports=False) as sink, needed:
        sink.put([record(0, {"id": 1}, plain)], columns=True)
    text = Schema.struct({"id": STRING_SCHEMA, "name": OPTIONAL_STRING_SCHEMA}, name="row", version=3)
    with file_sink(tmp_path, schema_compatibility="BACKWARD", reports=False) as sink:
        sink.put([record(0, {"id": "a"}, text)])
        with pytest.raises(SchemaProjectorError, match="Error projecting id"):
            sink.put([row(1)])


@FORMS
def test_missing_fields_have_their_defaults(tmp_path: Path, columns: bool) -> None:
    schema = Schema.struct(
        {
            "id": INT64_SCHEMA,
            "n": Schema(INT32_SCHEMA.type, default=7),
            "s": Schema.struct({"x": Schema(INT32_SCHEMA.type, default=8)}),
        }
    )
    inner = schema.field("s").schema  # type: ignore[union-attr]
    value = Struct.of(schema, [1, None, Struct.of(inner, [None])])
    for connector in ("ParquetSink", "OrcSink", "AvroFileSink"):
        with file_sink(tmp_path / connector, connector) as sink:
            sink.put([record(0, value, schema)], columns=columns)
            sink.end()
        assert all_rows(tmp_path / connector) == [{"id": 1, "n": 7, "s": {"x": 8}}]


# --- folders and rotation ---


@FORMS
def test_fields_and_times_name_folders(tmp_path: Path, columns: bool) -> None:
    schema = Schema.struct({"id": INT64_SCHEMA, "name": STRING_SCHEMA})
    records = [record(number, {"id": number, "name": ["a/b", "ü"][number % 2]}, schema) for number in range(10)]
    with file_sink(tmp_path / "f", partitioner_class="FieldPartitioner", partition_field_name="name") as sink:
        sink.put(records, columns=columns)
        sink.end()
    assert {name.split("/")[1] for name in names(tmp_path / "f")} == {"name=a%2Fb", "name=ü"}
    assert ids(tmp_path / "f") == list(range(10))
    times = [row(number, timestamp=1_700_000_000_000 + number * 1_800_000) for number in range(6)]
    hourly: dict[str, Any] = {
        "partitioner_class": "io.confluent.connect.storage.partitioner.HourlyPartitioner",
        "timezone": "Europe/Berlin",
    }
    with file_sink(tmp_path / "t", timestamp_extractor="Record", **hourly) as sink:
        sink.put(times, columns=columns)
        sink.end()
    folders = sorted({name.split("/", 1)[1].rpartition("/")[0] for name in names(tmp_path / "t")})
    assert folders == [f"year=2023/month=11/day={day}/hour={hour}" for day, hour in [("14", "23"), ("15", "00"), ("15", "01")]]
    assert ids(tmp_path / "t") == list(range(6))


@FORMS
def test_record_time_ends_files(tmp_path: Path, columns: bool) -> None:
    records = [row(number, timestamp=number * 1000) for number in range(25)]
    keys: dict[str, Any] = {
        "partitioner_class": "TimeBasedPartitioner",
        "path_format": "'y'=YYYY",
        "partition_duration_ms": "86400000",
        "timestamp_extractor": "Record",
        "rotate_interval_ms": "10000",
    }
    with file_sink(tmp_path, **keys) as sink:
        sink.put(records, columns=columns)
        assert sink.commit() == {P0: 20}
        sink.end()
    assert [len(read(path)) for path in data_files(tmp_path)] == [10, 10, 5]


def test_the_schedule_commits_without_new_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_700_000_000_500]
    monkeypatch.setattr("sluiceway.connectors.files.task._now", lambda: now[0])
    with file_sink(tmp_path, rotate_schedule_interval_ms="60000") as sink:
        sink.put(rows(0, 5))
        sink.put([])
        assert sink.commit() == {P0: 0}
        now[0] = 1_700_000_040_000
        sink.put([])
        assert sink.commit() == {P0: 5}
    assert ids(tmp_path) == list(range(5))


def test_size_ends_files(tmp_path: Path) -> None:
    with file_sink(tmp_path, "TextSink", sluiceway_rotate_bytes="1000000") as sink:
        for start in range(0, 40, 10):
            sink.put([record(number, "x" * 100_000, STRING_SCHEMA) for number in range(start, start + 10)])
        sink.end()
    assert len(data_files(tmp_path)) >= 2
    assert len(all_rows(tmp_path)) == 40


def test_partitions_are_committed_by_themselves(tmp_path: Path) -> None:
    with file_sink(tmp_path, partitions=2, flush_size="10") as sink:
        sink.put([*rows(0, 12), *rows(0, 7, partition=1)])
        assert sink.commit() == {P0: 10, TopicPartition(TOPIC, 1): 0}
        sink.end()
    assert len(all_rows(tmp_path)) == 19


def test_a_routed_topic_has_its_own_folder(tmp_path: Path) -> None:
    moved = rows(0, 3)
    for each in moved:
        each.topic = "routed"
    with file_sink(tmp_path) as sink:
        sink.put(moved)
        sink.end()
    assert names(tmp_path) == [f"routed/partition=0/{TOPIC}+0+0000000000+0000000002.parquet"]


def test_a_damaged_commit_log_is_an_error(tmp_path: Path) -> None:
    with file_sink(tmp_path, flush_size="5") as sink:
        sink.put(rows(0, 5))
    newest = sorted((tmp_path / "_sluiceway").rglob("*.json"))[-1]
    newest.write_text(json.dumps({"version": 2}))
    with pytest.raises(ConnectError, match="is not an entry of a file sink's commit log"), file_sink(tmp_path):
        pass


def test_names_are_safe(tmp_path: Path) -> None:
    assert ROW.version == 1
    with file_sink(tmp_path, name="../a/b ü") as sink:
        sink.put(rows(0, 1))
        sink.end()
    assert [path.name for path in (tmp_path / "_sluiceway").iterdir()] == ["..%2Fa%2Fb ü"]

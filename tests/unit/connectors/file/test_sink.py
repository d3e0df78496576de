from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from sluiceway.api import Column, ColumnBatch, NotColumnar, SinkRecord
from sluiceway.connectors.file.sink import FileStreamSinkConnector, FileStreamSinkTask
from sluiceway.data import (
    BOOLEAN_SCHEMA,
    FLOAT64_SCHEMA,
    OPTIONAL_INT32_SCHEMA,
    OPTIONAL_STRING_SCHEMA,
    STRING_SCHEMA,
    Schema,
    Struct,
    Type,
)
from sluiceway.data.logical import timestamp_schema
from sluiceway.errors import ConnectError


def records(*values: Any) -> list[SinkRecord]:
    return [SinkRecord("t", 0, offset, value) for offset, value in enumerate(values)]


def start(file: Path) -> FileStreamSinkTask:
    task = FileStreamSinkTask()
    task.start({"file": str(file)})
    return task


def test_each_value_is_a_line_and_is_in_the_file_when_put_returns(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"
    task = start(file)
    task.put(records("foo", "bär"))
    assert file.read_text("utf-8") == "foo\nbär\n"
    task.put([])
    task.put(records("x"))
    task.flush({})
    task.stop()
    assert file.read_text("utf-8") == "foo\nbär\nx\n"


def test_values_that_are_not_text_are_written_as_java_prints_them(tmp_path: Path) -> None:
    struct = Struct(Schema.struct({"a": STRING_SCHEMA}), {"a": "b"})
    start(tmp_path / "out").put(records("s", struct, None, {"a": 1}, [1, 2.5e10], True))
    assert (tmp_path / "out").read_text() == "s\nStruct{a=b}\nnull\n{a=1}\n[1, 2.5E10]\ntrue\n"


def test_only_what_was_written_is_flushed_to_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []

    def fsync(descriptor: int) -> None:
        flushed.append(descriptor)
        if len(flushed) == 1:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr("sluiceway.connectors.file.sink.os.fsync", fsync)
    task = start(tmp_path / "out")
    task.flush({})
    task.put(records("a"))
    with pytest.raises(OSError, match="Input/output"):
        task.flush({})
    for _ in range(3):
        task.flush({})
    assert len(flushed) == 2, "once more after the failure"
    task.stop()


def test_a_restart_appends(tmp_path: Path) -> None:
    for value in ("a", "b"):
        task = start(tmp_path / "out")
        task.put(records(value))
        task.stop()
    assert (tmp_path / "out").read_text() == "a\nb\n"


def test_a_deleted_or_replaced_file_is_created_again(tmp_path: Path) -> None:
    file = tmp_path / "out"
    task = start(file)
    task.put(records("a"))
    file.unlink()
    task.put(records("b"))
    assert file.read_text() == "b\n"
    file.rename(tmp_path / "rotated")
    file.write_text("header\n")
    task.put(records("c"))
    assert file.read_text() == "header\nc\n"
    assert (tmp_path / "rotated").read_text() == "b\n"


def test_a_missing_folder_is_refused_with_connects_message(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match=r"Couldn't find or create file '.*/no/out' for FileStreamSinkTask"):
        start(tmp_path / "no" / "out")


def test_without_a_file_lines_go_to_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    task = FileStreamSinkTask()
    task.start({})
    task.put(records("a"))
    task.flush({})
    task.stop()
    assert capfdbinary.readouterr().out == b"a\n"


def test_every_task_gets_the_same_config() -> None:
    connector = FileStreamSinkConnector()
    connector.start({"file": "x"})
    assert connector.task_configs(2) == [{"file": "x"}] * 2


NOW = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc)
PERSON = Schema.struct(
    {"name": STRING_SCHEMA, "age": OPTIONAL_INT32_SCHEMA, "ok": BOOLEAN_SCHEMA, "d": FLOAT64_SCHEMA, "at": timestamp_schema()}
)


NOTHING = Schema.struct({"a": OPTIONAL_STRING_SCHEMA, "b": Schema(Type.INT64, optional=True)}, optional=True)


def columns_of(schema: Schema | None, values: list[Any]) -> ColumnBatch:
    from sluiceway.columns.rows import column_of

    return ColumnBatch(topic="t", partition=0, key=Column(None, None), value=column_of(schema, values), count=len(values))


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (OPTIONAL_STRING_SCHEMA, ["foo", None, "", "bär\nx"]),
        (STRING_SCHEMA, []),
        (NOTHING, [Struct(NOTHING, {}), Struct(NOTHING, {"b": 1}), None, Struct(NOTHING, {"a": "x", "b": 2})]),
        (None, ["foo", "é"]),
        (None, ["foo", None, {"a": [1, None], "b": 1e10}, True]),
        (PERSON, [Struct(PERSON, {"name": "a", "age": 1, "ok": True, "d": 1e10, "at": NOW}) for _ in range(3)]),
        (PERSON, [Struct(PERSON, {"name": "a", "age": age, "ok": False, "d": -0.5, "at": NOW}) for age in (None, 2)]),
    ],
)
def test_columns_are_written_like_records(tmp_path: Path, schema: Schema | None, values: list[Any]) -> None:
    start(tmp_path / "rows").put(records(*values))
    start(tmp_path / "columns").put_columns(columns_of(schema, values))
    assert (tmp_path / "columns").read_bytes() == (tmp_path / "rows").read_bytes()


def test_columns_of_other_types_are_left_to_records(tmp_path: Path) -> None:
    with pytest.raises(NotColumnar):
        start(tmp_path / "out").put_columns(columns_of(FLOAT64_SCHEMA, [1.0]))

"""Parquet, ORC and Avro files: the rows of any table, continued after any row, on local disks and on an object store."""

from __future__ import annotations

import datetime as dt
import decimal
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import orc

from sluiceway.columns.connect_schemas import row_schema
from sluiceway.connectors.files.filesystem.objects import ObjectStore
from sluiceway.connectors.files.formats.avro import AvroFormat
from sluiceway.connectors.files.store import Store
from sluiceway.connectors.folder import tables
from sluiceway.data import INT32_SCHEMA, STRING_SCHEMA, Schema, SchemaBuilder, Struct, Type, timestamp_schema
from sluiceway.data.avro_schema import FILES, to_avro
from sluiceway.errors import ConnectError
from support.folder_task import FolderTask

if TYPE_CHECKING:
    from sluiceway.connectors.files.filesystem import Output

fsspec = pytest.importorskip("fsspec")

LONG_AGO = 1_600_000_000
TYPES = {
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "real": (pa.float64(), st.floats(allow_nan=False)),
    "flag": (pa.bool_(), st.booleans()),
    "text": (pa.string(), st.text(st.characters(codec="utf-8"), max_size=5)),
    "bytes": (pa.binary(), st.binary(max_size=5)),
    "amount": (pa.decimal128(12, 3), st.decimals(-(10**8), 10**8, places=3)),
    "day": (pa.date32(), st.dates(dt.date(1970, 1, 1), dt.date(2100, 1, 1))),
    "list": (pa.list_(pa.int32()), st.lists(st.integers(0, 9), max_size=3)),
    "struct": (
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.integers(0, 9), "b": st.just("x")}),
    ),
}


@st.composite
def drawn_tables(draw: st.DrawFn) -> pa.Table:
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=4, unique=True))
    size = draw(st.integers(0, 12))
    values = {name: draw(st.lists(st.none() | TYPES[name][1], min_size=size, max_size=size)) for name in names}
    return pa.table({name: pa.array(values[name], TYPES[name][0]) for name in names})


def write_parquet(table: pa.Table, path: Path, rows: int = 5) -> None:
    pq.write_table(table, path, row_group_size=rows)


def write_orc(table: pa.Table, path: Path, rows: int = 0) -> None:
    orc.write_table(table, path, stripe_size=1024 if rows else 1 << 20, batch_size=rows or 1024)


def write_avro(table: pa.Table, path: Path, rows: int = 0) -> None:
    schema = fastavro.parse_schema(to_avro(row_schema(table.schema), FILES))
    with path.open("wb") as file:
        fastavro.writer(file, schema, table.to_pylist(), codec="deflate", sync_interval=1024 if rows else 16_000)


WRITERS: list[tuple[str, Callable[..., None]]] = [("parquet", write_parquet), ("orc", write_orc), ("avro", write_avro)]


def plain(value: Any) -> Any:
    return {field.name: plain(value[field.name]) for field in value.schema.fields} if isinstance(value, Struct) else value


def task_of(folder: Path, format_: str, **config: str) -> FolderTask:
    return FolderTask(paths=str(folder), mode="files", format=format_, **{"complete.when": "renamed", **config})


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize(("format_", "write"), WRITERS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=drawn_tables())
def test_records_equal_rows(tmp_path: Path, format_: str, write: Callable[..., None], table: pa.Table, *, columnar: bool) -> None:
    file = tmp_path / "a.bin"
    write(table, file)
    task = task_of(tmp_path, format_)
    assert [plain(value) for value in task.run(columnar=columnar)] == table.to_pylist()
    task.stop()


def numbers(rows: int) -> pa.Table:
    return pa.table({"id": pa.array(range(rows), pa.int64()), "text": [f"{'x' * (number % 90)}" for number in range(rows)]})


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize(("format_", "write"), WRITERS)
def test_a_restart_continues_after_any_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str, write: Callable[..., None], *, columnar: bool
) -> None:
    monkeypatch.setattr(tables, "_BATCH_ROWS", 300)
    write(numbers(3000), tmp_path / "a", 700)
    task, found, polls = task_of(tmp_path, format_, **{"batch.size": "250"}), list[int](), 0
    while records := task.poll(columnar=columnar):
        polls += 1
        assert polls < 100
        taken = records if polls % 2 or len(records) < 8 else records[:-7]
        found += [record.value["id"] for record in taken]
        task.take(taken)
        if len(taken) < len(records):
            task.restart()
    assert found == list(range(3000))
    assert task.columnar > 0 or not columnar
    task.stop()


@pytest.mark.parametrize(("format_", "write"), WRITERS)
def test_another_table_with_the_name_is_read_from_its_start(tmp_path: Path, format_: str, write: Callable[..., None]) -> None:
    write(numbers(500), tmp_path / "a")
    task = task_of(tmp_path, format_)
    task.take(task.poll()[:100])
    write(numbers(300), tmp_path / "b")
    (tmp_path / "b").rename(tmp_path / "a")
    task.restart()
    assert [value["id"] for value in task.run()] == list(range(300))
    task.stop()


@pytest.mark.parametrize(("format_", "write"), WRITERS)
def test_a_damaged_or_other_file_is_bad_and_the_others_are_read(tmp_path: Path, format_: str, write: Callable[..., None]) -> None:
    write(numbers(500), tmp_path / "good")
    data = (tmp_path / "good").read_bytes()
    (tmp_path / "cut").write_bytes(data[: len(data) // 2])
    (tmp_path / "text").write_text("no table")
    (tmp_path / "empty").touch()
    (tmp_path / "packed.gz").write_bytes(data)
    task = task_of(tmp_path, format_, **{"errors.tolerance": "all"})
    found = Counter(value["id"] for value in task.run())
    assert (found if format_ != "avro" else set(found)) == (Counter(range(500)) if format_ != "avro" else set(range(500)))
    reported = sorted(str(error) for _, error in task.context.reported)
    assert [next(name for name in ("cut", "text", "empty", "packed.gz") if name in each) for each in reported] == [
        "cut",
        "empty",
        "packed.gz",
        "text",
    ]
    assert task.run() == []
    task.stop()


def test_a_file_is_read_when_it_is_complete(tmp_path: Path) -> None:
    write_parquet(numbers(500), tmp_path / "whole")
    data = (tmp_path / "whole").read_bytes()
    (tmp_path / "whole").unlink()
    file = tmp_path / "a.parquet"
    task = task_of(tmp_path, "parquet", **{"complete.when": "stable", "stable.ms": "600000"})
    for share in (0.5, 1):
        file.write_bytes(data[: int(len(data) * share)])
        assert task.run() == []
    os.utime(file, (LONG_AGO, LONG_AGO))
    assert len(task.run()) == 500
    task.stop()


def test_a_column_without_a_type_in_connect_is_said(tmp_path: Path) -> None:
    pq.write_table(pa.table({"big": pa.array([1], pa.uint64())}), tmp_path / "a")
    task = task_of(tmp_path, "parquet")
    with pytest.raises(ConnectError, match=r"/a: column big: Connect has no type for uint64"):
        task.run()
    task.stop()


@pytest.mark.parametrize("rows", [3, 500])
def test_a_text_that_is_not_utf_8_is_a_bad_record(tmp_path: Path, rows: int) -> None:
    texts = pa.array([b"ok", b"\xff", *[b"ok"] * (rows - 2)])
    pq.write_table(pa.table({"text": pa.Array.from_buffers(pa.string(), rows, texts.buffers())}), tmp_path / "a")
    task = task_of(tmp_path, "parquet", **{"errors.tolerance": "all"})
    assert [value["text"] for value in task.run()] == ["ok"] * (rows - 1)
    [(_, error)] = task.context.reported
    assert "a text is not UTF-8" in str(error)
    task.stop()


def test_types_are_connect_types(tmp_path: Path) -> None:
    at = dt.datetime(2026, 11, 29, 8, 0, 0, 123456, tzinfo=dt.timezone.utc)
    columns = {
        "at": pa.array([at], pa.timestamp("us", "UTC")),
        "amount": pa.array([decimal.Decimal("1.50")], pa.decimal128(9, 2)),
    }
    pq.write_table(pa.table(columns), tmp_path / "a")
    task = task_of(tmp_path, "parquet")
    (value,) = task.run()
    schema = {field.name: field.schema for field in value.schema.fields}
    assert (schema["at"].type, schema["at"].name) == (Type.INT64, "org.apache.kafka.connect.data.Timestamp")
    assert (schema["amount"].type, schema["amount"].name) == (Type.BYTES, "org.apache.kafka.connect.data.Decimal")
    assert (value["at"], value["amount"]) == (at.replace(microsecond=123000), decimal.Decimal("1.50"))
    task.stop()


def test_avro_values_are_what_the_file_sink_was_given(tmp_path: Path) -> None:
    inner = Schema.struct({"n": INT32_SCHEMA}, name="Inner")
    schema = Schema.struct(
        {
            "choice": SchemaBuilder.string().parameter("io.confluent.connect.avro.Enum", "E").build(),
            "map": SchemaBuilder.map(STRING_SCHEMA, inner).build(),
            "numbered": SchemaBuilder.map(INT32_SCHEMA, STRING_SCHEMA).optional().build(),
            "at": timestamp_schema(),
        }
    )
    at = dt.datetime(2026, 11, 29, 8, 0, 0, 123000, tzinfo=dt.timezone.utc)
    values = [
        Struct(schema, {"choice": "a", "map": {"k": Struct(inner, {"n": each})}, "numbered": {each: "x"}, "at": at})
        for each in range(3)
    ]
    format_ = AvroFormat({"avro.codec": "null"})
    with (tmp_path / "a.avro").open("wb") as file:
        writer = format_.open(cast("Output", file), "t", schema)
        writer.write(format_.rows("t", schema, values))
        writer.close()
    task = task_of(tmp_path, "avro")
    assert list(task.run()) == values
    task.stop()


@pytest.mark.parametrize(("format_", "write"), WRITERS)
def test_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str, write: Callable[..., None]) -> None:
    monkeypatch.setattr(Store, "remote", lambda _: ObjectStore("memory", {}, 1 << 20))
    write(numbers(500), tmp_path / "a")
    fs = fsspec.filesystem("memory")
    fs.pipe_file(f"/tables-{format_}/in/a", (tmp_path / "a").read_bytes())
    url = f"s3://tables-{format_}"
    more = {"complete.when": "renamed", "after.read": "move", "after.read.folder": f"{url}/done"}
    task = FolderTask(paths=f"{url}/in", mode="files", format=format_, **more)
    assert [value["id"] for value in task.run()] == list(range(500))
    assert fs.find(f"/tables-{format_}") == [f"/tables-{format_}/done/a"]
    task.stop()
    fs.rm(f"/tables-{format_}", recursive=True)

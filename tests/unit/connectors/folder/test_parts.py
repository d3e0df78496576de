"""Tests of the parts of large files, which tasks share."""

from __future__ import annotations

import io
import json
import os
import random
import re
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from sluiceway.config.definition import ConfigValue
from sluiceway.connectors.folder import config as keys
from sluiceway.connectors.folder.csv_format import CsvFormat
from sluiceway.connectors.folder.readers import CHUNK_BYTES
from sluiceway.connectors.folder.task import TASK, TASKS
from support.folder_task import FolderTask

LONG_AGO = 1_700_000_000
ROWS = 3300
TEXT = "x" * 150
FORMATS = ["lines", "json", "csv", "parquet", "orc", "avro"]


def content(format_: str, rows: int = ROWS) -> bytes:
    """Return about a megabyte of numbered rows."""
    chance = random.Random(rows)  # noqa: S311 (not for cryptography); no two rows alike, which would be stored once
    texts = [f"{chance.random():.17f}"[2:] * 8 + TEXT[:20] for _ in range(rows)]
    numbered = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    sink = io.BytesIO()
    if format_ == "parquet":
        pq.write_table(pa.Table.from_pylist(numbered), sink, row_group_size=500, compression="none")
    elif format_ == "orc":
        orc.write_table(pa.Table.from_pylist(numbered), sink, stripe_size=1 << 16, compression="UNCOMPRESSED")
    elif format_ == "avro":
        fields = [{"name": "id", "type": "string"}, {"name": "text", "type": "string"}]
        fastavro.writer(sink, {"type": "record", "name": "Row", "fields": fields}, numbered)
    else:
        lines = {
            "lines": lambda row: f"{row['id']} {row['text']}\n",
            "json": lambda row: json.dumps(row) + "\n",
            "csv": lambda row: f'{row["id"]},"{row["text"][:90]}\n""{row["text"][90:]}"\n',
        }
        header = "id,text\n" if format_ == "csv" else ""
        return (header + "".join(map(lines[format_], numbered))).encode()
    return sink.getvalue()


class Tasks:
    """The tasks of a connector, with offsets in common, as in Kafka."""

    def __init__(self, count: int, format_: str, folder: Path, **config: str) -> None:
        common = {"paths": str(folder), "mode": "files", "format": format_, "complete.when": "renamed", "record.key": "file"}
        self.offsets: dict[str, Any] = {}
        self._config = {**common, "part.bytes": str(CHUNK_BYTES), **config}
        self.count = count
        self.start()

    def start(self) -> None:
        self.tasks = [FolderTask(**self._config, **{TASK: str(number), TASKS: str(self.count)}) for number in range(self.count)]
        for task in self.tasks:
            task.offsets = self.offsets
            task.restart()

    def stop(self) -> None:
        for task in self.tasks:
            task.stop()

    def run(self) -> list[list[int]]:
        """Let the tasks read in turn, and return the numbers of the rows that each has read."""
        found: list[list[int]] = [[] for _ in self.tasks]
        for _ in range(2):
            for task, numbers in zip(self.tasks, found, strict=True):
                task.run()
                numbers += [number_of(record.value) for record in task.records]
                task.records.clear()
        return found


def number_of(value: Any) -> int:
    return int(value.split()[0] if isinstance(value, str) else value["id"])


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


@pytest.mark.parametrize("format_", FORMATS)
def test_tasks_share_a_large_file_and_each_row_is_read_once(tmp_path: Path, format_: str) -> None:
    write(tmp_path / "a", content(format_))
    tasks = Tasks(3, format_, tmp_path)
    found = tasks.run()
    assert len(tasks.offsets) > 1
    assert sorted(number for numbers in found for number in numbers) == list(range(ROWS))


@pytest.mark.parametrize("format_", FORMATS)
def test_one_task_reads_all_parts_in_order(tmp_path: Path, format_: str) -> None:
    write(tmp_path / "a", content(format_))
    (found,) = Tasks(1, format_, tmp_path).run()
    assert found == list(range(ROWS))


@pytest.mark.parametrize("format_", FORMATS)
def test_parts_continue_after_a_restart_and_are_not_read_again(tmp_path: Path, format_: str) -> None:
    write(tmp_path / "a", content(format_))
    tasks = Tasks(3, format_, tmp_path)
    found = []
    for _ in range(2):
        for task in tasks.tasks:
            records = task.poll()
            task.take(records)
            found += [number_of(record.value) for record in records]
        tasks.stop()
        tasks.start()
    found += [number for numbers in tasks.run() for number in numbers]
    assert sorted(found) == list(range(ROWS))
    tasks.stop()
    tasks.start()
    assert tasks.run() == [[], [], []]


@pytest.mark.parametrize("format_", ["lines", "parquet"])
def test_a_file_is_moved_once_all_of_its_parts_are_read(tmp_path: Path, format_: str) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    out.mkdir()
    file = write(folder / "a", content(format_))
    more = (Tasks(count, format_, folder, **{"after.read": "move", "after.read.folder": str(out)}) for count in range(3, 20))
    # Which tasks read the parts depends on the path.
    tasks = next(tasks for tasks in more if sum(bool(task.task._readers) for task in tasks.tasks) > 1)
    first = next(task for task in tasks.tasks if any("\0000\0" in path for path in task.task._readers))
    first.run()
    assert file.exists()
    found = first.records
    for task in tasks.tasks:
        task.run()
        found = [*found, *task.records] if task is not first else found
    first.task._handling._try_again = dict.fromkeys(first.task._handling._try_again, 0.0)
    first.run()
    assert (out / "a").exists()
    assert not file.exists()
    assert sorted(number_of(record.value) for record in found) == list(range(ROWS))
    for task in tasks.tasks * 2:  # what commit() has found is stored after it
        task.task._handling._try_again = dict.fromkeys(task.task._handling._try_again, 0.0)
        task.run()
    assert [each for each in tasks.offsets.values() if each is not None] == []


def test_a_file_that_was_read_as_a_whole_remains_one(tmp_path: Path) -> None:
    write(tmp_path / "a", content("lines"))
    tasks = Tasks(2, "lines", tmp_path, **{"part.bytes": "0"})
    owner = next(task for task in tasks.tasks if task.task._readers)
    owner.take(owner.poll())
    seen = [number_of(record.value) for record in owner.records]
    assert 0 < len(seen) < ROWS
    again = Tasks(2, "lines", tmp_path)
    again.offsets.update(tasks.offsets)
    again.stop()
    again.start()
    assert sorted([*seen, *(number for numbers in again.run() for number in numbers)]) == list(range(ROWS))
    final = Tasks(2, "lines", tmp_path)
    final.offsets.update(again.offsets)
    final.stop()
    final.start()
    assert final.run() == [[], []]


def test_a_record_that_does_not_end_where_the_next_part_begins_is_an_error(tmp_path: Path) -> None:
    lines = [f"{number},{TEXT}\n" for number in range(ROWS)]
    lines[CHUNK_BYTES // len(lines[-1]) - 20] = '77,"never closed\n'
    write(tmp_path / "a", "".join(["id,text\n", *lines]).encode())
    tasks = Tasks(1, "csv", tmp_path, **{"errors.tolerance": "all"})
    tasks.run()
    errors = [str(error) for _, error in tasks.tasks[0].context.reported]
    assert any("set part.bytes=0" in error for error in errors), errors


QUOTED = st.text(alphabet='ab,\n"\r x', max_size=12)
PLAIN = st.text(alphabet="ab x", max_size=6)


@settings(max_examples=300, deadline=None)
@given(
    rows=st.lists(st.lists(st.tuples(st.booleans(), QUOTED, PLAIN), min_size=1, max_size=4), min_size=1, max_size=30),
    where=st.floats(0, 1),
)
def test_the_next_record_of_csv_begins_where_a_read_from_the_start_finds_it(
    rows: list[list[tuple[bool, str, str]]], where: float
) -> None:
    def field(is_quoted: bool, quoted: str, plain: str) -> str:
        return '"' + quoted.replace('"', '""') + '"' if is_quoted else plain

    lines = [",".join(field(*each) for each in row) + "\n" for row in rows]
    data = "".join(lines).encode()
    data = b"a" * 100 + b"\n" + data
    position = 100 + max(1, round(where * (len(data) - 100)))
    format_ = CsvFormat(columns=("a", "b"))
    begun = format_.begin(data, final=True)
    assert begun is not None
    starts = [0, *format_.record_ends(data).tolist()]
    expected = next((start for start in starts if start >= position), len(data))

    class Bytes:
        def read_at(self, start: int, size: int) -> bytes:
            return data[start : start + size]

    found = begun[1].next_start(Bytes(), position, 1 << 20)
    begin = len(data[:position].rstrip(b'"')) - 1
    assert found == expected or not any(map(_tells, re.finditer(rb'(?s)(.)("+)(?=(.?))', data[begin:])))


def _tells(run: re.Match[bytes]) -> bool:
    """Return whether a run of quotes can only open a field, or only close one."""
    return len(run[2]) % 2 == 1 and (run[1] in (b",", b"\n")) != (run[3] in (b",", b"\n", b"\r", b""))


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"format": "json-array", "part.bytes": "1000000"}, "part.bytes"),
        ({"format": "csv", "part.bytes": "1000000"}, "part.bytes"),
        ({"format": "csv", "part.bytes": "1000", "complete.when": "renamed"}, "part.bytes"),
        ({"mode": "logs", "part.bytes": "1000000"}, "part.bytes"),
    ],
)
def test_files_that_cannot_be_divided_are_refused(config: dict[str, str], key: str) -> None:
    found = keys.check({"topic": "t", "paths": "/in", "mode": "files", **config})
    assert found[key].errors
    assert not any(each.errors for name, each in found.items() if name != key)


@pytest.mark.parametrize(("format_", "expected"), [("lines", 0), ("csv", 0), ("parquet", 1 << 28), ("avro", 1 << 28)])
def test_only_tables_are_divided_unless_asked(format_: str, expected: ConfigValue) -> None:
    assert keys.options({"topic": "t", "paths": "/in", "mode": "files", "format": format_}).part_bytes == expected

"""Tests that small files share batches of columns, with the records and offsets of the row form."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluiceway.api import SourceColumns
from support.folder_task import FolderTask

LONG_AGO = 1_700_000_000


def write(path: Path, rows: list[int], name: str = "id") -> None:
    if path.suffix == ".parquet":
        pq.write_table(pa.table({name: pa.array(rows, pa.int64())}), path)
    else:
        path.write_text("".join(f'{{"{name}":{row}}}\n' if row >= 0 else "\n" for row in rows))
    os.utime(path, (LONG_AGO, LONG_AGO))


@pytest.mark.parametrize("format_", ["parquet", "json"])
def test_files_with_few_rows_are_one_batch_of_columns(tmp_path: Path, format_: str) -> None:
    for number in range(20):
        write(tmp_path / f"{number:02d}.{format_}", [number] * 30)
    run = FolderTask(paths=str(tmp_path), mode="files", format=format_, **{"record.key": "file"})
    polled = run.task.poll_columns()
    assert isinstance(polled, SourceColumns)
    assert len(polled) == 600
    assert len(polled.more_offsets) == 19
    assert all(offset["done"] for _, offset in polled.more_offsets)


def test_a_batch_has_no_more_records_than_it_may_and_the_rest_follows(tmp_path: Path) -> None:
    for number in range(5):
        write(tmp_path / f"{number}.parquet", list(range(100 * number, 100 * number + 70)))
    run = FolderTask(paths=str(tmp_path), mode="files", format="parquet", **{"batch.size": "150"})
    sizes = []
    while polled := run.task.poll_columns():
        sizes.append(len(polled))
    assert sizes == [150, 150, 50]


def test_columns_of_another_schema_are_another_batch(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / f"{number}.parquet", list(range(100)), "even" if number % 2 == 0 else "odd")
    run = FolderTask(paths=str(tmp_path), mode="files", format="parquet")
    assert len(run.run()) == 400
    assert run.columnar == 4


@settings(max_examples=25)
@given(
    files=st.lists(
        st.tuples(st.integers(0, 240), st.sampled_from(["id", "id", "id", "other"]), st.booleans()), min_size=1, max_size=12
    ),
    size=st.sampled_from([1, 99, 100, 150, 2000]),
    format_=st.sampled_from(["parquet", "json"]),
    crash=st.booleans(),
)
def test_any_files_have_the_same_records_in_both_forms(
    files: list[tuple[int, str, bool]], size: int, format_: str, crash: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, (count, name, is_odd) in enumerate(files):
            rows = [-1, *range(1, count)] if is_odd and format_ == "json" else list(range(count))  # a blank line has no columns
            write(Path(folder, f"{number:02d}.{format_}"), rows, name)
        config = {"paths": folder, "mode": "files", "format": format_, "batch.size": str(size), "record.key": "file"}
        seen = []
        for columnar in (True, False):
            run = FolderTask(**config)
            if crash and columnar:
                run.take(run.poll())
                run.restart()
            run.run(columnar=columnar)
            seen.append(sorted((record.key, repr(record.value), str(record.source_offset)) for record in run.records))
        assert seen[0] == seen[1]

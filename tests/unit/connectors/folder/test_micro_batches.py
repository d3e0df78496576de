"""A micro-batch reads a file that has just been written to its end, although it must wait until the file is complete."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluiceway.config.intervals import Interval, IntervalRun
from support.folder_task import FolderTask


def batch(task: FolderTask) -> int:
    """Run a task as the runtime does in a micro-batch; return the number of its records."""
    records = empty = 0
    while not (empty >= 2 if task.task.ended is None else task.task.ended):
        found = task.task.poll()
        records += len(found or ())
        empty = 0 if found else empty + 1
        if not found:
            task.offsets.update({json.dumps(partition): offset for partition, offset in task.task.idle_offsets()})
    task.task.stop()
    return records


@pytest.mark.parametrize(("form", "records"), [("lines", 2), ("whole", 1)])
def test_a_file_that_was_just_written_is_read_to_its_end(tmp_path: Path, form: str, records: int) -> None:
    (tmp_path / "a.txt").write_text("one\nno end of the line")
    task = FolderTask(paths=str(tmp_path), mode="files", format=form, **{"stable.ms": "200"})
    assert batch(task) == records
    assert [each["done"] for each in task.offsets.values() if each and "done" in each] in ([True], [])


def test_a_rotated_log_is_waited_for(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("one\n")
    task = FolderTask(paths=str(log), mode="logs", **{"rotated.close.ms": "500"})
    while not task.task.poll():
        pass
    log.rename(tmp_path / "app.log.1")
    log.write_text("two\n")
    assert batch(task) == 1


def test_a_file_that_cannot_be_read_ends_the_batch_some_time(tmp_path: Path) -> None:
    (tmp_path / "a.txt").mkdir()
    (tmp_path / "b.txt").symlink_to("b.txt")
    assert batch(FolderTask(paths=f"{tmp_path}/*.txt", mode="files", **{"stable.ms": "0"})) == 0


@pytest.mark.parametrize(("schedule", "waits"), [("on-change", False), ("@hourly", True)])
def test_an_empty_folder_is_no_failure_of_a_run_that_a_change_has_started(tmp_path: Path, schedule: str, waits: bool) -> None:
    """The run before may have read the file that has started this one, and moved it."""
    task = FolderTask(paths=str(tmp_path), mode="files", **{"airflow.schedule": schedule})
    assert batch(task) == 0
    assert any(task.context.waits_for) is waits


@pytest.mark.parametrize("by_field", [False, True])
def test_a_file_whose_last_records_may_be_held_back_is_not_among_many_finished_ones(tmp_path: Path, by_field: bool) -> None:
    """The offsets of many finished files become one, which would skip what the run has not sent of them."""
    for number in range(1500):
        (tmp_path / f"{number}.json").write_text(f'{{"at": {number}}}\n')
    by = {**IntervalRun("c", Interval(0, 1000), 1).keys(), "airflow.interval.field": "at"} if by_field else {}
    task = FolderTask(paths=str(tmp_path), mode="files", format="json", **{"complete.when": "renamed", **by})
    assert len(task.run()) == 1500
    assert _many(task) is not by_field
    task.restart()
    assert task.run() == []
    assert _many(task), "the records of the run before are in Kafka"


def _many(task: FolderTask) -> bool:
    return any("finished" in partition for partition in task.offsets)

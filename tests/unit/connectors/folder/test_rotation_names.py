"""Rotations as programs, tools, and people make them: which files are generations of which log, and in which order."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from support.folder_task import FolderTask

BEGAN = 1_600_000_000


class Logs:
    """A folder of logs, and a task that reads them."""

    def __init__(self, folder: Path, pattern: str) -> None:
        self.folder = folder
        self.clock = BEGAN
        self.config = {"paths": f"{folder}/{pattern}", "mode": "logs", "rotated.close.ms": "0"}
        self.task: FolderTask | None = None
        self._runs = False

    def write(self, name: str, *lines: str, zipped: bool = False) -> None:
        """Append lines, at the next second of a clock."""
        self.clock += 1
        path = self.folder / name
        data = "".join(f"{line}\n" for line in lines).encode()
        with path.open("ab") as out:
            out.write(gzip.compress(data, mtime=self.clock) if zipped else data)
        os.utime(path, (self.clock, self.clock))

    def rename(self, old: str, new: str) -> None:
        (self.folder / old).rename(self.folder / new)

    def zip(self, name: str, *, keep_time: bool = True) -> None:
        path, self.clock = self.folder / name, self.clock + 1
        status = path.stat()
        target = path.with_name(f"{name}.gz")
        target.write_bytes(gzip.compress(path.read_bytes(), mtime=int(status.st_mtime)))
        moment = status.st_mtime if keep_time else self.clock
        os.utime(target, (moment, moment))
        path.unlink()

    def read(self, *, restart: bool = False) -> list[str]:
        """Read all, and return all that has been read so far."""
        if restart:
            self.stop()
        if self.task is None:
            self.task = FolderTask(**self.config)
        elif not self._runs:
            self.task.start()
        self._runs = True
        self.task.run()
        return [str(record.value) for record in self.task.records]

    def stop(self) -> None:
        if self.task is not None and self._runs:
            self.task.stop()
        self._runs = False

    @property
    def keys(self) -> set[str]:
        """The names of the logs that have offsets."""
        return {Path(json.loads(partition)["file"]).name for partition in self.task.offsets} if self.task else set()

    def lost(self) -> int:
        assert self.task is not None
        return int(self.task.metric("generations-lost"))


@pytest.fixture(params=["app.log", "app*"])
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterable[Logs]:
    """With one path, and with a pattern that the rotated names match, too."""
    made = Logs(tmp_path, request.param)
    yield made
    made.stop()


NAMES = {
    "more than nine a day": [f"app-2026-11-29.{number}.log" for number in range(1, 13)],
    "more than nine a day, behind": [f"app.log-20261129-{number}" for number in range(1, 13)],
    "two in a second": ["app.log-20261129", "app.log-20261129-2", "app.log-20261130"],
    "the day first": ["app.log.29-11-2026", "app.log.30-11-2026", "app.log.01-12-2026"],
    "more than nine": [f"app.log.{number}" for number in range(12, 0, -1)],
    "counting up": [f"app.log.{number}" for number in range(1, 13)],
    "times": ["app.log.2026-11-29T23:59:59Z", "app.log.2026-11-30T00:00:00Z"],
}


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_generations_are_read_in_the_order_in_which_they_were_written(logs: Logs, names: list[str], *, zipped: bool) -> None:
    lines = [f"line {number}" for number in range(len(names) + 1)]
    logs.write("app.log", lines[0])
    logs.read()
    logs.stop()
    for name, line in zip(names, lines[1:], strict=True):
        logs.rename("app.log", name)
        if zipped:
            logs.zip(name)
        logs.write("app.log", line)
    assert logs.read() == lines
    assert logs.lost() == 0
    assert logs.keys == {"app.log"}


def test_files_that_were_compressed_by_hand_later(logs: Logs) -> None:
    for number in (3, 2, 1):
        logs.write(f"app.log.{number}", f"line {3 - number}")
        if number == 3:
            logs.rename("app.log.3", "app.log")
            logs.read()
            logs.stop()
            logs.rename("app.log", "app.log.3")
    logs.write("app.log", "line 3")
    for number in (1, 2, 3):
        logs.zip(f"app.log.{number}", keep_time=False)
    assert logs.read() == ["line 0", "line 1", "line 2", "line 3"]


def test_a_log_that_is_gone_for_a_moment(logs: Logs) -> None:
    logs.write("app.log", "a")
    logs.read()
    logs.rename("app.log", "app.log.1")
    logs.read(restart=True)
    logs.write("app.log", "b")
    logs.read()
    logs.rename("app.log.1", "app.log.2")
    logs.rename("app.log", "app.log.1")
    logs.write("app.log", "c")
    assert logs.read() == ["a", "b", "c"]
    assert logs.keys == {"app.log"}


def test_a_file_and_its_compressed_copy(logs: Logs) -> None:
    logs.write("app.log", "a")
    logs.read()
    logs.rename("app.log", "app.log.1")
    logs.write("app.log.1.gz", "a", zipped=True)
    logs.write("app.log", "b")
    assert logs.read(restart=True) == ["a", "b"]
    assert logs.keys == {"app.log"}


def test_a_program_that_writes_to_its_rotated_log_for_a_while(logs: Logs) -> None:
    logs.write("app.log", "a")
    logs.read()
    logs.rename("app.log", "app.log.1")
    (logs.folder / "app.log").touch()
    logs.read()
    logs.write("app.log.1", "b")
    logs.read()
    logs.write("app.log", "c")
    assert logs.read() == ["a", "b", "c"]


@pytest.mark.parametrize("rotations", [1, 2])
def test_a_log_that_was_empty_when_the_task_stopped(logs: Logs, rotations: int) -> None:
    (logs.folder / "app.log").touch()
    os.utime(logs.folder / "app.log", (BEGAN, BEGAN))
    logs.read()
    logs.stop()
    lines = [f"line {number}" for number in range(rotations + 1)]
    logs.write("app.log", lines[0])
    for number in range(rotations, 0, -1):
        logs.rename("app.log", f"app.log.{number}")
        logs.write("app.log", lines[rotations - number + 1])
    assert logs.read() == lines


def test_a_copy_beside_the_log_is_not_read(logs: Logs) -> None:
    logs.config["paths"] = str(logs.folder / "app.log")
    logs.write("app.log", "a")
    logs.read()
    logs.write("app.log.bak", "a")
    logs.rename("app.log", "app.log.1")
    logs.write("app.log", "b")
    assert logs.read() == ["a", "b"]


def test_a_damaged_generation_is_said_once_and_the_next_one_is_read(logs: Logs) -> None:
    logs.write("app.log", "a")
    logs.read()
    logs.stop()
    logs.rename("app.log", "app.log.2")
    logs.write("app.log.1.gz", *(f"line {number}" for number in range(5000)), zipped=True)
    damaged = logs.folder / "app.log.1.gz"
    damaged.write_bytes(damaged.read_bytes()[:-2000])
    os.utime(damaged, (logs.clock, logs.clock))
    logs.write("app.log", "c")
    found = logs.read()
    assert (found[:2], found[-1]) == (["a", "line 0"], "c")
    assert len(found) > 100, "what is before the damage is read"
    assert logs.lost() == 1


def test_dated_logs_stay_logs_when_one_without_a_date_appears(tmp_path: Path) -> None:
    logs = Logs(tmp_path, "*.log")
    for day in (28, 29):
        logs.write(f"app-2026-11-{day}.log", f"day {day}")
        logs.read()
    logs.write("app.log", "x")
    logs.read()
    logs.write("app-2026-11-29.log", "more")
    assert logs.read() == ["day 28", "day 29", "x", "more"]
    assert logs.read(restart=True) == ["day 28", "day 29", "x", "more"]


def test_numbered_programs_are_logs_of_their_own(tmp_path: Path) -> None:
    logs = Logs(tmp_path, "worker.*")
    for number in (1, 2):
        logs.write(f"worker.{number}", f"{number} a")
    logs.read()
    for number in (1, 2):
        logs.write(f"worker.{number}", f"{number} b")
    assert sorted(logs.read()) == ["1 a", "1 b", "2 a", "2 b"]
    assert logs.keys == {"worker.1", "worker.2"}


def test_a_link_to_the_current_generation(tmp_path: Path) -> None:
    logs = Logs(tmp_path, "*.log")
    for day in (27, 28, 29):
        logs.write(f"app-2026-11-{day}.log", f"day {day}")
        (tmp_path / "app.log").unlink(missing_ok=True)
        (tmp_path / "app.log").symlink_to(f"app-2026-11-{day}.log")
        logs.read()
    assert logs.read(restart=True) == ["day 27", "day 28", "day 29"]

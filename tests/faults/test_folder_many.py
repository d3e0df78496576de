"""Folder sources of all formats in one application, exactly once, killed 20 times: 20,000 files of 5 GB, 200 logs that rotate.

FILES, MEGABYTES, LOGS and KILLS in the environment change that.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from sluiceway.stack.process import BackgroundProcess
from support.driver import submitted_application
from support.eventually import LIMIT, eventually
from support.faults.guarantee import Guarantee
from support.faults.kills import end_of
from support.faults.many_files import KINDS, Counts, ManyFiles, written_meanwhile
from support.faults.processes import Role, resident, send
from support.faults.rows import NewRow
from support.faults.worker_group import WorkerGroup, worker_group
from support.log_writer import LogWriters
from support.rotated_log import KEEPING

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

FILES = int(os.environ.get("FILES", "20000"))
LOGS = int(os.environ.get("LOGS", "200"))
MEGABYTES = int(os.environ.get("MEGABYTES", "5000"))
KILLS = int(os.environ.get("KILLS", "20"))
TASKS = 2
_APPLICATION = "files"
_AT_FIRST = 0.6  # of the files are there when the connectors start; the others come while they run
_CONVERTERS = {
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}


@pytest.fixture
def group(kafka_bootstrap: str, tmp_path: Path) -> Iterator[WorkerGroup]:
    """A worker group on a broker without a proxy, which would be slower than the sources."""
    with worker_group(kafka_bootstrap, tmp_path, Guarantee.EXACTLY_ONCE.worker) as made:
        yield made


@contextlib.contextmanager
def rotated(folder: Path) -> Iterator[list[LogWriters]]:
    """Write logs and rotate them, as many of each way."""
    with contextlib.ExitStack() as stack:
        made = [
            stack.enter_context(LogWriters(folder / str(number), KEEPING, every=200, rate=8, seed=number, pause=0.5))
            for number in range(-(-LOGS // len(KEEPING)))
        ]
        yield made
    for each in made:
        each.close()


class Files:
    """The connectors of one application, its driver, and what is in their topics."""

    def __init__(self, group: WorkerGroup, many: dict[str, ManyFiles], logs: Path, out: Path) -> None:
        self.group, self.many = group, many
        self.topics = {kind: f"{group.name}-{kind}" for kind in (*many, "logs")}
        admin = AdminClient({"bootstrap.servers": group.address})  # kept in a variable: its futures end with it
        for future in admin.create_topics([NewTopic(topic, 1, 1) for topic in self.topics.values()]).values():
            future.result(LIMIT)
        for kind, files in many.items():
            moved = {"after.read.folder": str(out / kind)} if files.config.get("after.read") == "move" else {}
            self._create(kind, {"mode": "files", "paths": str(files.folder), "complete.when": "renamed", **files.config, **moved})
        self._create("logs", {"mode": "logs", "paths": str(logs / "*" / "*" / "app.log"), "rotated.close.ms": "500"})
        self.counts = Counts(group.address, list(self.topics.values()))
        self.driver = self._submitted()

    def _create(self, kind: str, config: dict[str, str]) -> None:
        own = {"connector.class": "FolderSource", "topic": self.topics[kind], "record.key": "file", "tasks.max": str(TASKS)}
        more = {"exactly.once.support": "required", "sluiceway.application": _APPLICATION, **_CONVERTERS}
        self.group.herder.create(self.topics[kind], {**own, **more, **config})

    def _submitted(self) -> BackgroundProcess:
        folder = self.group.folder / f"driver-{len(self.group.drivers)}"
        folder.mkdir()
        slots = TASKS * len(self.topics)
        driver = submitted_application(_APPLICATION, self.group.worker_file, folder, master=f"local[{slots}]")
        self.group.drivers.append(driver)
        driver.start()
        return driver

    def kill(self, role: Role) -> None:
        send(self.driver, role, signal.SIGKILL)
        if role is not Role.WORKERS:
            end_of(self.driver)
            self.driver = self._submitted()

    def reach(self, rows: float) -> None:
        """Wait until the topics have this many rows."""

        def reached() -> bool:
            assert self.driver.is_running(), self.driver.log_tail(30)
            return self.counts.rows >= rows

        eventually(reached, within=4 * LIMIT, what=f"{rows:.0f} rows, not {self.counts.rows}\n{self.driver.log_tail(30)}")


def _many(folder: Path, chance: random.Random) -> dict[str, ManyFiles]:
    size = MEGABYTES * 1_000_000 // FILES
    return {kind: ManyFiles(kind, folder / kind, round(FILES * share), size, chance) for kind, (*_, share) in KINDS.items()}


def _sum(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    return {path: count for each in counts for path, count in each.items()}


@pytest.mark.timeout(7200)
def test_each_row_of_many_files_is_in_the_topics_once(
    group: WorkerGroup, row: NewRow, chance: random.Random, tmp_path: Path
) -> None:
    made = row(f"1-3: {FILES:,} files of {len(KINDS)} formats, {LOGS} rotated logs, {KILLS} kills", "0 lost, 0 duplicated")
    many = _many(tmp_path / "in", chance)
    for each in many.values():
        each.write(round(_AT_FIRST * len(each.expected)))
    expected = _sum([each.expected for each in many.values()])
    files = Files(group, many, tmp_path / "logs", tmp_path / "out")
    memory = 0
    with rotated(tmp_path / "logs") as writers, written_meanwhile(list(many.values()), 0.05):
        for number in range(1, KILLS + 1):
            files.reach(number * 0.9 * sum(expected.values()) / (KILLS + 1))
            memory = max(memory, resident(files.driver))
            files.kill(chance.choice(list(Role)))
            print(f"{number} kills, {files.counts.rows:,} rows", flush=True)
    expected |= _sum([each.written() for each in writers])
    files.reach(sum(expected.values()))
    moved = [kind for kind, each in many.items() if each.config.get("after.read") == "move"]
    for kind in ("csv", *moved):
        eventually(lambda kind=kind: not list(many[kind].folder.iterdir()), what=f"that all {kind} files are moved or deleted")
    files.driver.stop(60)
    counts = files.counts
    counts.close()
    made.seen = f"{counts.rows:,} rows of {len(expected):,} files, at most {memory / 1e6:.0f} MB in Python workers"
    made.lost, made.duplicated = counts.missing(expected), counts.repeated
    assert (made.lost, made.duplicated, counts.rows) == (0, 0, sum(expected.values()))
    assert {path: len(seen) for path, seen in counts.seen.items()} == {path: rows for path, rows in expected.items() if rows}
    for kind in moved:
        assert len(list((tmp_path / "out" / kind).iterdir())) == len(many[kind].expected)

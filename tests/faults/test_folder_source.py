"""The folder source on real drivers, exactly once, while its processes are killed, logs are rotated, and files come."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from support.eventually import LIMIT, eventually
from support.faults.guarantee import Guarantee
from support.faults.kills import at_a_random_point, kill
from support.faults.processes import Role
from support.faults.rows import NewRow, Row
from support.faults.worker_group import Progress, WorkerGroup, read
from support.log_writer import LogWriters
from support.rotated_log import KEEPING

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

KILLS = 20
PARTITIONS = 1
_PAUSE_SECONDS = 0.1
_STRINGS = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")


@pytest.fixture
def guarantee() -> Guarantee:
    return Guarantee.EXACTLY_ONCE


def number_of(_key: bytes | None, value: bytes | None) -> int:
    return int((value or b"").split()[0])


def start(group: WorkerGroup, config: dict[str, str]) -> str:
    """Start a connector, and return its topic."""
    topic = f"{group.name}-lines"
    admin = AdminClient({"bootstrap.servers": group.address})  # kept in a variable: its futures end with it
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(LIMIT)
    own = {"connector.class": "FolderSource", "topic": topic, "record.key": "file", **_STRINGS}
    group.herder.create(group.name, {**own, "exactly.once.support": "required", "scan.interval.ms": "200", **config})
    group.driver()
    group.running()
    return topic


def kill_often(group: WorkerGroup, topic: str, row: Row, chance: random.Random) -> None:
    progress = Progress(group.address, topic, number_of)
    for _ in range(KILLS):
        at_a_random_point(progress, chance)
        kill(group, chance.choice(list(Role)), progress, row)
    progress.close()


def lines_of(group: WorkerGroup, topic: str) -> dict[str, list[int]]:
    """Return the numbers of the lines of each file, in their order."""
    found = defaultdict(list)
    for message in read(group.address, topic):
        found[(message.key or b"").decode()].append(number_of(None, message.value))
    return dict(found)


@pytest.mark.timeout(1800)
def test_killed_twenty_times_each_line_of_logs_that_are_rotated_is_in_the_topic_once(
    group: WorkerGroup, row: NewRow, chance: random.Random, tmp_path: Path
) -> None:
    made = row(f"1-3: logs that are rotated in {len(KEEPING)} ways, {KILLS} kills", Guarantee.EXACTLY_ONCE.value)
    writers = LogWriters(tmp_path / "logs", KEEPING, every=500, rate=200)
    topic = start(group, {"mode": "logs", "paths": str(tmp_path / "logs" / "*" / "app.log"), "rotated.close.ms": "500"})
    with writers:
        kill_often(group, topic, made, chance)
    writers.close()
    expected = {path: list(range(count)) for path, count in writers.written().items()}

    def all_there() -> bool:
        return sum(map(len, lines_of(group, topic).values())) >= sum(map(len, expected.values()))

    eventually(all_there, within=2 * LIMIT, what="the last lines")
    group.drivers[-1].stop(30)
    found = lines_of(group, topic)
    made.seen = f"{sum(map(len, found.values()))} lines"
    made.lost = sum(len(set(numbers) - set(found.get(path, []))) for path, numbers in expected.items())
    made.duplicated = sum(len(numbers) - len(set(numbers)) for numbers in found.values())
    assert found == expected


class Uploads:
    """Writes files to a folder while its context lasts, as programs do that rename what they have written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.expected: dict[str, list[int]] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        self.folder.mkdir()
        stopping = threading.Event()

        def write() -> None:
            number = 0
            while not stopping.wait(_PAUSE_SECONDS):
                name = f"file{len(self.expected)}.txt"
                numbers = list(range(number, number + 1 + 13 * (len(self.expected) % 40)))
                temporary = self.folder / f"{name}.tmp"
                temporary.write_text("".join(f"{each} line\n" for each in numbers))
                temporary.rename(self.folder / name)
                self.expected[str(self.folder / name)] = numbers
                number = numbers[-1] + 1

        thread = threading.Thread(target=write, name="uploads")
        thread.start()
        try:
            yield
        finally:
            stopping.set()
            thread.join(LIMIT)


@pytest.mark.timeout(1800)
def test_killed_twenty_times_each_file_is_moved_once_all_of_it_is_in_the_topic(
    group: WorkerGroup, row: NewRow, chance: random.Random, tmp_path: Path
) -> None:
    made = row(f"1-3: files that are moved when they were read, {KILLS} kills", Guarantee.EXACTLY_ONCE.value)
    uploads, out = Uploads(tmp_path / "in"), tmp_path / "out"
    moved = {"after.read": "move", "after.read.folder": str(out), "complete.when": "renamed"}
    topic = start(group, {"mode": "files", "paths": str(uploads.folder), **moved})
    with uploads.running():
        kill_often(group, topic, made, chance)
    eventually(lambda: not list(uploads.folder.iterdir()), within=2 * LIMIT, what="that all files are moved")
    group.drivers[-1].stop(30)
    found = lines_of(group, topic)
    made.seen = f"{sum(map(len, found.values()))} lines of {len(uploads.expected)} files"
    made.lost = sum(len(set(numbers) - set(found.get(path, []))) for path, numbers in uploads.expected.items())
    made.duplicated = sum(len(numbers) - len(set(numbers)) for numbers in found.values())
    assert found == uploads.expected
    assert {each.name for each in out.iterdir()} == {Path(path).name for path in uploads.expected}

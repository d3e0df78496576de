"""A sink whose processes are killed, terminated and frozen; the records in its file are checked."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluiceway.connectors.verifiable.checker import Verdict, check
from sluiceway.connectors.verifiable.results import from_file
from support.eventually import eventually
from support.faults.crashes import CRASHING_SINK, Point
from support.faults.feed import Feed
from support.faults.processes import Role, freeze, send, thaw
from support.faults.rows import NewRow, Row
from support.faults.worker_group import BATCH, RATE, WorkerGroup

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

AT_LEAST_ONCE, EXACTLY_ONCE = "0 lost, at most one batch repeated", "0 lost, 0 duplicated"
_RECOVERED_SECONDS = 150.0  # a killed member keeps its partitions for the group's session timeout


class Writing:
    """A sink on a driver, its input and its output."""

    def __init__(self, group: WorkerGroup, feed: Feed, file: Path, **config: str) -> None:
        self.group = group
        self.feed = feed
        self.file = file
        self.name = group.sink(feed.topic, file, **config)

    def start(self) -> None:
        self.group.driver(self.name)
        self.caught_up()

    def written(self) -> int:
        return check(from_file(self.file)).total

    def caught_up(self) -> float:
        """Wait until the sink is at most a second behind and writes more records; return the seconds that this took."""
        started = time.monotonic()
        enough = sum(self.feed.sent.values()) + RATE
        eventually(
            lambda: self._distinct() >= enough,
            within=_RECOVERED_SECONDS,
            what=f"{enough} records in the file\n{self.group.drivers[-1].log_tail(30)}",
        )
        return time.monotonic() - started

    def judge(self, row: Row) -> Verdict:
        """Wait until all sent records are written, drain the driver, and check the file."""
        sent = self.feed.finish()
        eventually(lambda: check(from_file(self.file), sent=sent).lost == 0, what="everything sent is written")
        self.group.drivers[-1].stop(30)
        verdict = check(from_file(self.file), sent=sent)
        row.judge(verdict)
        assert verdict.lost == 0, verdict
        return verdict

    def _distinct(self) -> int:
        time.sleep(0.3)  # reading the file in a tight loop would take CPU time from the sink
        verdict = check(from_file(self.file))
        return verdict.total - verdict.duplicated


@pytest.fixture
def feed(group: WorkerGroup) -> Iterator[Feed]:
    with Feed(group.address, f"{group.name}-fed", rate=RATE) as made:
        yield made


@pytest.fixture
def writing(group: WorkerGroup, feed: Feed, tmp_path: Path) -> Writing:
    made = Writing(group, feed, tmp_path / "results")
    made.start()
    return made


def kill(writing: Writing, role: Role, row: Row, chance: random.Random, rounds: int) -> None:
    """Kill processes at a random point, restart the driver if it ended, and wait until the sink has caught up."""
    for _ in range(rounds):
        time.sleep(chance.uniform(1, 2.2))
        driver = writing.group.drivers[-1]
        send(driver, role, signal.SIGKILL)
        killed = time.monotonic()
        if role is not Role.WORKERS:
            writing.group.ended(driver)
            writing.group.driver(writing.name)
        writing.caught_up()
        row.recovered(time.monotonic() - killed)


@pytest.mark.parametrize("role", [Role.JVM, pytest.param(Role.WORKERS, marks=pytest.mark.matrix(5))])
@pytest.mark.matrix(1, 2, 3)
def test_a_killed_sink_loses_nothing(writing: Writing, row: NewRow, chance: random.Random, rounds: int, role: Role) -> None:
    made = row(f"sink, kill -9 of the {role.value}, {rounds} times", AT_LEAST_ONCE)
    kill(writing, role, made, chance, rounds)
    assert writing.judge(made).duplicated <= rounds * BATCH


@pytest.mark.matrix(2)
def test_a_killed_sink_with_offsets_in_its_target_writes_each_record_once(
    group: WorkerGroup, feed: Feed, row: NewRow, chance: random.Random, rounds: int, tmp_path: Path
) -> None:
    made = row(f"sink with offsets in its file, kill -9 of the JVM, {rounds} times", "0 lost, 0 duplicated")
    writing = Writing(group, feed, tmp_path / "results", offsets_from_file="true")
    writing.start()
    kill(writing, Role.JVM, made, chance, rounds)
    assert writing.judge(made).exactly_once


@pytest.mark.parametrize(
    ("point", "keeps_offsets"),
    [
        pytest.param(Point.GIVEN, False, marks=pytest.mark.matrix(1)),
        pytest.param(Point.PUT, False, marks=pytest.mark.matrix(2)),
        pytest.param(Point.FLUSHED, False, marks=pytest.mark.matrix(2)),
        pytest.param(Point.FLUSHED, True, marks=pytest.mark.matrix(2)),
    ],
)
def test_a_sink_killed_at_a_named_point_loses_nothing(
    group: WorkerGroup, feed: Feed, row: NewRow, tmp_path: Path, own_connectors: None, point: Point, keeps_offsets: bool
) -> None:
    where = " (offsets in its file)" if keeps_offsets else ""
    most = BATCH if point is Point.FLUSHED and not keeps_offsets else 0
    made = row(f"sink{where}, kill -9 of all processes; the batch is {point.value}", AT_LEAST_ONCE if most else EXACTLY_ONCE)
    crash = tmp_path / "crash"
    config = {"connector_class": CRASHING_SINK, "crash_file": str(crash), "offsets_from_file": str(keeps_offsets).lower()}
    writing = Writing(group, feed, tmp_path / "results", **config)
    writing.start()
    [first] = group.drivers
    crash.write_text(point.name)
    eventually(lambda: not first.is_running(), what=f"the crash of {first.name}\n{first.log_tail(20)}")
    died = time.monotonic()
    assert not crash.exists(), "it died of something else"
    writing.start()
    made.recovered(time.monotonic() - died)
    assert writing.judge(made).duplicated <= most


@pytest.mark.matrix(4)
def test_a_terminated_sink_repeats_nothing(writing: Writing, row: NewRow, chance: random.Random, rounds: int) -> None:
    made = row(f"sink, SIGTERM, {rounds} times", "0 lost, 0 duplicated")
    for _ in range(rounds):
        time.sleep(chance.uniform(1, 2.2))
        driver = writing.group.drivers[-1]
        send(driver, Role.DRIVER, signal.SIGTERM)
        requested = time.monotonic()
        writing.group.ended(driver)
        writing.group.driver(writing.name)
        writing.caught_up()
        made.recovered(time.monotonic() - requested)
    assert writing.judge(made).exactly_once


@pytest.mark.matrix(9)
def test_a_frozen_sink_is_fenced_and_nothing_is_lost(writing: Writing, row: NewRow) -> None:
    made = row("sink, SIGSTOP until another took over, SIGCONT", f"{AT_LEAST_ONCE}, the old one ends fenced")
    old = writing.group.drivers[0]
    frozen = freeze(old)
    stopped = time.monotonic()
    try:
        writing.group.driver(writing.name)
        writing.caught_up()
        made.recovered(time.monotonic() - stopped)
    finally:
        thaw(frozen)
    eventually(lambda: not old.is_running(), what=f"the old driver's end\n{old.log_tail(20)}")
    assert "Stopping without a commit" in old.log.read_text()
    writing.caught_up()
    assert writing.judge(made).duplicated <= BATCH

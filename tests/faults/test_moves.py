"""Moves between a real Kafka Connect and Sluiceway while the command, or Kafka Connect's worker, is killed at random.

MOVES=20: moves each way. SEED=1: when it is killed.

After a kill, what had been written since the last commit is written again. That is a flush interval in seconds, not in lines: a
sink whose worker was killed waits until the group has given up on its consumer (45 s), and then writes what has come meanwhile
at once. So each repetition must be of a line that was written within the interval before a kill.
"""

from __future__ import annotations

import math
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from support import peer
from support.eventually import LIMIT, eventually
from support.faults.rows import NewRow, Row
from support.faults.worker_group import read
from support.growing_file import GrowingFile, LinesInTime
from support.migration import SluicewayInThreads, complete, completed, file_sink, file_source, started

pytestmark = [pytest.mark.kafka, pytest.mark.peer, pytest.mark.timeout(7200)]

STRINGS = dict.fromkeys(("key.converter", "value.converter"), "org.apache.kafka.connect.storage.StringConverter")
#: By default, a sink reads the records of aborted transactions too, which a source that is killed sends once more.
EXACTLY_ONCE = {"exactly.once.source.support": "enabled", "consumer.isolation.level": "read_committed"}
#: A worker that comes back waits until its group has given up on the one that was killed.
SOON = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "2000", "rebalance.timeout.ms": "10000"}
MOVES = int(os.environ.get("MOVES", "2"))
SEED = int(os.environ.get("SEED", "1"))
LONGEST = 6.0  # seconds; a move takes half of it
FLUSHED = 5.0  # seconds; the flush interval is one, and a commit on a busy machine takes some

Times = Mapping[str, Sequence[float]]
"""When each copy of a line was written, in seconds since the epoch."""


class Moving(NamedTuple):
    """A source of a growing file and a sink to another one, on Kafka Connect, and the command that moves them."""

    theirs: peer.PeerDistributed
    growing: GrowingFile
    copies: LinesInTime
    command: list[str]
    finish: Callable[[Row], tuple[Times, Times]]
    """Writes what was lost and repeated into a row, and returns when the source and the sink have written the lines."""


@contextmanager
def moving(kafka_bootstrap: str, unique: Callable[[str], str], folder: Path, *, exactly_once: bool = False) -> Iterator[Moving]:
    source, sink, lines, group = (unique(each) for each in ("source", "sink", "lines", "moves"))
    topics = (f"{group}-configs", f"{group}-offsets", f"{group}-status")
    worker = {**STRINGS, **(EXACTLY_ONCE if exactly_once else {})}
    with (
        peer.PeerDistributed(kafka_bootstrap, group, folder / "peer", topics, {**worker, **SOON}) as theirs,
        SluicewayInThreads(kafka_bootstrap, f"{group}-ours", **worker, **{"sluiceway.heartbeat.interval.ms": "500"}) as ours,
    ):
        ours.start_driver()
        growing, copies = GrowingFile(folder / "in"), LinesInTime(folder / "out")
        required = {"exactly.once.support": "required"} if exactly_once else {}
        configs = {source: file_source(growing.path, lines, **required), sink: file_sink(folder / "out", lines)}
        for name, config in configs.items():
            peer.put_config(theirs.rest, name, config)
        for name in configs:
            peer.wait_for_state(theirs.rest, name, "RUNNING")

        def finish(row: Row) -> tuple[Times, Times]:
            began = time.monotonic()
            written = growing.close()
            complete(folder / "out", written)
            copied = copies.close()
            sent: dict[str, list[float]] = {}
            for each in read(kafka_bootstrap, lines):
                sent.setdefault((each.value or b"").decode(), []).append(each.appended / 1000)
            row.lost = len(set(written) - sent.keys()) + len(set(written) - copied.keys())
            row.duplicated = repeated(sent) + repeated(copied)
            row.seen += f", {len(written)} lines through a source and a sink, repeated {repeated(sent)} and {repeated(copied)}"
            row.recovered(time.monotonic() - began)
            return sent, copied

        command = [sys.executable, "-m", "sluiceway.cli.main", "migrate", "--from", theirs.rest, "--to", ours.rest]
        # A step that does not end fails before the test gives up, and says what it has waited for.
        yield Moving(theirs, growing, copies, [*command, "--execute", "--all", f"--timeout={LIMIT / 3:g}"], finish)


@pytest.mark.matrix(44)
def test_a_move_whose_command_is_killed_goes_on_when_it_is_called_again(
    kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, row: NewRow
) -> None:
    line = row(f"kill -9 of the command of {MOVES} moves there and back, at random", "0 lost, 0 duplicated")
    chance, kills = random.Random(SEED), 0  # noqa: S311 (no secret)
    with moving(kafka_bootstrap, unique, tmp_path) as given:
        for way in ([], ["--back"]) * MOVES:
            while True:
                move = started([*given.command, *way])
                try:
                    said = move.communicate(timeout=chance.uniform(0.5, LONGEST))[0]
                except subprocess.TimeoutExpired:
                    move.kill()
                    move.communicate()
                    kills += 1
                else:
                    assert move.returncode == 0, said
                    assert "2 of 2 connectors have moved" in said, said
                    break
            given.growing.grows()
        line.seen = f"{kills} kills"
        given.finish(line)
    assert kills
    assert (line.lost, line.duplicated) == (0, 0)
    line.holds = True


@pytest.mark.matrix(44)
@pytest.mark.parametrize("exactly_once", [False, True], ids=["at-least-once", "exactly-once"])
def test_a_move_goes_on_when_the_worker_of_kafka_connect_is_killed_and_comes_back(
    kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path, row: NewRow, exactly_once: bool
) -> None:
    fault = f"kill -9 of Kafka Connect's worker in {MOVES} moves there and back{' of an exactly-once source' * exactly_once}"
    line = row(fault, f"0 lost, at most a flush interval repeated{', by the sink only' * exactly_once}")
    chance, kills = random.Random(SEED), list[float]()  # noqa: S311 (no secret)
    with moving(kafka_bootstrap, unique, tmp_path, exactly_once=exactly_once) as given:
        for way in ([], ["--back"]) * MOVES:
            command = [*given.command, *way]
            move = started(command)
            with suppress(subprocess.TimeoutExpired):  # until the moment of the kill, or the end of the move
                move.wait(timeout=chance.uniform(0.5, LONGEST / 2))
            assert given.theirs.pid is not None
            os.kill(given.theirs.pid, signal.SIGKILL)
            eventually(lambda: given.theirs.pid is None, what="the worker's end")
            given.copies.look()
            kills.append(time.time())
            given.theirs.start()
            completed(move, command, 2)
            given.growing.grows()
        line.seen = f"{len(kills)} kills"
        sent, copied = given.finish(line)
    assert line.lost == 0
    assert not (exactly_once and repeated(sent))
    assert not unexplained(sent, {}, kills)
    assert not unexplained(copied, sent, kills)
    line.holds = True


def repeated(lines: Times) -> int:
    """Return how many copies are of lines that had been written before."""
    return sum(len(times) - 1 for times in lines.values())


def unexplained(copied: Times, sent: Times, kills: Sequence[float]) -> dict[str, str]:
    """Return the lines that were copied more often than they were sent, and not because of a kill soon after a copy."""

    def seconds(written: float) -> float:
        return min((kill - written for kill in kills if kill >= written), default=math.inf)

    def explained(times: Sequence[float]) -> int:
        return sum(seconds(each) <= FLUSHED for each in times)

    return {
        line: f"written {', '.join(f'{seconds(each):.1f} s' for each in times)} before the next kill"
        for line, times in copied.items()
        if len(times) - len(sent.get(line, [0])) > explained(times)
    }
